#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# hardware.sh on the RDMA device of a machine with rdma_rxe: it finds the device and its address, the loop
# holds its requirements there by the proxy, and it says what is not there.
#
# Runs beside another: it waits about as long as it computes.
. "$(dirname "$0")/../net/story.sh"
. "$root/tests/rdma/vm/vm.sh"

[ -x "$build/tests/gpu/loop_rdma" ] || skip "loop_rdma is not built: rdma-core was not found"
models=$build/gpu-agent/models
topology_up "story$$" 0
vm_build w1 "$build/tests/gpu/loop_rdma=/root/loop_rdma" "$root/tests/rdma/hardware.sh=/root/hardware.sh" \
    "$models/echo.so=/root/models/echo.so"
vm_start w1 --memory 320 --nic w1:tap0=10.201.0.11/24

# An emulated CPU takes too long for some of them: real ones run those.
for only in answers_every_length_lap_after_lap serves_many_links goes_on_when_a_link_fails moves_large_payloads; do
    vm_run w1 "cd /root && bash ./hardware.sh --only $only" >"$dir/$only" 2>&1 || fail "$only: $(cat "$dir/$only")"
    for line in "^device +rxe0, " "^address +10\.201\.0\.11 on eth0$" "^GPU +none$" \
        "^cpu-proxy +Tested: 1 \| Passing: 1 .*post=proxy" "^cpu-verbs +not there: .*post=proxy" "^cuda-memory +not there: "; do
        grep -qE "$line" "$dir/$only" || fail "$only: no line '$line': $(cat "$dir/$only")"
    done
done
status=0
vm_run w1 "cd /root && bash ./hardware.sh --device mlx5_9" >"$dir/none" 2>&1 || status=$?
expect "exit status without a device" $status -eq 1
grep -q "none with an active port and an IPv4 address is called mlx5_9" "$dir/none" || fail "$(cat "$dir/none")"
cat "$dir/moves_large_payloads"
echo "four of the loop's requirements on rdma_rxe, by the proxy"
