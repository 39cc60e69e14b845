#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Three times the load that two workers can serve, with a deadline: the workers stay busy with requests that
# can meet it, the others are refused at once, and every reply is in time.
. "$(dirname "$0")/story.sh"

deadline_ms=150
topology_up "story$$" 2
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, deadline_ms: $deadline_ms,
     policy: earliest-finish}"
start_lb
# One request at a time, 10 ms each, as a device would take: 100/s per worker.
start_agents 2 echo --model-args batch_us=10000,sleep=1 --max-batch 1 --slots 16

# bench NAME ARGUMENTS...: its figures in $dir/NAME.json
bench() {
    local name=$1
    shift
    ip netns exec "$tag-client" "$build/control/doorbell" bench --to "$vip:8500" "$@" --json --quiet \
        --timeout-ms 3000 >"$dir/$name.json" 2>>"$dir/$name.log" || fail "bench: $(head -n 40 "$dir/$name.json")"
}

# Each worker always has the next request waiting, and no more.
bench full --window 1 --flows 4 --duration 3
capacity=$(figure full 'answered_rps | floor')
expect "capacity, requests/s" "$capacity" -gt 100

overload() {
    watch_delays
    bench over --rate $((capacity * 3)) --flows 16 --duration 6
    for what in lost wrong duplicates; do
        expect "$what" "$(figure over $what)" -eq 0
    done
    expect "answered or refused" $(($(figure over answered) + $(figure over refused))) \
        -eq "$(figure over requests)"
    goodput=$(figure over 'answered_rps | floor')
    p99=$(figure over 'latency.p99_us / 1000 | floor')
    # 90 % of capacity; and in time at the load balancer, which does not control the way back.
    in_time "time in which the workers did nothing" $(((capacity - goodput) * 6000 / capacity)) 600 &&
        in_time "p99 of what was admitted" "$p99" $((deadline_ms + 1))
}
measure overload

record overload_goodput_ratio "$(jq -n "$goodput / $capacity")"
record overload_p99_over_deadline "$(jq -n "$p99 / $deadline_ms")"
echo "capacity $capacity/s; at three times that $goodput/s answered, p99 $p99 ms" \
    "of $deadline_ms in try $try; refused $(figure over refused): $(figure over notices_by_code | jq -c 'with_entries(select(.value > 0))')"
