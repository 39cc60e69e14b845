#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# doorbell bench measures the truth: the rate that was asked for, a known delay, notices by their
# codes, and a halt of the load balancer as latency of all requests that were due meanwhile.
. "$(dirname "$0")/story.sh"

[ -x "$build/control/cli/bench/doorbell-bench" ] || fail "doorbell-bench is not built"
# The CLI finds the program of DPDK mode in $PATH.
PATH=$PATH:$build/control/cli/bench

# bench NAME ARGUMENTS...: its figures in $dir/NAME.json
bench() {
    local name=$1
    shift
    ip netns exec "$tag-client" "$build/control/doorbell" bench "$@" --json --quiet \
        >"$dir/$name.json" 2>>"$dir/$name.log"
}

# within WHAT VALUE LOW HIGH: fails unless LOW <= VALUE <= HIGH; fractions are allowed
within() {
    awk -v v="$2" -v low="$3" -v high="$4" 'BEGIN { exit !(v >= low && v <= high) }' ||
        fail "$1: $2, expected $3 to $4"
}

topology_up "story$$" 2
topology_config "
  - {name: one, address: $vip, port: 8500, model: echo}
  - {name: other, address: $vip, port: 8501, model: echo}
  - {name: nobody, address: $vip, port: 8502, model: nobody}"
start_lb
start_agents 1 echo

# --- open loop: the rate, two services and three sizes mixed, every byte compared
bench open --to "$vip:8500" --mix 64:6,400:3,1400:1 --share 3 --to "$vip:8501" --rate 2000 --duration 10 \
    --warmup 1 --verify echo --hgrm "$dir/open.hgrm" --seed 5 || fail "bench failed: $(cat "$dir/open.json")"
expect_none_lost open
# 20,000 Poisson arrivals have a standard error of 0.7 %; the number for this seed is known exactly.
expect "shares of the services" "$(figure open 'targets[0].latency.count > 2.8 * .targets[1].latency.count')" = true
expect "due and not sent" "$(figure open unsent)" -eq 0
expect "sent of what was due" "$(figure open requests)" -eq "$(figure open due)"
within "offered rate" "$(figure open offered_rps)" 1980 2020
expect "figures in the distribution" \
    "$(sed -n 's/.*Total count *= *\([0-9]*\)\]/\1/p' "$dir/open.hgrm")" -eq "$(figure open counted)"

# --- notices have codes
bench refused --to "$vip:8502" --rate 500 --duration 1 || fail "bench failed"
expect "refused" "$(figure refused refused)" -eq "$(figure refused requests)"
expect "busy notices" "$(figure refused notices_by_code.busy)" -eq "$(figure refused requests)"

# --- a load balancer that stands still for 0.3 s delays all requests that were due meanwhile
watch_delays
start stalled client bash -c 'exec "$@" >"$0"' "$dir/stalled.json" "$build/control/doorbell" \
    bench --to "$vip:8500" --rate 1000 --duration 4 --timeout-ms 3000 --json
wait_for "requests to arrive" requests_above w1 "$(($(worker w1 requests) + 1000))"
kill -STOP "$pid_lb"
sleep 0.3 # the length of the measured stall
kill -CONT "$pid_lb"
load_wait stalled
expect "exit status" "$status" -eq 0
# 300 of 4000 requests were due during the stall, and waited 0 to 300 ms: those above 150 ms are the 150
# that were due in its first half.
above=$(figure stalled 'latency | .count - ([.percentiles[] | select(.[1] <= 150000)[2]] | max)')
expect "requests that waited more than half of the stall" "${above:-0}" -ge 90
# One request was due per ms.
expect_ms "requests that waited as long as that" "${above:-0}" 250

# --- closed loop: one request at a time, each of which takes as long as the model
cli workers drain w1 >"$dir/drain.log"
start_agent 2 echo --model-args batch_us=20000,sleep=1 --max-batch 1
wait_for "w2 to be active" worker_is w2 active
watch_delays
bench closed --to "$vip:8501" --window 1 --flows 1 --duration 3 --warmup 0.5 || fail "bench failed"
expect_none_lost closed
# one_by_one NAME: no request is faster than the model, the fastest hardly slower; one begins when
# another ends, however long a busy machine makes it.
one_by_one() {
    expect "$1: shortest for a delay of 20 ms, us" "$(figure "$1" 'latency.min_us | floor')" -ge 20000
    expect_ms "$1: shortest for a delay of 20 ms" "$(figure "$1" 'latency.min_us / 1000 | floor')" 22
    within "$1: how many of them at a time" \
        "$(figure "$1" 'latency.mean_us * .answered_rps / 1e6')" 0.95 1.02
}
one_by_one closed

# --- the same through a DPDK port
ip netns exec "$tag-client" ip addr flush dev c0
watch_delays
bench dpdk --dpdk net_af_packet0,iface=c0 --address 10.200.0.2/24 --to "$vip:8500" --mix 8,1400 \
    --window 1 --flows 1 --duration 2 --verify echo || fail "bench --dpdk failed: $(tail -n 3 "$dir/dpdk.log")"
expect_none_lost dpdk
one_by_one dpdk

echo "offered $(figure open offered_rps)/s of 2000, a delay of 20 ms measured as" \
    "$(figure closed latency.p50_us) us, $above requests above half of a stall"
