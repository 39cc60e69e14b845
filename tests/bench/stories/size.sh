#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What doorbell size predicts beside what doorbell bench measures: a real doorbell-lb and real agents in
# namespaces, whose model takes a known time (echo, asleep, so that one machine has room for them).
#
#   size.sh [--rounds N] [--seconds S] [--loads "30 50 70 85"] [--only single|batch] [--json FILE]
#           [--commit TEXT] [--machine TEXT]
#
# Two pools: `single` answers one request at a time, `batch` up to eight together. For each and for
# each load: the prediction of somebody who knows only rates and times, the same for the very arrival
# times that were sent, and the measurement: medians over the rounds, in which all loads take turns.
# size_error_pct is the largest difference of the first from the last, of medians and 99th percentiles.
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
rounds=3 seconds=20 loads="30 50 70 85" only=''
slots=256

live_options "rounds seconds loads only" "$@"

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

# pool NAME WORKERS BATCH-US EACH-US MAX-BATCH: what it does goes to $dir/rows
pool() {
    local name=$1 load rate round i p
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
    for round in $(seq 1 "$rounds"); do
        for load in $loads; do
            rate=$(jq -n "$load / 100 * $workers * $max_batch /
                ($batch_us + $max_batch * $each_us) * 1e6")
            row "$name" "$load" "$rate" $((round * 1000 + load * 7 + workers))
        done
    done
    for load in $loads; do
        said "$name" "$load"
    done
    for i in $(seq 1 "$workers"); do
        p=pid_w$i
        stop "${!p}"
    done
}

# row NAME LOAD RATE SEED: one measurement, and its predictions
row() {
    bench --rate "$3" --duration "$seconds" --warmup "$(jq -n "$seconds / 9")" --seed "$4" \
        >"$dir/measured.json" ||
        { echo "bench failed at $3/s: $(cat "$dir/measured.json")" >&2 && exit 1; }
    # What was sent, warm-up included: the simulation leaves the same tenth away.
    predict "$3" "$4" "$(jq .requests "$dir/measured.json")" >"$dir/replayed.json" || true
    predict "$3" $((900000 + $4)) 1000000 >"$dir/predicted.json" || true
    jq -cn --slurpfile m "$dir/measured.json" --slurpfile p "$dir/predicted.json" \
        --slurpfile r "$dir/replayed.json" --arg pool "$1" --argjson load "$2" --argjson rate "$3" \
        --argjson rtt "$rtt" '
        def figures: .[0].latency | {p50_us, p90_us, p99_us, mean_us};
        {$pool, load_pct: $load, $rate, rtt_us: $rtt, requests: $m[0].counted,
         sent_late_p99_us: $m[0].sent_late.p99_us, measured: ($m | figures),
         predicted: ($p | figures), same_arrivals: ($r | figures)}' >>"$dir/rows"
}

# The rows of one pool and load as one point: medians, and how far the predictions are from them.
points='
    def median: sort | if length % 2 == 1 then .[length / 2 | floor]
        else (.[length / 2 - 1] + .[length / 2]) / 2 end;
    def medians($of): [.[][$of]] | . as $rows | .[0] | keys | map({key: ., value: (. as $k |
        [$rows[][$k]] | median)}) | from_entries;
    def errors($of; $to): $of | with_entries(.value = (.value - $to[.key]) / $to[.key] * 100);
    group_by(.pool, .load_pct) | map({pool: .[0].pool, load_pct: .[0].load_pct, rate: .[0].rate,
        rtt_us: .[0].rtt_us, rounds: length, requests: (map(.requests) | add),
        measured: medians("measured"), predicted: medians("predicted"),
        same_arrivals: medians("same_arrivals"),
        measured_p99_us_of_rounds: map(.measured.p99_us),
        sent_late_p99_us: map(.sent_late_p99_us)}
        | .size_error_pct = errors(.predicted; .measured)
        | .same_arrivals_error_pct = errors(.same_arrivals; .measured))'

# said NAME LOAD: a line
said() {
    jq -s "$points" "$dir/rows" | jq -r --arg pool "$1" --argjson load "$2" '
        .[] | select(.pool == $pool and .load_pct == $load) |
        [.pool, .load_pct, .measured.p50_us / 1e3, .predicted.p50_us / 1e3, .size_error_pct.p50_us,
        .measured.p99_us / 1e3, .predicted.p99_us / 1e3, .size_error_pct.p99_us,
        .same_arrivals_error_pct.p99_us] | @tsv' |
        awk '{ printf "%-7s %2d %%  p50 %6.2f ms, predicted %6.2f (%+5.1f %%)  p99 %6.2f, predicted %6.2f (%+5.1f %%; for the same arrivals %+5.1f)\n", $1, $2, $3, $4, $5, $6, $7, $8, $9 }'
}

live_begin
topology_up "size$$" 4
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, policy: least-outstanding, queue: 1024,
     queue_timeout_ms: 10000}" "${extra:-}"
start_lb
pool single 4 0 10000 1
pool batch 2 8000 1000 8
jq -s "$points" "$dir/rows" | jq --arg commit "$commit" --arg machine "$machine" \
    --argjson seconds "$seconds" --argjson rounds "$rounds" '
    def worst($key): [.[][$key] | .p50_us, .p99_us | fabs] | max;
    {bench: "size", $commit, $machine, $rounds, $seconds,
     metrics: {size_error_pct: worst("size_error_pct"),
               same_arrivals_error_pct: worst("same_arrivals_error_pct")},
     points: .}' >"$dir/result.json"
jq -r '.metrics | map_values(. * 10 | round / 10) |
    "size_error_pct \(.size_error_pct) (for the same arrivals \(.same_arrivals_error_pct))"' "$dir/result.json"
[ -z "$json" ] || cp "$dir/result.json" "$json"
