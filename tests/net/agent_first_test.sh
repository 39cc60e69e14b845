#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# An agent that starts before its load balancer says that it waits, and serves when there is one.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
start_agent 1 echo
expect_log w1 "cannot reach the load balancer at 10.201.0.254:4790"
start_lb
wait_for "w1 to be active" worker_is w1 active
load run echo --to "$vip:8500" --sockets 8 --requests 100 || true
expect_all run 800
expect "lines that say it waits" "$(grep -c 'cannot reach' "$dir/w1.log")" -eq 1
echo "the agent waited and served"
