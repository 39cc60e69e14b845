#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# TCP services on two data-plane cores: a connection has one core, whichever queue its segments come by.
# Ports with one queue, and with two, of which the kernel chooses. Then AF_XDP with our XDP program,
# beside the kernel's own TCP, on one core and on two, each of which has a queue of both ports.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

[ -n "$(cpu 2)" ] || skip "needs two CPUs"
topology_up "story$$" 2
services="
  - {name: echo, protocol: tcp, address: $vip, port: 8500, model: echo, max_request: 1400, max_reply: 1400}
  - {name: echo6, protocol: tcp, address: \"$vip6\", port: 8500, model: echo, max_request: 1400, max_reply: 1400}"

begin() {
    topology_config "$services"
    start lb lb "$build/doorbell-lb" --config "$dir/lb.yaml"
    wait_for "the load balancer's control socket" cli version
}

# ask NAME OPTIONS...: connections of the kernel, by IPv4 and IPv6 at once; all must be answered
ask() {
    local family pids=() i=0
    for family in "$vip" "$vip6"; do
        ip netns exec "$tag-client" python3 "$here/stream/stream_client.py" --address "$family" --port 8500 \
            --connections 32 --requests 200 --pipeline 8 --max-size 1400 >"$dir/$1.$i.json" 2>>"$dir/$1.log" &
        pids+=($!)
        i=$((i + 1))
    done
    wait "${pids[@]}" || true
    for i in 0 1; do
        [ -s "$dir/$1.$i.json" ] || fail "the client wrote no figures: $(tail -n 3 "$dir/$1.log")"
        expect "$1: answered" "$(jq .answered "$dir/$1.$i.json")" -eq 6400
        expect "$1: not answered" "$(jq '.lost + .refused + .wrong' "$dir/$1.$i.json")" -eq 0
    done
}

# each FIELD: prints it for both lcores
each() {
    cli --json stats | jq "[.lcores[].$1 // 0] | @sh" -r
}

# expect_both NAME: both lcores have served connections
expect_both() {
    local first second
    read -r first second <<<"$(each requests)"
    expect "$1: requests of lcore 0" "$first" -gt 2000
    expect "$1: requests of lcore 1" "$second" -gt 2000
    expect "$1: requests of both" $((first + second)) -eq 12800
    expect "$1: packets that no lcore took" "$(drops handover_full)" -eq 0
    echo "$1: requests by lcore: $first $second; handed over: $(each handed_over)"
}

# --- one queue each
lcores="$(cpu 1), $(cpu 2)"
begin
start_agents 2 echo
expect_log lb "run: ethtool -K PEER tso off gso off, where PEER is the other end of clients"
ask one
expect_both one
stop "$pid_lb"

# --- two queues, which the kernel chooses
device_options=",qpairs=2"
begin
wait_for "w1 to be active" worker_is w1 active
wait_for "w2 to be active" worker_is w2 active
ask two
expect_both two
stop "$pid_lb"

# --- AF_XDP: only what is for our addresses comes to us
[ -f "$build/workers/runtime/steer.bpf.o" ] || skip "the rest needs the XDP program (clang or libbpf-dev missing)"
# shellcheck disable=SC2034
device_frames='' device_options='' device_kind=kernel
ip -n "$tag-lb" addr add 10.200.0.254/24 dev clients
# beside_kernel: a TCP connection to the kernel's own address on the clients' interface
beside_kernel() {
    ip netns exec "$tag-lb" python3 -c 'import socket
s = socket.create_server(("10.200.0.254", 8500))
open("'"$dir"'/kernel.ready", "w")
c, _ = s.accept()
c.sendall(c.recv(64))' &
    local server=$!
    wait_for "the kernel's server" test -e "$dir/kernel.ready"
    expect "the kernel's own TCP" "$(ip netns exec "$tag-client" python3 -c 'import socket
s = socket.create_connection(("10.200.0.254", 8500), 10)
s.sendall(b"through"); print(s.recv(64).decode())')" = through
    wait "$server"
    rm "$dir/kernel.ready"
}

lcores="$(cpu 1)"
begin
expect_log lb "driver=net_af_xdp"
wait_for "w1 to be active" worker_is w1 active
wait_for "w2 to be active" worker_is w2 active
beside_kernel
ask xdp
expect "frames for others" "$(drops not_our_address)" -eq 0
stop "$pid_lb"

for place in "client c0" "lb clients" "fabric lb" "lb fabric"; do
    read -r name interface <<<"$place"
    ip netns exec "$tag-$name" ethtool -L "$interface" rx 2 tx 2
done
# shellcheck disable=SC2034
lcores="$(cpu 1), $(cpu 2)"
begin
for name in clients fabric; do
    grep "port=$name device=kernel" "$dir/lb.log" | tail -n 1 | grep -q "driver=net_af_xdp .*queues=2 " ||
        fail "$name is not on two queues of AF_XDP: $(tail -n 20 "$dir/lb.log")"
done
wait_for "w1 to be active" worker_is w1 active
wait_for "w2 to be active" worker_is w2 active
beside_kernel
start capture lb "$build/control/doorbell" --socket "$dir/control.sock" capture --port clients --count 4000 \
    --file "$dir/two.pcapng"
wait_for "the capture" test -s "$dir/two.pcapng"
ask xdp_two
expect_both xdp_two
if command -v tshark >/dev/null; then
    wait_for "the end of the capture" eval "! is_running $pid_capture"
    for queue in 0 1; do
        expect "captured packets of queue $queue" \
            "$(tshark -r "$dir/two.pcapng" -Y "frame.interface_queue == $queue" 2>/dev/null | wc -l)" -gt 100
    done
fi
expect "frames for others" "$(drops not_our_address)" -eq 0
stop "$pid_lb"
expect "programs on the interface that is left" "$(ip -n "$tag-lb" link show clients | grep -c xdp || true)" -eq 0

echo "xdp: beside connections to the kernel's own address, on one core and two; 51,200 requests answered in all"
