#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The load balancer ends, well or not, and starts again: it takes over the socket it left behind,
# and agents register again by themselves.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
start_lb
start_agents 2 echo
load first echo --to "$vip:8500" --sockets 8 --requests 200 || true
expect_all first 1600

for signal in TERM KILL; do
    stop "$pid_lb" $signal
    [ $signal = KILL ] || expect "exit status after SIGTERM" "$status" -eq 0
    [ $signal = KILL ] || expect "control socket left behind" "$(ls "$dir/control.sock" 2>&1)" = \
        "ls: cannot access '$dir/control.sock': No such file or directory"
    start_lb
    wait_for "w1 to be active again" worker_is w1 active
    wait_for "w2 to be active again" worker_is w2 active
    load "$signal" echo --to "$vip:8500" --sockets 8 --requests 200 || true
    expect_all "$signal" 1600
done
expect_log w1 "registering again"
echo "agents registered again after SIGTERM and SIGKILL of the load balancer"
