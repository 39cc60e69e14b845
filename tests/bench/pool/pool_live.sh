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

vip=10.200.0.100
workers=512 events=100 seconds=60 rate=1000 only='' json='' commit=unknown machine=$(uname -n)

while [ $# -gt 0 ]; do
    case $1 in
    --workers) workers=$2 && shift ;;
    --events) events=$2 && shift ;;
    --seconds) seconds=$2 && shift ;;
    --rate) rate=$2 && shift ;;
    --only) only=$2 && shift ;;
    --json) json=$2 && shift ;;
    --commit) commit=$2 && shift ;;
    --machine) machine=$2 && shift ;;
    -h | --help) sed -n '4,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *) echo "pool_live.sh: no option '$1'; see --help" >&2 && exit 2 ;;
    esac
    shift
done

[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root for network namespaces" && exit 77; }

wanted() {
    [ -z "$only" ] || [ "$only" = "$1" ]
}

# metric NAME VALUE
metric() {
    echo "$1 $2"
    jq -n --arg name "$1" --argjson value "$2" '{($name): $value}' >>"$dir/metrics"
}

# pool COUNT EACH-US OPTIONS...: starts the workers, and waits until they are active
pool() {
    local count=$1 each_us=$2
    shift 2
    : >"$dir/pool.log"
    start pool w1 "$build/tests/bench/bench-pool-workers" --lb 10.201.0.254:4790 \
        --device net_af_packet0,iface=w0 --address 10.201.0.11/24 --workers "$count" --each-us "$each_us" \
        --heartbeat-ms 250 --control "$dir/control.sock" "$@"
    wait_for "$count workers to be active" grep -q '"event": "active"' "$dir/pool.log"
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
    pool "$workers" 2000
    stop "$pid_lb" KILL
    start=$EPOCHREALTIME
    start_lb
    until [ "$(active)" = "$workers" ]; do
        sleep 0.02
    done
    metric relearn_after_lb_restart_s "$(jq -n "$EPOCHREALTIME - $start")"
    stop "$pid_pool"
}

# What else runs here must not be measured: real-time, where that is allowed.
chrt --rr -p 1 $$ 2>/dev/null || echo "without real-time priority: other programs disturb this" >&2
trap 'exit 130' INT
trap 'exit 143' TERM
trap topology_down EXIT
topology_up "pool$$" 1
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, policy: least-outstanding}" \
    "workers: {timeout_ms: 2000}"
start_lb
: >"$dir/metrics"
if wanted register; then
    pool "$workers" 2000
    stop "$pid_pool"
    metric "register_${workers}_s" "$(grep '"event": "end"' "$dir/pool.log" | jq .register_s)"
fi
# So few and so slow that whoever dies has requests.
if wanted churn; then
    pool 32 20000 --events "$events" --seconds "$seconds" --seed 3
    load $((seconds + seconds / 2))
    wait_for_events
    load_end churn
    stop "$pid_pool"
fi
if wanted roll; then
    pool 16 5000 --roll
    load 10
    wait_for_events
    load_end roll
    stop "$pid_pool"
fi
! wanted restart || restart
[ -z "$json" ] || jq -s --arg commit "$commit" --arg machine "$machine" \
    '{bench: "pool-live", $commit, $machine, metrics: add}' "$dir/metrics" >"$json"
