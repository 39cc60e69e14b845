#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Our RoCEv2 endpoint and Linux's, rdma_rxe, understand each other: as requester and responder, with
# packets lost, refused, repeated or made wrong on purpose, over IPv4 and IPv6.
. "$(dirname "$0")/../net/story.sh"
# shellcheck source=tests/rdma/vm/vm.sh
. "$root/tests/rdma/vm/vm.sh"

[ -x "$build/tests/rdma/rxe-peer" ] || skip "rxe-peer is not built: libibverbs was not found"
topology_up "rxe$$" 0
vm_build peer "$build/tests/rdma/rxe-peer"
# 4200: packets of 4096 bytes fit. The card's other end stays in the machine's own namespace.
vm_start peer --mtu 4200 --nic peer:tap0=10.77.0.2/24,fd00:77::2/64
vm_background peer rxe-peer "$build/tests/rdma/rxe-peer rxe0 7001"
expect_log rxe-peer "listening"

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
tail -n 1 "$dir/rows.log"
