#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The load balancer stops while the slots of two workers and its queue are full: no request
# ends in silence. Requests that it has time for get their replies, the others a notice, and
# new ones are refused at once; a second signal ends it at once.
#
# STOP_ROUNDS is how often the first part runs (default 2).
#
# Runs beside another: it waits for stops most of the time.
. "$(dirname "$0")/story.sh"

in_hand=3072

# begin BATCH_US EXTRA-YAML [ARGUMENTS...]: starts a load balancer with EXTRA-YAML and two workers of
# 1,024 slots, 16 requests at a time
begin() {
    local batch_us=$1
    topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, replay: 1, queue_timeout_ms: 30000,
     request_timeout_ms: 30000, flow_timeout_ms: 60000, one_way_timeout_ms: 60000}" "$2"
    shift 2
    : >"$dir/lb.log"
    start_lb
    start_agents 2 echo --slots 1024 --max-batch 16 --max-run-ms 1000 \
        --model-args "batch_us=$batch_us,sleep=1" "$@"
}

# The agents would run first what they have of the load balancer that is gone.
end() {
    stop "$pid_w1" KILL
    stop "$pid_w2" KILL
}

outstanding() {
    echo $(($(worker w1 outstanding) + $(worker w2 outstanding) + $(cli --json services list | jq '.services[0].queued')))
}

all_have_arrived() {
    local requests queued
    requests=$(($(worker w1 requests) + $(worker w2 requests)))
    queued=$(cli --json services list | jq '.services[0].queued')
    # A worker that is behind with its acknowledgements may leave no room for the last of them.
    [ $((requests + queued + $(drops queue_full))) -ge $in_hand ]
}

# fill NAME: sends as many requests as there is room for, and waits until they are there
fill() {
    load_start "$1" echo --to "$vip:8500" --sockets 48 --window 64 --requests 64 --rate 10000 \
        --min-size 16 --max-size 64 --timeout-ms 15000
    wait_for "full slots and a full queue" all_have_arrived
}

# Expects each request to be answered by a reply or a notice.
expect_no_silence() {
    expect "$1: without reply or notice" "$(figure "$1" lost)" -eq 0
    expect "$1: wrong" "$(figure "$1" wrong)" -eq 0
    expect "$1: answered or told" "$(figure "$1" '| .answered + .refused')" -eq "$(figure "$1" requests)"
}

# term: stops the load balancer, and expects that it ends well within the time that stop() gives it
term() {
    stop "$pid_lb"
    expect "exit status of doorbell-lb" "$status" -eq 0
}

topology_up "story$$" 2

# More requests than there is time for: the workers would need 10 s.
silent=0 hand=0
for ((round = 1; round <= ${STOP_ROUNDS:-2}; round++)); do
    begin 100000 "stop_timeout_ms: 500"
    fill "out$round"
    hand=$((hand + $(outstanding)))
    term
    load_wait "out$round" || true
    silent=$((silent + $(figure "out$round" lost)))
    end
done
record silent "$silent"
record in_hand "$((hand / (round - 1)))"
for ((i = 1; i < round; i++)); do
    expect_no_silence "out$i"
    expect "answered in the time that there was" "$(figure "out$i" answered)" -gt 0
    expect "told as it was over" "$(figure "out$i" notices_by_code.timeout)" -gt 0
    expect "told that they never ran" "$(figure "out$i" notices_by_code.stopping)" -gt 500
done
expect_log lb "stopping: out of time"

# There is enough time: every request is answered, though one of the two workers is killed meanwhile. New
# requests get the notice that sends them elsewhere.
begin 40000 "stop_timeout_ms: 20000"
fill served
kill -TERM "$pid_lb"
expect_log lb "stopping: no new requests"
load late echo --to "$vip:8500" --sockets 4 --requests 5 || true
expect "refused meanwhile" "$(figure late notices_by_code.stopping)" -eq 20
cli config apply "$dir/lb.yaml" >"$dir/apply.log" 2>&1 && fail "a configuration was applied meanwhile"
grep -q "stopping" "$dir/apply.log" || fail "config apply said: $(cat "$dir/apply.log")"
stop "$pid_w1" KILL
load_wait served || true
expect_none_lost served
load_wait_lb() {
    ! is_running "$pid_lb"
}
wait_for "the load balancer to end once all is answered" load_wait_lb
stop "$pid_lb"
expect "exit status" "$status" -eq 0
expect_log lb "stopped: all answered or notified"
end

# No request to wait for and no worker; then a second signal in the middle.
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
start_lb
watch_delays
from=$(date +%s%3N)
term
expect_ms "to stop without anything in hand" $(($(date +%s%3N) - from)) 2000
begin 100000 "stop_timeout_ms: 30000"
fill twice
kill -TERM "$pid_lb"
expect_log lb "stopping: no new requests"
kill -TERM "$pid_lb"
term
expect_log lb "another signal"
stop "$pid_twice" KILL # it would wait for its replies
end
echo "$hand requests in hand in $((round - 1)) stops, $silent silent"
