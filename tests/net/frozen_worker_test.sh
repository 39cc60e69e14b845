#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A worker's loop hangs while its host and its TCP connection live on. Heartbeats come from the loop,
# so the load balancer declares it dead after workers.timeout_ms; it serves again when it runs again.
. "$(dirname "$0")/story.sh"
default_workers='' default_fabric=''

topology_up "story$$" 2
# Round-robin: the shares do not depend on the workers' speeds.
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin, queue: 8192}"
start_lb
start_agents 2 echo

watch_delays
load_start run echo --to "$vip:8500" --sockets 32 --duration-s 3600 --rate 2000 --window 64
wait_for "requests on w1" requests_above w1 500
kill -STOP "$pid_w1"
wait_for "w1 to be given up" eval '! worker_known w1'
expect_log lb "no heartbeat from its loop for 500 ms"
wait_for "requests on w2 since" requests_above w2 $(($(worker w2 requests) + 1000))
load_end run

lost=$(drops worker_lost)
expect "wrong replies" "$(figure run wrong)" -eq 0
expect "requests without reply or notice" "$(figure run lost)" -eq 0
expect "in flight on w1" "$lost" -gt 0
expect "notices" "$(figure run refused)" -eq "$lost"
expect_ms "longest silence on a socket" "$(figure run longest_gap_ms | cut -d. -f1)" 1000

kill -CONT "$pid_w1"
wait_for "w1 to be active again" worker_is w1 active
load after echo --to "$vip:8500" --sockets 8 --requests 500 || true
expect_all after 4000
expect "requests of w1 since" "$(worker w1 requests)" -gt 1000
echo "$lost in flight ended with a notice; longest silence $(figure run longest_gap_ms) ms"
