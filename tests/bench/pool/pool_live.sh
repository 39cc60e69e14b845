#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A real doorbell-lb with hundreds of simulated workers (bench-pool-workers) in namespaces, under load
# of doorbell bench:
#
#   register   until all are active                                  register_N_s
#   churn      of 32 workers some join, leave and die at random      churn_lost, churn_duplicated, churn_refused
#   roll       every worker of 16 is restarted, one by one           roll_lost, roll_duplicated, roll_refused
#   restart    the load balancer is killed and started again         relearn_after_lb_restart_s
#
#   pool_live.sh [--workers N] [--events N] [--seconds S] [--rate N] [--only PART] [--json FILE]
#                [--commit TEXT] [--machine TEXT]
#
# BUILD is the build directory. Root, for namespaces.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
build=$(cd "${BUILD:-$root/build-bench}" && pwd)
# shellcheck source=tests/net/topology.sh
. "$root/tests/net/topology.sh"
# shellcheck source=tests/bench/live.sh
. "$root/tests/bench/live.sh"

vip=10.200.0.100
workers=512 events=100 seconds=60 rate=1000 only=''

live_options "workers events seconds rate only" "$@"

wanted() {
    [ -z "$only" ] || [ "$only" = "$1" ]
}

# metric NAME VALUE
metric() {
    echo "$1 $2"
    jq -n --arg name "$1" --argjson value "$2" '{($name): $value}' >>"$dir/metrics"
}

# Until the last event has happened; then the load may end.
wait_for_events() {
    until grep -q '"event": "done"' "$dir/pool.log"; do
        is_running "$pid_pool" || { cat "$dir/pool.log" >&2 && exit 1; }
        sleep 0.1
    done
}

# load SECONDS: in the background; load_end PREFIX counts what became of it
load() {
    start load client bash -c 'exec "$@" >"$0"' "$dir/load.json" "$build/control/doorbell" bench \
        --to "$vip:8500" --rate "$rate" --duration "$1" --verify echo --quiet --json \
        --timeout-ms 5000
}

load_end() {
    while is_running "$pid_load"; do
        sleep 0.05
    done
    stop "$pid_load"
    metric "$1_requests" "$(jq .requests "$dir/load.json")"
    metric "$1_lost" "$(jq '.lost + .wrong' "$dir/load.json")"
    metric "$1_duplicated" "$(jq .duplicates "$dir/load.json")"
    metric "$1_refused" "$(jq .refused "$dir/load.json")"
    metric "$1_p99_ms" "$(jq '.latency.p99_us / 1e3' "$dir/load.json")"
}

active() {
    cli --json services show echo 2>/dev/null | jq -r .service.workers
}

restart() {
    local start
    start_pool "$workers" 2000 250
    stop "$pid_lb" KILL
    start=$EPOCHREALTIME
    start_lb
    until [ "$(active)" = "$workers" ]; do
        sleep 0.02
    done
    metric relearn_after_lb_restart_s "$(jq -n "$EPOCHREALTIME - $start")"
    stop "$pid_pool"
}

live_begin
topology_up "pool$$" 1
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, policy: least-outstanding}" \
    "workers: {timeout_ms: 2000}"
start_lb
: >"$dir/metrics"
if wanted register; then
    start_pool "$workers" 2000 250
    stop "$pid_pool"
    metric "register_${workers}_s" "$(grep '"event": "end"' "$dir/pool.log" | jq .register_s)"
fi
# So few and so slow that a worker that dies has requests.
if wanted churn; then
    start_pool 32 20000 250 --events "$events" --seconds "$seconds" --seed 3
    load $((seconds + seconds / 2))
    wait_for_events
    load_end churn
    stop "$pid_pool"
fi
if wanted roll; then
    start_pool 16 5000 250 --roll
    load 10
    wait_for_events
    load_end roll
    stop "$pid_pool"
fi
! wanted restart || restart
[ -z "$json" ] || jq -s --arg commit "$commit" --arg machine "$machine" \
    '{bench: "pool-live", $commit, $machine, metrics: add}' "$dir/metrics" >"$json"
