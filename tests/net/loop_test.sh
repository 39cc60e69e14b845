#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A datagram with a forged source makes two load balancers, or one and an echo server, take each
# other's replies for requests. Between load balancers the loop ends when the hops are used up; an echo
# server on port 7
# is not answered at all.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
vip2=10.200.0.101

# The other load balancer: a namespace like the first one's. All three are on one segment, where every
# station receives every frame, because a frame sent in another's name would mislead a switch.
ip -n "$tag-client" link del c0
ip -n "$tag-fabric" link add clients type bridge mcast_snooping 0 ageing_time 0
ip -n "$tag-fabric" link set clients up
veth "$tag-client" c0 "$tag-fabric" c-client
veth "$tag-lb" clients "$tag-fabric" c-lb
namespace_add "$tag-lb2"
ip netns exec "$tag-lb2" sysctl -qw net.ipv6.conf.{all,default}.disable_ipv6=1
veth "$tag-lb2" clients "$tag-fabric" c-lb2
veth "$tag-lb2" fabric "$tag-fabric" lb2
for i in c-client c-lb c-lb2; do
    ip -n "$tag-fabric" link set "$i" master clients
done
ip -n "$tag-fabric" link set lb2 master br0
ip -n "$tag-lb2" addr add 10.201.0.253/24 dev fabric
ip -n "$tag-client" addr add 10.200.0.2/24 dev c0

topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
start_lb
sed "s|$vip|$vip2|; s|10.201.0.1/24|10.201.0.2/24|; s|10.201.0.254|10.201.0.253|
    s|$dir/|&second-|g" "$dir/lb.yaml" >"$dir/lb2.yaml"
RUNTIME_DIRECTORY=$dir/second start lb2 lb2 "$build/doorbell-lb" --config "$dir/lb2.yaml"

# of N COMMAND...: runs COMMAND with the control socket of load balancer N
of() {
    local socket=control.sock
    [ "$1" -eq 1 ] || socket=second-control.sock
    shift
    "$build/control/doorbell" --socket "$dir/$socket" "$@"
}
both() {
    echo $(($("$1" 1) + $("$1" 2)))
}
requests() {
    of "$1" --json workers show "w$1" | jq .worker.requests
}
loops() {
    of "$1" --json stats --all | jq '[.lcores[].drops.loop // 0] | add'
}
is_active() {
    [ "$(of "$1" --json workers show "w$1" | jq -r .worker.state)" = active ]
}
mac() {
    ip -n "$tag-$1" -br link show "$2" | awk '{ print $3 }'
}
forge() {
    ip netns exec "$tag-client" "$here/loop.py" send c0 "$@"
}

wait_for "the other load balancer" of 2 version
start_agent 1 echo
start_agent 2 echo --lb 10.201.0.253:4790
wait_for "w1 to be active" is_active 1
wait_for "w2 to be active" is_active 2

# clients_ask: sends 40 requests to each
clients_ask() {
    load one echo --to "$vip:8500" --sockets 8 --requests 5 || true
    expect_all one 40
    load other echo --to "$vip2:8500" --sockets 8 --requests 5 || true
    expect_all other 40
}

# around COUNT: sends COUNT datagrams whose forged source is the other one's service
around() {
    local loops=$(($(both loops) + $1)) before requests
    before=$(both requests)
    forge "$(mac lb2 clients)" $vip2 8500 "$(mac lb clients)" $vip 8500 "$1"
    wait_for "$1 datagrams to have no hops left" eval "[ \$(both loops) -ge $loops ]"
    requests=$(both requests)
    # Datagrams that were already on their way arrive before these.
    clients_ask
    after=$(($(both requests) - requests - 80))
    expect "requests of $1 datagrams after the last" $after -eq 0
    times=$(((requests - before) / $1))
    expect "times that each went around" $times -ge 2
    expect "requests of each datagram" $times -le 64
    expect "dropped as loop" "$(both loops)" -eq $loops
}

around 1
one=$times
around 64

# A server that answers every datagram: none of its answers becomes a request.
start echo client "$here/loop.py" echo 10.200.0.2 7
expect_log echo ready
before=$(requests 1)
forge "$(mac client c0)" 10.200.0.2 7 "$(mac lb clients)" $vip 8500 20
wait_for "20 to be refused" eval '[ "$(drops source_port)" -ge 20 ]'
clients_ask
expect "requests from port 7" $(($(requests 1) - before - 40)) -eq 0
expect "refused for their source port" "$(drops source_port)" -eq 20
stop "$pid_echo"
expect "datagrams that came back to the echo server" "$(tail -n 1 "$dir/echo.log")" -eq 0

# Both still serve.
load after echo --to "$vip:8500" --sockets 8 --requests 100 || true
expect_all after 800
load other echo --to "$vip2:8500" --sockets 8 --requests 100 || true
expect_all other 800
echo "one datagram made $one requests between two load balancers, 64 made $times each; an echo server none"
