#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Clients behind a link of smaller MTU: their kernel sends requests in pieces, and the replies have
# every byte. First over IPv6 with two cores and one queue: pieces meet on one core, the datagram goes
# to the one that owns the flow. Then over IPv4 through AF_XDP: in front of an af_packet port the kernel
# puts them together itself.
#
# Runs beside another: no limit of it is a time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
services="
  - {name: echo, address: $vip, port: 8500, model: echo}
  - {name: echo6, address: \"$vip6\", port: 8500, model: echo}"
[ -z "$(cpu 2)" ] || lcores="$(cpu 1), $(cpu 2)"
# Only the clients' packets are cut: their interface still takes whole replies.
ip -n "$tag-client" route add "$vip/32" dev c0 mtu lock 576
ip -n "$tag-client" route add "$vip6/128" dev c0 mtu 1280

# sum FIELD: prints the sum over all lcores
sum() {
    cli --json stats --all | jq "[.lcores[].$1] | add"
}

# pieces NAME VIP MIN MAX: sends 4,000 requests, each in pieces
pieces() {
    local before
    before=$(sum reassembled)
    load "$1" echo --to "$2:8500" --sockets 16 --requests 250 --min-size "$3" --max-size "$4" || true
    expect_all "$1" 4000
    expect "$1: put together" $(($(sum reassembled) - before)) -eq 4000
}

topology_config "$services"
start_lb
start_agents 1 echo
pieces six "[$vip6]" 1240 1452
load whole echo --to "[$vip6]:8500" --sockets 16 --requests 250 --max-size 1200 || true
expect_all whole 4000
expect "put together of what came whole" "$(sum reassembled)" -eq 4000
expect "copies" "$(sum payload_copies)" -eq 4000
if [ -n "$(cpu 2)" ]; then
    expect "lcores without requests" \
        "$(cli --json stats | jq '[.lcores[] | select(.requests < 1000)] | length')" -eq 0
fi
stop "$pid_lb"
stop "$pid_w1"

[ -f "$build/workers/runtime/steer.bpf.o" ] || skip "no XDP program in this build: IPv4 in pieces was not tried"
lcores=
device_frames= # of af_packet
topology_config "$services"
sed -i 's/net_af_packet0/net_af_xdp0/' "$dir/lb.yaml"
start_lb
start_agents 1 echo
pieces four "$vip" 560 1472
pieces six_xdp "[$vip6]" 1240 1452
client_sees=$(ip netns exec "$tag-client" ping -qc 3 -i 0.2 -W 1 -s 1000 "$vip" | grep -c ' 0% packet loss') ||
    true
expect "long pings answered" "$client_sees" -eq 1

# A single piece is counted when its time is over, by the clock.
ip netns exec "$tag-client" /usr/bin/python3 "$here/half.py" c0 \
    "$(ip -n "$tag-lb" -br link show clients | awk '{ print $3 }')" "$vip" 5
expect "half datagrams" "$(drops fragment_timeout)" -eq 0
wait_for "half datagrams to be forgotten" eval '[ "$(drops fragment_timeout)" -eq 5 ]'
reasons=$(cli --json stats --all |
    jq -c '[.lcores[].drops | to_entries[] | select(.key | startswith("fragment")) | select(.value > 0)]
        | map(.key) | unique')
expect "other losses of fragments" "$reasons" = '["fragment_timeout"]'
echo "12000 requests in pieces answered: IPv6 on two cores, both families over AF_XDP"
