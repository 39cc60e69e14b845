#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What doorbell size predicts beside what doorbell bench measures: a real doorbell-lb and real agents in
# namespaces, whose model takes a known time (echo, asleep, so that one machine has room for them).
#
#   size.sh [--seconds S] [--loads "30 50 70 85"] [--only single|batch] [--json FILE] [--commit TEXT] [--machine TEXT]
#
# Two pools: `single` answers one request at a time, `batch` up to eight together. For each and for
# each load: the prediction of somebody who knows only rates and times (another seed), the same for the
# very arrival times that were sent, and the measurement. size_error_pct is the largest difference of
# the first from the last, of medians and 99th percentiles.
#
# BUILD is the build directory. Root, for namespaces.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(cd "${BUILD:-$root/build-bench}" && pwd)
# shellcheck source=tests/net/topology.sh
. "$root/tests/net/topology.sh"

vip=10.200.0.100
seconds=40 loads="30 50 70 85" only='' json='' commit=unknown machine=$(uname -n)
slots=256

while [ $# -gt 0 ]; do
    case $1 in
    --seconds) seconds=$2 && shift ;;
    --loads) loads=$2 && shift ;;
    --only) only=$2 && shift ;;
    --json) json=$2 && shift ;;
    --commit) commit=$2 && shift ;;
    --machine) machine=$2 && shift ;;
    -h | --help) sed -n '4,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *) echo "size.sh: no option '$1'; see --help" >&2 && exit 2 ;;
    esac
    shift
done

[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root for network namespaces" && exit 77; }

bench() {
    ip netns exec "$tag-client" "$build/control/doorbell" bench --to "$vip:8500" --json --quiet \
        --timeout-ms 10000 "$@"
}

# predict RATE SEED SIMULATED: of the pool that is up
predict() {
    "$build/control/doorbell" size --rate "$1" --seed "$2" --simulated "$3" --batch-us "$batch_us" \
        --each-us "$each_us" --max-batch "$max_batch" --workers "$workers" --request 64 --reply 64 \
        --slots $slots --rtt-us "$rtt" --client-gbps 10 --fabric-gbps 10 --worker-gbps 10 --json
}

# pool NAME WORKERS BATCH-US EACH-US MAX-BATCH: its points as JSON lines in $dir/points
pool() {
    local name=$1 load rate seed i
    workers=$2 batch_us=$3 each_us=$4 max_batch=$5
    [ -z "$only" ] || [ "$only" = "$name" ] || return 0
    for i in $(seq 1 "$workers"); do
        start_agent "$i" echo --slots $slots --max-batch "$max_batch" --max-run-ms 1000 \
            --model-args "sleep=1,batch_us=$batch_us,delay_us=$each_us"
    done
    for i in $(seq 1 "$workers"); do
        wait_for "w$i to be active" worker_is "w$i" active
    done
    # One at a time: what remains without the model is the round trip.
    rtt=$(bench --window 1 --flows 1 --duration 3 |
        jq "[.latency.p50_us - $batch_us - $each_us, 1] | max | floor")
    for load in $loads; do
        seed=$((load * 7 + workers))
        rate=$(jq -n "$load / 100 * $workers * $max_batch / ($batch_us + $max_batch * $each_us) * 1e6")
        bench --rate "$rate" --duration "$seconds" --warmup "$(jq -n "$seconds / 9")" \
            --seed $seed >"$dir/measured.json" ||
            { echo "bench failed at $rate/s: $(cat "$dir/measured.json")" >&2 && exit 1; }
        # What was sent, warm-up included: the simulation leaves the same tenth away.
        predict "$rate" $seed "$(jq .requests "$dir/measured.json")" >"$dir/replayed.json" || true
        predict "$rate" 424242 1000000 >"$dir/predicted.json" || true
        point "$name" "$load" "$rate"
    done
    for i in $(seq 1 "$workers"); do
        local p=pid_w$i
        stop "${!p}"
    done
}

# point NAME LOAD RATE: one row, said and kept
point() {
    jq -cn --slurpfile m "$dir/measured.json" --slurpfile p "$dir/predicted.json" \
        --slurpfile r "$dir/replayed.json" --arg pool "$1" --argjson load "$2" --argjson rate "$3" \
        --argjson rtt "$rtt" '
        def error($of; $to): ($of - $to) / $to * 100;
        def errors($from): {
            p50: error($from[0].latency.p50_us; $m[0].latency.p50_us),
            p90: error($from[0].latency.p90_us; $m[0].latency.p90_us),
            p99: error($from[0].latency.p99_us; $m[0].latency.p99_us),
            mean: error($from[0].latency.mean_us; $m[0].latency.mean_us)};
        def figures($from): $from[0].latency | {p50_us, p90_us, p99_us, mean_us};
        {pool: $pool, load_pct: $load, rate: $rate, rtt_us: $rtt, requests: $m[0].counted,
         measured: figures($m), predicted: figures($p), predicted_mean_batch: $p[0].mean_batch,
         sent_late_p99_us: $m[0].sent_late.p99_us,
         size_error_pct: errors($p), same_arrivals_error_pct: errors($r)}' >"$dir/point"
    cat "$dir/point" >>"$dir/points"
    jq -r '[.pool, "\(.load_pct) %", (.measured.p50_us / 1e3), (.predicted.p50_us / 1e3),
        .size_error_pct.p50, (.measured.p99_us / 1e3), (.predicted.p99_us / 1e3),
        .size_error_pct.p99, .same_arrivals_error_pct.p99] | map(if type == "number" then
        (. * 100 | round / 100) else . end) | @tsv' "$dir/point" |
        awk '{ printf "%-7s %4s %1s  p50 %7.2f ms, predicted %7.2f (%+5.1f %%)  p99 %7.2f, predicted %7.2f (%+5.1f %%; for the same arrivals %+5.1f)\n", $1, $2, $3, $4, $5, $6, $7, $8, $9, $10 }'
}

# What else runs here must not be measured: real-time, where that is allowed.
chrt --rr -p 1 $$ 2>/dev/null || echo "without real-time priority: other programs disturb this" >&2
trap 'exit 130' INT
trap 'exit 143' TERM
trap topology_down EXIT
topology_up "size$$" 4
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, policy: least-outstanding, queue: 1024,
     queue_timeout_ms: 10000}" "${extra:-}"
start_lb
: >"$dir/points"
pool single 4 0 10000 1
pool batch 2 8000 1000 8
jq -s --arg commit "$commit" --arg machine "$machine" --argjson seconds "$seconds" '
    def worst($key): [.[] | .[$key] | .p50, .p99 | fabs] | max;
    {bench: "size", $commit, $machine, $seconds,
     metrics: {size_error_pct: worst("size_error_pct"),
               same_arrivals_error_pct: worst("same_arrivals_error_pct")},
     points: .}' "$dir/points" >"$dir/result.json"
jq -r '"size_error_pct \(.metrics.size_error_pct * 10 | round / 10) (for the same arrivals \(.metrics.same_arrivals_error_pct * 10 | round / 10))"' "$dir/result.json"
[ -z "$json" ] || cp "$dir/result.json" "$json"
