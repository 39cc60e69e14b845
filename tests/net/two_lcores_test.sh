#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two data-plane cores: the kernel spreads packets over the ports' queues by a hash of its own, so
# replies arrive on the wrong queue too and are handed over to the core that owns the queue pair.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

[ -n "$(cpu 2)" ] || skip "needs two CPUs"
topology_up "story$$" 3
lcores="$(cpu 1), $(cpu 2)"
device_options=",qpairs=2"
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo}
  - {name: echo6, address: \"$vip6\", port: 8500, model: echo, affinity: flow}"
start_lb
start_agents 3 echo

load v4 echo --to "$vip:8500" --sockets 64 --requests 300 --window 2 || true
expect_all v4 19200
load v6 echo --to "[$vip6]:8500" --sockets 64 --requests 300 --window 2 --max-size 1452 || true
expect_all v6 19200

mapfile -t requests < <(cli --json stats | jq '.lcores[].requests')
expect "lcores" "${#requests[@]}" -eq 2
expect "requests of lcore 0" "${requests[0]}" -gt 1000
expect "requests of lcore 1" "${requests[1]}" -gt 1000
expect "requests of both" $((requests[0] + requests[1])) -eq 38400
expect "flows" "$(cli --json flows count | jq .count)" -eq 128

# A worker that leaves loses its links on both lcores; a new one gets both.
stop "$pid_w3"
start_agent 3 echo
wait_for "w3 to be active again" worker_is w3 active
load again echo --to "$vip:8500" --sockets 64 --requests 100 --window 2 || true
expect_all again 6400
echo "requests by lcore: ${requests[*]}"
