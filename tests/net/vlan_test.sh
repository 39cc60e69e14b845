#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A client behind a VLAN tag is answered with the same tag: ARP, ping and requests.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
start_lb
start_agents 1 echo

# Tags in the frame, from a raw socket; and a sub-interface, where the kernel has them.
ip netns exec "$tag-client" /usr/bin/python3 "$here/vlan_client.py" c0 100 10.200.0.77 "$vip" 8500 ||
    fail "see above"
if ! ip -n "$tag-client" link add link c0 name c0.7 type vlan id 7 2>/dev/null; then
    echo "tagged requests answered from a raw socket; this kernel has no VLAN interfaces"
    exit 0
fi
ip -n "$tag-client" link set c0.7 up
ip -n "$tag-client" addr add 10.200.0.3/24 dev c0.7
ip -n "$tag-client" route add "$vip/32" dev c0.7 src 10.200.0.3
for offload in on off; do
    ip netns exec "$tag-client" ethtool -K c0 txvlan $offload rxvlan $offload >/dev/null 2>&1 || true
    load "vlan_$offload" echo --to "$vip:8500" --sockets 8 --requests 200 --max-size 1472 || true
    expect_all "vlan_$offload" 1600
done
echo "tagged requests answered from a raw socket and from a VLAN interface"
