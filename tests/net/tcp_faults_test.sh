#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# TCP clients of large requests and replies see no wrong byte when workers and load balancers fail: a request whose
# worker is killed before all of it was written ends with a notice, or is answered by another worker where it is kept;
# workers are killed and halted under load; a load balancer that was killed and started again resets at once, and so
# does another one that gets its address. A worker that is killed in the middle of a reply takes no other with it.
. "$(dirname "$0")/story.sh"

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

tell_client tcp_faults.py "$vip"

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
        --min 200000 --max 1048576 --requests 500 --limit-s 200
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
    expect "$1: answered or refused" $(($(figure "$1" answered) + $(figure "$1" refused))) -eq 500
}

start_agent 3 "${model[@]}"
start_agent 1 "${model[@]}"
wait_for "w3 to be active" worker_is w3 active
wait_for "w1 to be active" worker_is w1 active
asking asked 8500
asking asked_kept 8501
wait_for "requests on w3" requests_above w3 20
stop "$pid_w3" KILL
wait_for "the end of w3" eval '! worker_known w3'
wait_for "requests on w1" requests_above w1 20
kill -STOP "$pid_w1"
wait_for "the load balancer to notice" eval '! worker_is w1 active'
ended asked
ended asked_kept
kill -CONT "$pid_w1"

# A second load balancer with the same address, behind a link of its own, and w3 for it.
namespace_add "$tag-lb2"
ip netns exec "$tag-lb2" sysctl -qw net.ipv6.conf.{all,default}.disable_ipv6=1
veth "$tag-client" c1 "$tag-lb2" clients
veth "$tag-lb2" fabric "$tag-fabric" lb2
ip -n "$tag-fabric" link set lb2 master br0
ip -n "$tag-lb2" addr add 10.201.0.253/24 dev fabric
sed 's|10\.201\.0\.1/24|10.201.0.2/24|; s|10\.201\.0\.254|10.201.0.253|; s|control\.sock|second.sock|; s|state\.json|second.json|' \
    "$dir/lb.yaml" >"$dir/second.yaml"
second() {
    "$build/control/doorbell" --socket "$dir/second.sock" "$@"
}
mkdir "$dir/second"
RUNTIME_DIRECTORY=$dir/second start lb2 lb2 "$build/doorbell-lb" --config "$dir/second.yaml"
wait_for "the second load balancer" second version
start w3 w3 "$build/gpu-agent/doorbell-agent" --lb 10.201.0.253:4790 --name w3 --device "${device_kind:-net_af_packet}0,iface=w0" \
    --address 10.201.0.13/24 --no-hugepages --model "${model[@]}"
wait_for "w3 to be active there" eval '[ "$(second --json workers show w3 | jq -r .worker.state)" = active ]'

tell open moved 8500
expect "a connection that is about to move" "$answer" = right
stop "$pid_lb" KILL
ip -n "$tag-client" route add "$vip/32" dev c1 src 10.200.0.2
watch_delays
tell next moved
expect "a segment for the load balancer that has the address now" "${answer% *}" = reset
expect_ms "time until its reset" "${answer#* }" 1000
moved_ms=${answer#* }
tell open moved 8500
expect "the same client's next connection" "$answer" = right
expect "requests of w3" "$(second --json workers show w3 | jq .worker.requests)" -eq 1
ip -n "$tag-client" route del "$vip/32"
stop "$pid_lb2"

start_lb
tell next plain
expect "a segment for a load balancer that was started again" "${answer% *}" = reset
watch_delays
tell next kept
expect "another" "${answer% *}" = reset
expect_ms "time until the reset" "${answer#* }" 1000

# Two huge replies for a client that reads neither: the worker is killed in the middle of the second one.
huge=8388608
stop "$pid_w1"
stop "$pid_w2"
stop "$pid_lb"
# Room for both replies, the second one twice, and what other connections ask.
topology_config "$(services | sed 's/1MiB/8MiB/g')" "tcp: {client_percent: 100}"
start_lb
model=(echo --model-args "max_request=$huge" --slots 4)

# midway NAME PORT N: the N-th time. The second reply is under way: all else that w1 sends are headers and acknowledgements,
# less than a tenth.
midway() {
    start_agent 1 "${model[@]}"
    wait_for "w1 to be active" worker_is w1 active
    start midway w1 /usr/bin/python3 "$here/kill_midway.py" w0 $((huge * 17 / 10)) "$pid_w1"
    wait_for "the one who kills" eval '[ "$(grep -c watching "$dir/midway.log")" -eq '"$3"' ]'
    tell two "$1" "$2"
    while is_running "$pid_midway"; do
        sleep 0.05
    done
    stop "$pid_midway"
    stop "$pid_w1" KILL
    expect "bytes that w1 had sent of two replies" "$(tail -n 1 "$dir/midway.log")" -lt $((2 * huge))
}

midway cut 8500 1
tell both cut
expect "replies of a worker that was killed in the second" "$answer" = "right, status 3"
wait_for "the end of w1" eval '! worker_known w1'
midway whole 8501 2
start_agent 2 "${model[@]}"
wait_for "w2 to be active" worker_is w2 active
wait_for "the end of w1" eval '! worker_known w1'
tell small cut
expect "the next one of its connection" "$answer" = right
tell both whole
expect "replies, the second to a request that was kept" "$answer" = "right, right"
expect "requests of w2" "$(worker w2 requests)" -eq 2
tell small whole
expect "the next one of that connection" "$answer" = right
eval "exec $told_to>&-"
echo "$(figure asked refused) of 500 requests ended with a notice while workers died, $(figure asked_kept refused) of 500 that are kept"
echo "a load balancer that had got the address reset after $moved_ms ms"
