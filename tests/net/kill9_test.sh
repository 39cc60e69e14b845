#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A worker's process is killed under load: each request that it held ends with a notice that is counted,
# and its flows are served by the other worker within a second.
. "$(dirname "$0")/story.sh"
default_workers='' default_fabric=''

topology_up "story$$" 2
# Round-robin, so that each worker has flows to lose: otherwise the faster one would get nearly all.
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin, affinity: flow, queue: 8192}"
start_lb
start_agents 2 echo

watch_delays
load_start run echo --to "$vip:8500" --sockets 32 --duration-s 3600 --rate 2000 --window 8
wait_for "requests on w1" requests_above w1 1000
expect "flows of w1 before" "$(cli --json flows count --worker w1 | jq .count)" -gt 0
stop "$pid_w1" KILL
wait_for "all flows on w2" eval '[ "$(cli --json flows count --worker w2 | jq .count)" -eq 32 ]'
wait_for "requests on w2 since" requests_above w2 $(($(worker w2 requests) + 1000))
load_end run

lost=$(drops worker_lost)
expect "wrong replies" "$(figure run wrong)" -eq 0
expect "requests without reply or notice" "$(figure run lost)" -eq 0
expect "notices" "$(figure run refused)" -eq "$lost"
expect "in flight when it was killed" "$lost" -le 256
expect "answered" "$(figure run answered)" -eq $(($(figure run requests) - lost))
expect_ms "longest silence on a socket" "$(figure run longest_gap_ms | cut -d. -f1)" 1000
cli workers show w1 >/dev/null 2>&1 && fail "w1 is still known"
echo "$lost in flight ended with a notice; longest silence $(figure run longest_gap_ms) ms"
