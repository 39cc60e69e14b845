#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# affinity: flow keeps a flow on its worker; affinity: request spreads one flow over all of them.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
topology_config "
  - {name: pinned, address: $vip, port: 8500, model: echo, policy: round-robin, affinity: flow}
  - {name: spread, address: $vip, port: 8501, model: echo, policy: round-robin}"
start_lb
start_agents 2 echo

# Send one request after the other, so that flows find both workers free and round-robin alternates.
for i in 1 2 3 4; do
    load "flow$i" echo --to "$vip:8500" --sockets 1 --window 4 --requests 250 || true
    expect_all "flow$i" 250
done
expect "requests of w1 by two of four flows" "$(worker w1 requests)" -eq 500
expect "requests of w2 by two of four flows" "$(worker w2 requests)" -eq 500

load spread echo --to "$vip:8501" --sockets 1 --window 4 --requests 1000 || true
expect_all spread 1000
expect "requests of w1 by a flow that spreads" "$(worker w1 requests)" -eq 1000
expect "requests of w2 by a flow that spreads" "$(worker w2 requests)" -eq 1000
echo "four flows stayed with their workers, one went to both in turn"
