#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Errors about replies find the flow that the reply was for, on any core, and are counted
# by kind: the client closed its socket, or a link on the way is too small. Forged ones that
# name no flow are counted, too; none is answered, and none ends a flow.
#
# Runs beside another: no limit of it is a time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
[ -z "$(cpu 2)" ] || lcores="$(cpu 1), $(cpu 2)"
services="
  - {name: echo, address: $vip, port: 8500, model: echo}
  - {name: echo6, address: \"$vip6\", port: 8500, model: echo}"
topology_config "$services"
start_lb
start_agents 1 echo
# Kernels limit the rate of their ICMP errors.
ip netns exec "$tag-client" sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv6.icmp.ratelimit=0 \
    net.ipv4.icmp_msgs_per_sec=100000 net.ipv4.icmp_msgs_burst=100000

load before echo --to "$vip:8500" --sockets 8 --requests 100 || true
expect_all before 800

# These sockets send a request and are closed before the reply comes.
leave() {
    ip netns exec "$tag-client" /usr/bin/python3 - "$1" "$2" <<'END'
import socket, sys
for i in range(int(sys.argv[2])):
    with socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET,
                       socket.SOCK_DGRAM) as s:
        s.connect((sys.argv[1], 8500))
        s.send(b"who will read the answer?")
END
}
# left_unread ADDRESS N: N errors of such sockets are counted; a busy machine may answer before some are closed
left_unread() {
    leave "$1" 50
    [ "$(drops icmp_port_unreachable)" -gt "$2" ]
}
wait_for "errors of clients that left" left_unread "$vip" 40
wait_for "errors over IPv6" left_unread "$vip6" $(($(drops icmp_port_unreachable) + 40))
expect "flows" "$(cli --json flows count | jq .count)" -ge 100
[ "$(drops icmp_no_flow)" -eq 0 ] || fail "errors found no flow: $(drops icmp_no_flow)"

# A router between believes that the link to the client has a small MTU: large replies do not fit.
namespace_add "$tag-far"
ip -n "$tag-client" link add far type veth peer name f0 netns "$tag-far"
ip -n "$tag-client" addr add 10.202.0.1/24 dev far
ip -n "$tag-client" link set far up
ip -n "$tag-client" route add 10.202.0.2/32 dev far mtu lock 600
ip -n "$tag-far" addr add 10.202.0.2/24 dev f0
ip -n "$tag-far" link set f0 up
ip -n "$tag-far" route add default via 10.202.0.1
ip netns exec "$tag-client" sysctl -qw net.ipv4.ip_forward=1
ask() {
    ip netns exec "$tag-far" /usr/bin/python3 - "$vip" "$1" <<'END'
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(0.5)
s.connect((sys.argv[1], 8500))
for i in range(3):
    s.send(bytes(int(sys.argv[2])))
    try:
        print(len(s.recv(2048)))
    except TimeoutError:
        pass
END
}
expect "small replies through the router" "$(ask 500 | tr '\n' ' ')" = "500 500 500 "
expect "large replies through the router" "$(ask 1200 | tr '\n' ' ')" = ""
expect "errors of the router" "$(drops icmp_too_big)" -eq 3

# Forged errors name flows that do not exist. Only the counter changes.
mac=$(ip -n "$tag-lb" -br link show clients | awk '{ print $3 }')
forge() {
    ip netns exec "$tag-client" /usr/bin/python3 "$here/forged.py" c0 "$mac" "$vip" 100
    wait_for "forged errors to be counted" eval '[ "$(drops icmp_no_flow)" -eq 100 ]'
}
forge
load after echo --to "$vip:8500" --sockets 8 --requests 100 || true
expect_all after 800

# The kernel spreads packets over queues by a rule of its own: the cores ask each other.
if [ -n "$(cpu 2)" ]; then
    stop "$pid_lb"
    device_options=",qpairs=2"
    topology_config "$services"
    start_lb
    wait_for "w1 to be active again" worker_is w1 active
    wait_for "errors that were asked about" left_unread "$vip" 40
    expect "errors that found no flow" "$(drops icmp_no_flow)" -eq 0
    forge
fi
echo "errors of clients that had gone, of a router and of a forger told apart"
