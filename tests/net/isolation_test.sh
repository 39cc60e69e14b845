#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Eight services with twice the load that their worker can serve and full queues, and a ninth with a
# worker of its own on the same lcore: the ninth loses nothing, and waits no longer than alone.
#
# ISOLATION_SECONDS is how long each measurement takes (default 4).
. "$(dirname "$0")/story.sh"

seconds=${ISOLATION_SECONDS:-4}
ports=$(seq 8500 8507)

# bench NAME ARGUMENTS...: its figures in $dir/NAME.json
bench() {
    local name=$1
    shift
    ip netns exec "$tag-client" "$build/control/doorbell" bench "$@" --json --quiet --timeout-ms 5000 \
        >"$dir/$name.json" 2>>"$dir/$name.log" || fail "bench: $(head -n 40 "$dir/$name.json")"
}

# busy NAME RATE SECONDS: sends requests to all eight, in the background
busy() {
    local to=() port
    for port in $ports; do
        to+=(--to "$vip:$port")
    done
    start "$1" client bash -c 'exec "$@" >"$0"' "$dir/$1.json" "$build/control/doorbell" bench "${to[@]}" \
        --rate "$2" --duration "$3" --flows 64 --timeout-ms 1000 --json --quiet
}

healthy() {
    bench "$1" --to "$vip:8600" --rate 500 --flows 16 --duration "$seconds" --verify echo --seed 3
}

queued() {
    cli --json services list | jq '[.services[].queued] | add'
}

full() {
    [ "$(queued)" -ge "$(cli --json services list |
        jq '[.services[] | select(.name != "healthy") | .queue_places] | add')" ]
}

topology_up "story$$" 2
services=
for port in $ports; do
    services+="
  - {name: busy$port, address: $vip, port: $port, model: echo, workers: assigned,
     queue_timeout_ms: 60000, request_timeout_ms: 30000}"
done
topology_config "$services
  - {name: healthy, address: $vip, port: 8600, model: echo, workers: assigned}"
start_lb
# 8 requests at a time, 10 ms each, as a device would take: 800/s; and 2 ms
start_agent 1 echo --model-args batch_us=10000,sleep=1 --max-batch 8 --slots 64
start_agent 2 echo --model-args batch_us=2000,sleep=1 --max-batch 8 --slots 64
for i in 1 2; do
    wait_for "w$i to be active" worker_is "w$i" active
done
for port in $ports; do
    cli workers assign w1 "busy$port" >/dev/null
done
cli workers assign w2 healthy >/dev/null

isolation() {
    watch_delays
    healthy alone
    busy fill 6000 3
    wait_for "full queues" full
    load_wait fill
    busy beside 1600 $((seconds + 2))
    healthy saturated
    # of the last second, in percent
    lcore_busy=$(cli --json top | jq '[.lcores[].busy * 100] | max | floor')
    load_wait beside
    refused=$(figure saturated refused)
    expect "lost beside saturated services" "$(figure saturated lost)" -eq 0
    expect "refused beside saturated services" "$refused" -eq 0
    expect "wrong beside saturated services" "$(figure saturated wrong)" -eq 0
    alone=$(figure alone 'latency.p99_us | floor') beside=$(figure saturated 'latency.p99_us | floor')
    in_time "of a second in which the lcore was busy" $((lcore_busy * 10)) 501 &&
        in_time "p99, twice that of alone" $((beside / 1000)) $(((2 * alone + 999) / 1000))
}
measure isolation
expect "the busy services were" "$(figure beside refused)" -gt 0

record healthy_refused "$refused"
record healthy_p99_over_alone "$(jq -n "$beside / $alone")"
record lcore_busy_percent "$lcore_busy"
record healthy_p99_alone_us "$alone"
record healthy_p99_beside_us "$beside"
record healthy_p50_alone_us "$(figure alone 'latency.p50_us | floor')"
record healthy_p50_beside_us "$(figure saturated 'latency.p50_us | floor')"
echo "p99 alone $alone us, beside eight saturated services $beside us in try $try, the lcore $lcore_busy % busy; refused $refused of" \
    "$(figure saturated requests), $(queued) waiting at the end"
