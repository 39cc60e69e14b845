#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A stranger on the fabric claims the worker's address, and to the worker that of
# the load balancer: both ask the host that they know first, and go on as before. No request is lost.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
start_lb
start_agents 1 echo

mac_of() {
    ip -n "$tag-$1" -j link show "$2" | jq -r '.[].address'
}

load_start run echo --to "$vip:8500" --sockets 8 --rate 2000 --requests 1000
wait_for "requests on their way" requests_above w1 100
# Sent out of the switch's ports, to the load balancer and to the worker.
ip netns exec "$tag-fabric" /usr/bin/python3 "$here/bad_neighbour.py" lb 10.201.0.11 \
    "$(mac_of lb fabric)" 10.201.0.1 20
ip netns exec "$tag-fabric" /usr/bin/python3 "$here/bad_neighbour.py" w1 10.201.0.1 \
    "$(mac_of w1 w0)" 10.201.0.11 20
load_wait run
expect_none_lost run
expect "state of w1" "$(worker w1 state)" = active
expect "claims denied" "$(drops neighbour_kept)" -gt 5
expect_log lb "moved=no"
expect "lines about it" "$(grep -c moved=no "$dir/lb.log")" -eq 1
echo "$(figure run requests) requests answered while a stranger claimed both addresses," \
    "$(drops neighbour_kept) claims denied"
