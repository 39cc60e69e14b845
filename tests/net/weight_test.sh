#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A worker's weight changes while it serves: its share of the flows follows at once, and nothing is lost.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

# share NAME: prints the requests that w1 got of a load, per thousand
share() {
    local before after
    before=$(worker w1 requests)
    load "$1" echo --to "$vip:8500" --sockets 512 --window 1 --requests 4 --rate 4000 || true
    expect_all "$1" 2048
    after=$(worker w1 requests)
    echo $(((after - before) * 1000 / 2048))
}

topology_up "story$$" 2
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo, policy: maglev}"
start_lb
# There are slots for all requests of the 512 sockets: none goes elsewhere because a worker is halted.
start_agents 2 echo --slots 512

even=$(share even)
expect "w1 per thousand at equal weights" "$even" -gt 400
expect "w1 per thousand at equal weights" "$even" -lt 600
cli workers set w1 weight=9
expect "its weight" "$(worker w1 weight)" -eq 9
more=$(share more)
expect "w1 per thousand at 9 to 1" "$more" -gt 700
expect "w1 per thousand at 9 to 1" "$more" -lt 970
if error=$(cli workers set w1 weight=1000 2>&1); then
    fail "a weight of 1000 was taken"
fi
[[ $error == *"from 0 to 256"* ]] || fail "the error was: $error"
cli workers set w1 weight=0
expect "its weight, the agent's own again" "$(worker w1 weight)" -eq 1
echo "w1 got $even of 1000 at 1 to 1, $more at 9 to 1"
