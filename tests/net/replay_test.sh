#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Four workers at 70 % of their capacity on this machine, replay allowed. One is killed, then
# another stops answering without going away: no client sees an error, a wrong byte or a reply twice,
# and the requests that they held are answered by the others soon. Then the load balancer itself is
# stopped for a while: it suspects no worker for that.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 4
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, replay: 2}" "workers: {timeout_ms: 1000}"
start_lb
# One request at a time, 4 ms each, as a device would take: up to 250/s per worker.
model=(echo --model-args batch_us=4000,sleep=1 --max-batch 1)
start_agents 4 "${model[@]}"

# All four always have a next request. Three have 75 % of that capacity.
load full echo --to "$vip:8500" --sockets 64 --duration-s 2 || true
expect_none_lost full
capacity=$(figure full 'rps | floor')
rate=$((capacity * 7 / 10))

offer() {
    load_start "$1" echo --to "$vip:8500" --sockets 64 --window 64 --rate "$rate" --duration-s 4 \
        --timeout-ms 8000
}

# Prints a run's 99th percentile and its excess over the undisturbed one's, whole ms.
added() {
    jq -n --slurpfile run "$dir/$1.json" --slurpfile base "$dir/base.json" \
        '($run[0].p99_us - $base[0].p99_us) / 1000 | floor'
}

w2_is_gone() {
    ! worker_known w2
}

kill_w1() {
    wait_for "requests on w1" requests_above w1 200
    stop "$pid_w1" KILL
    load_wait killed
    start_agent 1 "${model[@]}"
    wait_for "w1 to be back" worker_is w1 active
}

halt_w2() {
    wait_for "requests on w1" requests_above w1 200
    kill -STOP "$pid_w2"
    wait_for "w2 to be gone" w2_is_gone
    kill -CONT "$pid_w2"
    load_wait halted
    wait_for "w2 to be back" worker_is w2 active
}

# disturb RUN COMMAND: nothing may be lost in any try
disturb() {
    watch_delays
    offer "$1"
    "$2"
    expect_none_lost "$1"
    in_time "$1: added to p99" "$(added "$1")" 150
}

offer base
load_wait base
expect_none_lost base
measure disturb killed kill_w1
measure disturb halted halt_w2
again=$(cli --json services list | jq ".services[0].replays")
expect "requests sent again" "$again" -gt 0

gone() {
    grep -c "state=gone" "$dir/lb.log"
}
before=$(gone)
offer still
wait_for "requests on w1" requests_above w1 500
kill -STOP "$pid_lb"
sleep 1.4 # longer than a worker may be silent
kill -CONT "$pid_lb"
load_wait still
expect_none_lost still
expect "workers given up for the load balancer's halt" "$(gone)" -eq "$before"

record kill9_errors_with_replay $(($(figure killed lost) + $(figure killed refused) + $(figure killed wrong)))
record replayed "$again"
echo "capacity $capacity/s; p99 $(figure base p99_us) us; killed: $(added killed) ms more; halted: $(added halted) ms more;" \
    "$again sent again"
