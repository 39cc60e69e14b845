#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# TCP clients of large requests and replies see no wrong byte when workers and load balancers fail: a request whose
# worker is killed before all of it was written ends with a notice, or is answered by another worker where it is kept;
# workers are killed and halted under load; a load balancer that was killed and started again resets at once.
. "$(dirname "$0")/story.sh"
default_workers='' default_fabric=''

# services PORT...: plain ones and one whose requests are kept
services() {
    cat <<END
  - {name: plain, protocol: tcp, address: $vip, port: 8500, model: echo, policy: round-robin, max_request: 1MiB, max_reply: 1MiB}
  - {name: kept, protocol: tcp, address: $vip, port: 8501, model: echo, policy: round-robin, max_request: 1MiB, max_reply: 1MiB, replay: 2}
END
}
model=(echo --model-args max_request=1048576)

topology_up "story$$" 3
topology_config "$(services)"
start_lb
start_agents 1 "${model[@]}"

coproc client_of_faults { exec ip netns exec "$tag-client" /usr/bin/python3 "$here/tcp_faults.py" "$vip" 2>"$dir/faults.log"; }
to=${client_of_faults[1]} from=${client_of_faults[0]}

# tell COMMAND...: its answer is in $answer
tell() {
    echo "$*" >&"$to"
    read -r answer <&"$from" || fail "the client has ended: $(cat "$dir/faults.log")"
}

tell half plain 8500
expect "the first half" "$answer" = half
tell half kept 8501
expect "the first half that is kept" "$answer" = half
expect "requests that are announced" "$(worker w1 requests)" -eq 0
start_agent 2 "${model[@]}"
wait_for "w2 to be active" worker_is w2 active
stop "$pid_w1" KILL
wait_for "the end of w1" eval '! worker_known w1'
tell rest plain
expect "a request whose worker was lost half-way" "$answer" = "status 3"
tell small plain
expect "the next one of its connection" "$answer" = right
tell rest kept
expect "a request that was kept" "$answer" = right
expect "requests of w2" "$(worker w2 requests)" -eq 2

# asking NAME PORT: large requests and replies under way all the time, in the background
asking() {
    start "$1" client "$build/tests/net/stream/tcp-stream" ask --address "$vip" --port "$2" --connections 8 --pipeline 2 \
        --min 200000 --max 1048576 --requests 200 --limit-s 60
}
# ended NAME: it has had all answers, by bytes or a status, each byte right, and no connection ended
ended() {
    local p=pid_$1 what
    while is_running "${!p}"; do
        sleep 0.05
    done
    stop "${!p}"
    tail -n 1 "$dir/$1.log" >"$dir/$1.json"
    for what in wrong failed lost; do
        expect "$1: $what" "$(figure "$1" $what)" -eq 0
    done
    expect "$1: answered or refused" $(($(figure "$1" answered) + $(figure "$1" refused))) -eq 200
}

start_agent 3 "${model[@]}"
wait_for "w3 to be active" worker_is w3 active
asking asked 8500
asking asked_kept 8501
wait_for "requests on w3" requests_above w3 20
stop "$pid_w3" KILL
wait_for "the end of w3" eval '! worker_known w3'
start_agent 1 "${model[@]}"
wait_for "w1 to be active" worker_is w1 active
wait_for "requests on w1" requests_above w1 20
kill -STOP "$pid_w1"
wait_for "the load balancer to notice" eval '! worker_is w1 active'
ended asked
ended asked_kept
kill -CONT "$pid_w1"

stop "$pid_lb" KILL
start_lb
tell next plain
expect "a segment for a load balancer that was started again" "${answer% *}" = reset
watch_delays
tell next kept
expect "another" "${answer% *}" = reset
expect_ms "time until the reset" "${answer#* }" 1000
eval "exec $to>&-"
echo "$(figure asked refused) of 200 requests ended with a notice while workers died, $(figure asked_kept refused) of 200 that are kept"
