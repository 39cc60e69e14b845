#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Our RoCEv2 endpoint and Linux's, rdma_rxe, interoperate: as requester and responder, with
# packets lost, refused, repeated or made wrong on purpose, over IPv4 and IPv6. Wireshark
# and a second implementation of the ICRC read the packets that we sent as we meant them.
#
# Runs beside another: it waits about as long as it computes.
. "$(dirname "$0")/../net/story.sh"
# shellcheck source=tests/rdma/vm/vm.sh
. "$root/tests/rdma/vm/vm.sh"

[ -x "$build/tests/rdma/rxe-peer" ] || skip "rxe-peer is not built: libibverbs was not found"
for program in tcpdump tshark; do
    command -v $program >/dev/null || skip "needs $program"
done
topology_up "rxe$$" 0
vm_build peer "$build/tests/rdma/rxe-peer"
# 4200: packets of 4096 bytes fit. The card's other end stays in the machine's own namespace.
vm_start peer --mtu 4200 --nic peer:tap0=10.77.0.2/24,fd00:77::2/64
# A neighbour that does not answer is asked again soon, not every second.
# shellcheck disable=SC2016
vm_run peer 'for i in 4 6; do echo 200 >/proc/sys/net/ipv$i/neigh/eth0/retrans_time_ms; done'
vm_background peer rxe-peer "$build/tests/rdma/rxe-peer rxe0 7001"
expect_log rxe-peer "listening"
start tcpdump peer tcpdump -i tap0 -U -n --immediate-mode -B 65536 -w "$dir/tap.pcap" udp port 4791
expect_log tcpdump "listening on tap0"

start rows peer "$build/tests/rdma/rxe-rows" \
    "net_af_packet0,iface=tap0,blocksz=65536,framesz=8192,framecnt=512,qdisc_bypass=0" \
    $vm_guest 7001 "$@"
while is_running "$pid_rows"; do
    sleep 0.1
done
stop "$pid_rows"
if [ "$status" -ne 0 ]; then
    grep -B3 '^FAILED' "$dir/rows.log" >&2 || true
    fail "the rows ended with status $status: $(tail -n 1 "$dir/rows.log")"
fi
stop "$pid_rxe_peer"
stop "$pid_tcpdump"
if [ $# -gt 0 ]; then # only some rows ran, so not every kind of packet was sent
    tail -n 1 "$dir/rows.log"
    exit 0
fi
mac=$(ip -n "$tag-peer" -j link show tap0 | jq -r '.[].address')
"$root/tests/rdma/wire_check.py" "$dir/tap.pcap" "$mac" >"$dir/wire_check.log" 2>&1 ||
    fail "$(cat "$dir/wire_check.log")"
echo "$(tail -n 1 "$dir/rows.log"); $(cat "$dir/wire_check.log")"
