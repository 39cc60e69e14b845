#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Ports "kernelN,iface=" on both sides: AF_XDP where an interface has a queue per lcore, with the kernel's
# own traffic beside it and VIPs that come later; af_packet with the reason in the log where it has not.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"
device_frames='' device_kind=kernel # frames are of af_packet
default_workers=

[ -f "$build/workers/runtime/steer.bpf.o" ] || skip "this build has no XDP program (clang or libbpf-dev missing)"

# driver NAME TEXT: expects TEXT in lines of NAME's log that say which driver a port has
driver() {
    expect_log "$1" "driver=$2"
    expect "ports of $1 with another driver" "$(grep -o 'driver=[a-z_]*' "$dir/$1.log" | grep -cv "driver=$2")" -eq 0
}

topology_up "story$$" 1
one="  - {name: one, address: $vip, port: 8500, model: echo}"
topology_config "$one"
ip -n "$tag-lb" addr add 10.200.0.254/24 dev clients
start_lb
start_agent 1 echo --log-level info
wait_for "w1 to be active" worker_is w1 active
driver lb net_af_xdp
driver w1 net_af_xdp
load four echo --to "$vip:8500" --sockets 16 --requests 500 --max-size 1472 || true
expect_all four 8000
ip netns exec "$tag-client" ping -qc 3 -i 0.2 -W 1 10.200.0.254 >"$dir/ping" ||
    fail "the kernel's own address does not answer: $(cat "$dir/ping")"
expect "frames for others that reached it" "$(drops l4_protocol)" -eq 0

# --- a VIP that a reload adds is taken from the kernel, too
topology_config "$one
  - {name: six, address: \"$vip6\", port: 8500, model: echo}"
cli config apply "$dir/lb.yaml" >"$dir/apply.log" || fail "the configuration was not applied: $(cat "$dir/apply.log")"
load six echo --to "[$vip6]:8500" --sockets 16 --requests 100 --max-size 1452 || true
expect_all six 1600

# --- an agent that was killed leaves its program behind; the next one takes the interface over
stop "$pid_w1" KILL
expect_log lb "worker=w1 number=0 state=gone"
start_agent 1 echo --log-level info
wait_for "w1 to be active again" worker_is w1 active
load again echo --to "$vip:8500" --sockets 4 --requests 200 --max-size 1472 || true
expect_all again 800
stop "$pid_w1"
stop "$pid_lb"
expect "exit status" "$status" -eq 0

# --- two lcores and one queue: af_packet
[ "$(nproc)" -ge 2 ] || skip "the rest needs two CPUs"
: >"$dir/lb.log"
lcores="$(cpu 1), $(cpu 2)"
topology_config "$one"
start_lb
expect_log lb "uses af_packet, which costs more per packet than AF_XDP: the interface has 1 receive queues"
driver lb net_af_packet
start_agent 1 echo --log-level info
wait_for "w1 to be active with two lcores" worker_is w1 active
load two echo --to "$vip:8500" --sockets 16 --requests 100 --max-size 1472 || true
expect_all two 1600
echo "12000 requests: over AF_XDP with the kernel's traffic beside it, and over af_packet"
