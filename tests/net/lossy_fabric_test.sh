#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A bad fabric: packets are lost, repeated, damaged and overtaken, in both directions. The reliable
# connection repairs it; clients get every answer without sending anything twice.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}" \
    "fabric: {ack_timeout: 16}"
fault_wire w1 --drop 0.01 --duplicate 0.005 --reorder 0.005 --corrupt 0.002 --seed "${SEED:-1}"
start_lb
start_agents 1 echo

load run echo --to "$vip:8500" --sockets 16 --window 2 --requests 500 --max-size 1472 \
    --timeout-ms 10000 || true
expect_all run 8000
expect "packets sent again by the load balancer" "$(worker w1 resent)" -gt 0
expect "retries exhausted" "$(grep -c 'retries exhausted' "$dir/lb.log")" -eq 0
expect "answers of the worker" "$(worker w1 replies)" -eq 8000
resent=$(worker w1 resent)
stop "$pid_wire_w1"
echo "8,000 requests answered; $resent packets sent again; $(tail -n 1 "$dir/wire-w1.log")"
