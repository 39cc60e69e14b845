#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Each policy serves requests, and divides them among the workers as documented.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
# A worker that a busy machine halts for a moment keeps its share.
topology_config "
  - {name: turns, address: $vip, port: 8500, model: echo, policy: round-robin}
  - {name: hash, address: $vip, port: 8501, model: echo, policy: maglev}
  - {name: least, address: $vip, port: 8502, model: echo, policy: least-outstanding}
  - {name: weights, address: $vip, port: 8503, model: echo, policy: weighted}
  - {name: two, address: $vip, port: 8504, model: echo, policy: power-of-two}
  - {name: finish, address: $vip, port: 8505, model: echo, policy: earliest-finish}" "workers: {suspect_ms: 0, timeout_ms: 3000}"
start_lb
start_agents 2 echo

# share NAME: prints the requests that w1 got of the load that just ran
seen=0
share() {
    local now
    now=$(worker w1 requests)
    w1_share=$((now - seen))
    seen=$now
}

load turns echo --to "$vip:8500" --sockets 64 --requests 50 || true
expect_all turns 3200
share
expect "w1 of 3200 in turn" "$w1_share" -eq 1600

load hash echo --to "$vip:8501" --sockets 64 --requests 50 || true
expect_all hash 3200
share
expect "w1 of 64 flows by hash, 50 requests each" $((w1_share % 50)) -eq 0
expect "w1 of 3200 by hash" "$w1_share" -ge 400
expect "w1 of 3200 by hash" "$w1_share" -le 2800

# A worker that takes 10 ms per request gets few of them when the other takes no time.
stop "$pid_w2"
start_agent 2 echo --model-args delay_us=10000 --weight 3 --max-run-ms 1000
wait_for "w2 to be active" worker_is w2 active
share
load least echo --to "$vip:8502" --sockets 16 --window 1 --requests 500 || true
expect_all least 8000
share
expect "w1 of 8000, beside a slow worker" "$w1_share" -gt 6000
echo "least-outstanding gave the fast worker $w1_share of 8000"

load two echo --to "$vip:8504" --sockets 16 --window 1 --requests 250 || true
expect_all two 4000
share
expect "w1 of 4000 by two choices, beside a slow worker" "$w1_share" -gt 2000

# The policy learns that the worker is slow, and sends it fewer requests than policies that only count.
load finish echo --to "$vip:8505" --sockets 16 --window 1 --requests 500 || true
expect_all finish 8000
share
expect "w1 of 8000 by expected finish" "$w1_share" -gt 7000
echo "earliest-finish gave the fast worker $w1_share of 8000"

load weights echo --to "$vip:8503" --sockets 16 --window 1 --requests 25 || true
expect_all weights 400
share
expect "w1 of 400 by weight, 1 to 3" "$w1_share" -eq 100
