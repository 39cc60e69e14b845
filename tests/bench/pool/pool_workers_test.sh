#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# 512 workers register in less than ten seconds; then, under load, 100 of them join, leave and die in 20
# seconds, and no answer is lost or comes twice: what was on a dead worker is answered by a notice.
#
# Runs beside another: it waits for workers most of the time.
. "$(dirname "$0")/../../net/story.sh"

workers=${WORKERS:-512} events=${EVENTS:-100} seconds=${SECONDS_OF_CHURN:-20} rate=${RATE:-400}
[ -x "$build/tests/bench/bench-pool-workers" ] || fail "bench-pool-workers is not built"

# said NAME JQ: of the last line of bench-pool-workers
said() {
    grep '"event": "end"' "$dir/$1.log" | jq -r ".$2"
}

topology_up "story$$" 1
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, policy: least-outstanding}" "workers: {timeout_ms: 3000}"
start_lb
start_pool "$workers" 2000 250 --events "$events" --seconds "$seconds" --seed 3
start load client bash -c 'exec "$@" >"$0"' "$dir/load.json" "$build/control/doorbell" bench \
    --to "$vip:8500" --rate "$rate" --duration $((seconds + 5)) --verify echo --quiet --json --timeout-ms 5000
load_wait load
wait_for "the last event" grep -q '"event": "done"' "$dir/pool.log"
stop "$pid_pool"

expect "seconds until all were active" "$(said pool 'register_s < 10')" = true
expect "events" "$(said pool 'joins + .leaves + .kills')" -eq "$events"
for what in lost wrong duplicates late; do
    expect "$what" "$(figure load $what)" -eq 0
done
expect "requests answered or refused" "$(figure load 'answered + .refused')" -eq "$(figure load requests)"
echo "register_${workers}_s $(said pool register_s); $(said pool joins) joins, $(said pool leaves) leaves," \
    "$(said pool kills) kills in $seconds s: $(figure load answered) answered, $(figure load refused) refused," \
    "p99 $(figure load latency.p99_us) us; notices $(figure load 'notices_by_code | with_entries(select(.value > 0)) | tojson')"
