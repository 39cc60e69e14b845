#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A stranger who knows the addresses and ports of a connection sends resets, SYNs, data, acknowledgements and FINs
# with numbers from all over the space: the connection notices nothing, and answers to them are few (RFC 5961).
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
# With timestamps, all of them would be refused for those already.
ip netns exec "$tag-client" sysctl -qw net.ipv4.tcp_timestamps=0
topology_config "
  - {name: echo, protocol: tcp, address: $vip, port: 8500, model: echo, max_request: 1400, max_reply: 1400}"
start_lb
start_agents 1 echo
mac=$(ip -n "$tag-lb" -j link show clients | jq -r '.[].address')
ip netns exec "$tag-client" /usr/bin/python3 "$here/tcp_blind.py" "$vip" 8500 c0 "$mac" >"$dir/blind.json" 2>"$dir/blind.log" ||
    fail "the connection noticed: $(cat "$dir/blind.log")"

# counter FIELD: of lcores[].tcp
counter() {
    cli --json stats | jq "[.lcores[].tcp.$1 // 0] | add"
}
expect "segments that were refused" "$(drops tcp_refused)" -gt $(($(figure blind sent) * 9 / 10))
# Resets, SYNs and acknowledgements that were in the window are refused for themselves.
for reason in rst syn ack seq_after seq_before; do
    expect "refused: $reason" "$(counter refused.$reason)" -gt 0
done
expect "challenges" "$(counter challenges)" -gt 0
# One in 500 ms
expect "challenges" "$(counter challenges)" -le "$(jq '.seconds * 2 + 3 | floor' "$dir/blind.json")"
expect "connections ever" "$(cli --json stats | jq '[.lcores[].flows.inserted] | add')" -eq 1
echo "$(figure blind answered) requests answered on a connection that got $(figure blind sent) segments of a stranger," \
    "$(counter challenges) challenges sent"
