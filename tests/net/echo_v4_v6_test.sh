#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Every request of every size, over IPv4 and IPv6, is answered to the byte.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin}
  - {name: echo6, address: \"$vip6\", port: 8500, model: echo, policy: round-robin}"
start_lb
start_agents 2 echo

load v4 echo --to "$vip:8500" --sockets 64 --requests 1000 --window 2 --max-size 1472 || true
expect_all v4 64000
load v6 echo --to "[$vip6]:8500" --sockets 64 --requests 1000 --window 2 --max-size 1452 || true
expect_all v6 64000

expect "payloads copied" "$(cli --json stats | jq '.lcores[0].payload_copies')" -eq 0
for i in w1 w2; do
    expect "requests of $i" "$(worker $i requests)" -gt 32000
    expect "errors of $i" "$(worker $i errors)" -eq 0
done
echo "128,000 requests answered, $(figure v4 rps | cut -d. -f1)/s over IPv4," \
    "$(figure v6 rps | cut -d. -f1)/s over IPv6"
