#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The cost of a fault to the clients whose requests the failed worker had: four workers at 20 ms per
# batch of 16, 800 requests outstanding, replay allowed. One is killed, halted, or its cable is cut.
# No client sees an error, and the slowest of the affected has its answer within 1.5 times what 99 % have
# undisturbed, plus the time until the load balancer doubted the worker; and that takes no longer for a
# worker which was halted once.
#
# TAIL_FAULTS: which (default: kill9 halt cut).
. "$(dirname "$0")/story.sh"
default_workers='' default_fabric=''

topology_up "story$$" 4
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, replay: 2}"
start_lb
# shellcheck disable=SC2054
model=(echo --slots 256 --max-batch 16 --model-args batch_us=20000,sleep=1)
start_agents 4 "${model[@]}"

offer() {
    load_start "$1" echo --to "$vip:8500" --sockets 80 --window 10 --duration-s 4 --min-size 16 \
        --max-size 64 --timeout-ms 8000 --records "$dir/$1.records"
}

# begun: waits until the load's first burst has gone
begun() {
    requests_above w1 "$before"
}

kill9() {
    kill -KILL "$pid_w1"
}
kill9_undo() {
    stop "$pid_w1" KILL
    start_agent 1 "${model[@]}"
}
halt() {
    kill -STOP "$pid_w1"
}
halt_undo() {
    kill -CONT "$pid_w1"
}
cut() {
    ip -n "$tag-fabric" link set w1 down
}
cut_undo() {
    ip -n "$tag-fabric" link set w1 up
}

# told FAULT: writes its figures to $dir/FAULT.tail
told() {
    local fault=$1 at watcher
    start "watch-$fault" fabric python3 "$here/in_hand.py" watch lb 10.201.0.11 "$dir/$fault.watched"
    watcher=$pid
    expect_log "watch-$fault" ready
    before=$(($(worker w1 requests) + 1200))
    offer "$fault"
    wait_for "requests on w1" begun
    watch_delays
    at=$(date +%s.%N)
    "$fault"
    load_wait "$fault"
    stop "$watcher"
    "${fault}_undo"
    wait_for "w1 to be back" worker_is w1 active
    expect_none_lost "$fault"
    python3 "$here/in_hand.py" judge "$dir/$fault.watched" "$dir/$fault.records" "$dir/lb.log" w1 \
        "$at" "$(figure base p99_us)" >"$dir/$fault.tail"
    rm "$dir/$fault.watched" "$dir/watch-$fault.log"
    expect "$fault: affected" "$(jq .affected "$dir/$fault.tail")" -gt 0
}

# tail_figure JQ: prints whole ms
tail_figure() {
    jq "$1 | floor" "$dir/$fault.tail"
}

tail_of_fault() {
    offer base
    load_wait base
    expect_none_lost base
    told "$fault"
    [ -z "${STORY_FIGURES:-}" ] || return 0
    in_time "$fault: until the load balancer doubted it" "$(tail_figure .detection_ms)" 400 &&
        in_time "$fault: the slowest from then on" "$(tail_figure '.affected_max_ms - .detection_ms')" \
            "$(tail_figure '1.5 * .undisturbed_p99_ms + 1')"
}

for fault in ${TAIL_FAULTS:-kill9 halt cut}; do
    measure tail_of_fault
    for key in affected affected_max_ms affected_p99_ms undisturbed_p99_ms detection_ms over_undisturbed; do
        record "${fault}_$key" "$(jq ".$key" "$dir/$fault.tail")"
    done
    echo "$fault: $(cat "$dir/$fault.tail")"
done
