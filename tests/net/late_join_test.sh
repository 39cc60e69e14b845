#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A worker that registers while requests flow gets its share of them, and none is lost.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 3
# Round-robin: the shares do not depend on the workers' speeds.
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin}"
start_lb
start_agents 2 echo

load_start run echo --to "$vip:8500" --sockets 32 --duration-s 3600 --rate 1500
wait_for "requests on w1" requests_above w1 500
start_agent 3 echo
wait_for "w3 to be active" worker_is w3 active
before=$(cli --json workers list | jq '[.workers[].requests] | add')
before_w3=$(worker w3 requests)
wait_for "requests on w3" requests_above w3 $((before_w3 + 1000))
load_end run

expect_none_lost run
total=$(($(cli --json workers list | jq '[.workers[].requests] | add') - before))
share=$((100 * ($(worker w3 requests) - before_w3) / total))
expect "share of w3, %" "$share" -ge 20
expect "share of w3, %" "$share" -le 45
echo "w3 got $share % of $total requests since it joined two others"
