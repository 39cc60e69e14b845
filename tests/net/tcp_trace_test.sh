#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The trace of a TCP connection shows it from the handshake to its end, with each request between; a capture
# beside it has all of its segments, both ways, as tshark reads them.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

command -v tshark >/dev/null || skip "needs tshark"
topology_up "story$$" 1
topology_config "
  - {name: echo, protocol: tcp, address: $vip, port: 8500, model: echo, max_request: 1400, max_reply: 1400}"
start lb lb "$build/doorbell-lb" --config "$dir/lb.yaml"
wait_for "the load balancer's control socket" cli version
start_agents 1 echo

# ask FROM COUNT BYTES: requests of BYTES bytes from this port, one after the other
ask() {
    ip netns exec "$tag-client" python3 -c '
import socket, struct, sys
port, count, size = (int(a) for a in sys.argv[1:4])
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(("10.200.0.2", port))
s.connect((sys.argv[4], 8500))
for i in range(count):
    s.sendall(struct.pack("<I", size) + bytes(size))
    left = 8 + size
    while left:
        left -= len(s.recv(left))
s.shutdown(socket.SHUT_WR)
assert s.recv(1) == b""' "$@" "$vip"
}

start trace lb "$build/control/doorbell" --socket "$dir/control.sock" --json trace \
    --flow "10.200.0.2:4000,$vip:8500" --protocol tcp --follow
start capture lb "$build/control/doorbell" --socket "$dir/control.sock" --json capture \
    --file "$dir/clients.pcapng" --port clients --filter "tcp port 8500"
wait_for "the capture" test -s "$dir/clients.pcapng"
# The trace may not run yet at the first connections: each is a port of its own.
until grep -q segment "$dir/trace.log"; do ask 4000 1 10; done
ask 4001 20 1000
ask 4002 1 1000
wait_for "the end of the connection in the trace" grep -q closed "$dir/trace.log"
stop "$pid_trace"
stop "$pid_capture"

for step in segment opened read request chosen sent acked reply times answered received closed; do
    grep -q "\"step\": \"$step\"" "$dir/trace.log" || fail "no step $step: $(cat "$dir/trace.log")"
done
grep -q '"what": "14 bytes at' "$dir/trace.log" || fail "the request's segment: $(cat "$dir/trace.log")"
grep -q '"what": "10 bytes, complete [0-9]* us' "$dir/trace.log" || fail "the request: $(cat "$dir/trace.log")"
expect "requests of others in the trace" "$(grep -c '1000 bytes\|1004 bytes' "$dir/trace.log" || true)" -eq 0
jq -es 'map(.at_ns) | . == sort' "$dir/trace.log" >/dev/null || fail "the steps are out of order"

# segments FILTER: prints how many segments of the capture Wireshark's filter accepts
segments() {
    tshark -r "$dir/clients.pcapng" -o tcp.check_checksum:TRUE -Y "$1" 2>"$dir/tshark.log" | wc -l
    ! grep -qi 'cut short\|damaged\|error' "$dir/tshark.log" || fail "$1: $(cat "$dir/tshark.log")"
}
# bytes FILTER: prints the sum of their payloads
bytes() {
    tshark -r "$dir/clients.pcapng" -Y "$1" -T fields -e tcp.len 2>/dev/null | awk '{ sum += $1 } END { print sum + 0 }'
}
for port in 4001 4002; do
    for flags in "syn == 1 and tcp.flags.ack == 0" "syn == 1 and tcp.flags.ack == 1" "fin == 1 and ip.src == $vip" \
        "fin == 1 and ip.dst == $vip"; do
        expect "port $port: segments with $flags" "$(segments "tcp.port == $port and tcp.flags.$flags")" -ge 1
    done
done
expect "bytes of requests" "$(bytes "tcp.srcport == 4001 and not tcp.analysis.retransmission")" -eq $((20 * 1004))
expect "bytes of replies" "$(bytes "tcp.dstport == 4001 and not tcp.analysis.retransmission")" -eq $((20 * 1008))
expect "wrong checksums of ours" "$(segments "ip.src == $vip and tcp.checksum.status == 0")" -eq 0
for bad in _ws.malformed tcp.analysis.lost_segment tcp.analysis.ack_lost_segment; do
    expect "$bad" "$(segments "$bad")" -eq 0
done
expect "packets that are not of the service" "$(segments "not tcp.port == 8500")" -eq 0
echo "$(segments tcp) segments captured, $(wc -l <"$dir/trace.log") steps traced"
