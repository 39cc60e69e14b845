#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Requests of every size by TCP, pipelined on many connections of the kernel, are answered to the byte;
# all connections and their packets are given back.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
topology_config "
  - {name: echo, protocol: tcp, address: $vip, port: 8500, model: echo, policy: round-robin, max_request: 1400, max_reply: 1400}
  - {name: echo6, protocol: tcp, address: \"$vip6\", port: 8500, model: echo, policy: round-robin, max_request: 1400, max_reply: 1400}"
start lb lb "$build/tests/tcp/doorbell-lb-tcp" --config "$dir/lb.yaml"
wait_for "the load balancer's control socket" cli version
start_agents 2 echo

# ask NAME OPTIONS...: as load, by TCP
ask() {
    client_python "$here/stream/stream_client.py" "${@:2}" >"$dir/$1.json" 2>>"$dir/$1.log" || true
}
client_python() {
    ip netns exec "$tag-client" python3 "$@"
}
# expect_asked NAME COUNT
expect_asked() {
    local what
    [ -s "$dir/$1.json" ] || fail "the client wrote no figures: $(tail -n 3 "$dir/$1.log")"
    for what in lost refused wrong; do
        expect "$1: $what" "$(figure "$1" $what)" -eq 0
    done
    expect "$1: answered" "$(figure "$1" answered)" -eq "$2"
}

ask one --address "$vip" --port 8500
expect_asked one 10
ask v4 --address "$vip" --port 8500 --connections 64 --requests 200 --pipeline 8 --max-size 1400
expect_asked v4 12800
ask v6 --address "$vip6" --port 8500 --connections 64 --requests 200 --pipeline 8 --max-size 1400
expect_asked v6 12800
echo "25,600 requests answered, $(figure v4 rps | cut -d. -f1)/s over IPv4," \
    "$(figure v6 rps | cut -d. -f1)/s over IPv6"
