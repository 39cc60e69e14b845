#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two data-plane cores, ports with one queue each: the core that receives hands packets to the core
# that owns their flow, and the core with a queue sends for the one without. Both serve requests.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

[ -n "$(cpu 2)" ] || skip "needs two CPUs"
topology_up "story$$" 2
lcores="$(cpu 1), $(cpu 2)"
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo}
  - {name: echo6, address: \"$vip6\", port: 8500, model: echo, affinity: flow}"
start_lb
start_agents 2 echo

load v4 echo --to "$vip:8500" --sockets 64 --requests 300 --window 2 || true
expect_all v4 19200
load v6 echo --to "[$vip6]:8500" --sockets 64 --requests 300 --window 2 --max-size 1452 || true
expect_all v6 19200

# each FIELD: prints it for both lcores
each() {
    cli --json stats | jq "[.lcores[].$1 // 0] | @sh" -r
}
read -r first second <<<"$(each requests)"
expect "requests of lcore 0" "$first" -gt 5000
expect "requests of lcore 1" "$second" -gt 5000
expect "requests of both" $((first + second)) -eq 38400
read -r first second <<<"$(each flows.live)"
expect "flows of lcore 0" "$first" -gt 30
expect "flows of lcore 1" "$second" -gt 30
expect "flows of both" $((first + second)) -eq 128

# Each core has one of the ports: the clients' half of the requests is handed over, and half of the
# replies.
read -r first second <<<"$(each packets_out)"
expect "packets sent to clients" "$first" -ge 38400
expect "packets sent to the fabric" "$second" -ge 38400
read -r first second <<<"$(each handed_over)"
expect "requests handed over" "$first" -gt 10000
expect "replies handed over" "$second" -gt 10000
expect "packets that nobody took" "$(drops handover_full)" -eq 0
echo "handed over by lcore: $first $second"
