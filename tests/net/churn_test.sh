#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Workers come and go under load: first all are restarted one by one, then they join, leave, are
# killed or stopped at random. Nothing is lost and nothing comes twice.
#
#   CHURN_EVENTS=100 CHURN_SEED=7 tests/net/churn_test.sh (default: 30 events of seed 1)
#
# Runs beside another: it waits for workers most of the time.
. "$(dirname "$0")/story.sh"
default_workers='' default_fabric=''

events=${CHURN_EVENTS:-30}
seed=${CHURN_SEED:-1}
RANDOM=$seed
workers=5

topology_up "story$$" "$workers"
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, replay: 8, queue_timeout_ms: 5000}"
start_lb
model=(echo --model-args batch_us=2000,sleep=1 --max-batch 8)
start_agents "$workers" "${model[@]}"
all=$(seq 1 "$workers")

# The load runs until load_end.
offer() {
    load_start run echo --to "$vip:8500" --sockets 64 --window 16 --rate 600 --duration-s 3600 \
        --timeout-ms 8000
}

offer
for i in $all; do
    pid=pid_w$i
    stop "${!pid}"
    start_agent "$i" "${model[@]}"
    wait_for "w$i to be back" worker_is "w$i" active
done
load_end run
expect_none_lost run
rolled=$(figure run requests)
record roll_lost "$(($(figure run lost) + $(figure run refused)))"

declare -A state
for i in $all; do
    state[$i]=up
done

# Prints the number of a random worker in this state, or nothing.
any() {
    local i found=()
    for i in $all; do
        [ "${state[$i]}" = "$1" ] && found+=("$i")
    done
    [ ${#found[@]} -eq 0 ] || echo "${found[RANDOM % ${#found[@]}]}"
}

# active_above N
active_above() {
    [ "$(cli --json workers list | jq '[.workers[] | select(.state == "active")] | length')" -gt "$1" ]
}

offer
declare -A done_events=([join]=0 [leave]=0 [kill]=0 [hang]=0)
for ((n = 0; n < events; n++)); do
    sleep 0.4 # the pace of events, not a wait
    kinds=(join leave kill hang)
    kind=${kinds[RANDOM % 4]}
    # Two workers must stay, or requests have no worker to go to.
    active_above 2 || kind=join
    case $kind in
    join)
        i=$(any down) && [ -n "$i" ] || continue
        start_agent "$i" "${model[@]}"
        state[$i]=up
        ;;
    leave | kill | hang)
        i=$(any up)
        [ -n "$i" ] || continue
        pid=pid_w$i
        case $kind in
        leave) stop "${!pid}" ;;
        kill) stop "${!pid}" KILL ;;
        hang)
            kill -STOP "${!pid}"
            wait_for "w$i to be given up" eval "! worker_is w$i active"
            stop "${!pid}" KILL
            ;;
        esac
        state[$i]=down
        ;;
    esac
    done_events[$kind]=$((done_events[$kind] + 1))
    wait_for "two active workers" active_above 1
done
load_end run
expect_none_lost run
record churn_lost "$(figure run lost)"
record churn_refused "$(figure run refused)"
record churn_duplicated "$(figure run duplicates)"
record churn_requests "$(figure run requests)"
echo "rolling restart: $rolled requests, none lost; $(figure run requests) over ${done_events[join]} joins," \
    "${done_events[leave]} leaves, ${done_events[kill]} kills, ${done_events[hang]} hangs: lost 0, twice 0," \
    "$(cli --json services list | jq '.services[0].replays') sent again (seed $seed)"
