#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The interfaces stay with the kernel: AF_XDP ports with our XDP program take what is for the load
# balancer's addresses and leave everything else alone; a program that a killed daemon left behind
# does not keep the next one from starting.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"
device_frames= # of af_packet

[ -f "$build/workers/runtime/steer.bpf.o" ] || skip "this build has no XDP program (clang or libbpf-dev missing)"

topology_up "story$$" 1
topology_config "  - {name: echo4, address: $vip, port: 8500, model: echo}
  - {name: echo6, address: \"$vip6\", port: 8500, model: echo}"
sed -i 's/net_af_packet\([01]\)/net_af_xdp\1/' "$dir/lb.yaml"
# The kernel has an address of its own on the clients' interface, which must go on answering.
ip -n "$tag-lb" addr add 10.200.0.254/24 dev clients
start_lb
start_agents 1 echo

load four echo --to "$vip:8500" --sockets 16 --requests 500 --max-size 1472 || true
expect "answered over IPv4" "$(figure four answered)" -eq 8000
load six echo --to "[$vip6]:8500" --sockets 16 --requests 500 --max-size 1452 || true
expect "answered over IPv6" "$(figure six answered)" -eq 8000
ip netns exec "$tag-client" ping -qc 3 -i 0.2 -W 1 10.200.0.254 >"$dir/ping" ||
    fail "the kernel's own address does not answer: $(cat "$dir/ping")"

# Packets for other addresses never reach the daemon.
expect "frames for others that reached it" "$(drops l4_protocol)" -eq 0

stop "$pid_lb" KILL
expect "the program that was left behind" \
    "$(ip -n "$tag-lb" link show clients | grep -c 'prog/xdp')" -eq 1
start_lb
wait_for "w1 to be active again" worker_is w1 active
load again echo --to "$vip:8500" --sockets 4 --requests 200 --max-size 1472 || true
expect "answered after the restart" "$(figure again answered)" -eq 800

# Requests of a megabyte take thousands of packet buffers: all of them lie in the memory that the kernel has.
stop "$pid_w1"
stop "$pid_lb"
topology_config "  - {name: large, protocol: tcp, address: $vip, port: 8500, model: echo, max_request: 1MiB, max_reply: 1MiB}"
sed -i 's/net_af_packet\([01]\)/net_af_xdp\1/' "$dir/lb.yaml"
start_lb
device_kind=kernel start_agents 1 echo --model-args max_request=1048576 --payload-mb 64
ip netns exec "$tag-client" "$build/tests/net/stream/tcp-stream" ask --address "$vip" --connections 4 --pipeline 4 \
    --min 1000000 --max 1048576 --requests 160 --limit-s 100 >"$dir/large.json" 2>"$dir/large.log" || true
expect "answered, of a megabyte" "$(figure large answered)" -eq 160
expect "wrong, of a megabyte" "$(figure large wrong)" -eq 0
echo "16800 requests over AF_XDP, and 160 of a megabyte; the kernel's own traffic beside them"
