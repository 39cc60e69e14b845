#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Each kind of invalid packet from a client is counted under its own name, once per packet, and gets no
# answer; only a request that is too large gets a notice. Other requests are served as before.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

/usr/bin/python3 -c 'import scapy.all' 2>/dev/null || skip "needs python3-scapy"
topology_up "story$$" 1
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo}
  - {name: small, address: $vip, port: 8501, model: echo, max_request: 100}
  - {name: echo6, address: \"$vip6\", port: 8500, model: echo}"
# The wire must carry frames beyond the load balancer's MTU, too.
ip -n "$tag-client" link set c0 mtu 4000
ip -n "$tag-lb" link set clients mtu 4000
start_lb
start_agents 1 echo
load before echo --to "$vip:8500" --sockets 8 --requests 100 --max-size 1472 || true
expect_all before 800

mac=$(ip -n "$tag-lb" -br link show clients | awk '{ print $3 }')
counted() {
    cli --json stats --all | jq -S '.lcores[0].drops'
}
was=$(counted)
sent=$(ip netns exec "$tag-client" /usr/bin/python3 "$here/bad_clients.py" c0 "$mac" 7 \
    2>"$dir/scapy.log")
expect "packets answered" "$(jq .answered <<<"$sent")" -eq 0
# Three rows: beyond max_request, beyond the MTU, beyond the port's buffers.
expect "packets that were too large and told so" "$(jq .told <<<"$sent")" -eq 21

# Kernels send packets, too: multicast reports in IPv6 extension headers, address resolution, the agents'
# TCP connections. A worker whose acknowledgement came late sends its replies again.
noise='["arp_other", "ip_extension", "l4_protocol", "nd_other", "not_our_mac", "roce_psn_duplicate"]'
difference() {
    jq -n --argjson was "$was" --argjson now "$(counted)" --argjson sent "$sent" -c \
        --argjson noise "$noise" '$now | to_entries | map(
            (.value - ($was[.key] // 0)) as $counted | ($sent.expected[.key] // 0) as $sent
            | select(if .key | IN($noise[]) then $counted < $sent else $counted != $sent end)
            | {(.key): {$counted, $sent}}) | add // {}'
}
wait_for "all of it to be counted" eval '[ "$(difference)" = "{}" ]' || fail "$(difference)"

load after echo --to "$vip:8500" --sockets 8 --requests 100 --max-size 1472 || true
expect_all after 800
load after6 echo --to "[$vip6]:8500" --sockets 8 --requests 100 --max-size 1452 || true
expect_all after6 800
jq -r '.expected | "\(add) packets, \(length) reasons, each counted under its own"' <<<"$sent"
