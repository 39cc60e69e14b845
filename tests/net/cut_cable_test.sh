#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A worker's cable is pulled: no FIN, no RST, nothing. Its requests end with notices, the other
# worker goes on serving, and when the cable is back the worker serves again.
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
ip -n "$tag-fabric" link set w1 down
wait_for "w1 to be given up" eval '! worker_known w1'
wait_for "requests on w2 since" requests_above w2 $(($(worker w2 requests) + 1000))
load_end run

expect "wrong replies" "$(figure run wrong)" -eq 0
expect "requests without reply or notice" "$(figure run lost)" -eq 0
expect "notices" "$(figure run refused)" -eq "$(drops worker_lost)"
expect_ms "longest silence on a socket" "$(figure run longest_gap_ms | cut -d. -f1)" 1000

ip -n "$tag-fabric" link set w1 up
wait_for "w1 to be active again" worker_is w1 active
load after echo --to "$vip:8500" --sockets 8 --requests 500 || true
expect_all after 4000
expect "requests of w1 since" "$(worker w1 requests)" -gt 1000
echo "$(drops worker_lost) in flight ended with a notice;" \
    "longest silence $(figure run longest_gap_ms) ms"
