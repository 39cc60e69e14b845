#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# hardware.sh on a ConnectX's stand-in, whose queue pairs are connected to each other: the lines that no device here can
# make, those of a loop that rings the device itself. Where there is a GPU its loop rings, too.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/../net/story.sh"

pairs=$build/tests/rdma/standin/libstandin-pairs.so
{ [ -f "$pairs" ] && [ -x "$build/tests/gpu/loop_rdma" ]; } || skip "the stand-in is not built: rdma-core was not found"
! ldd "$build/tests/gpu/loop_rdma" | grep -q libasan || skip "nothing is preloaded before a sanitizer"
dir=$(mktemp -d)

# What a busy machine can change is left to agent_loop_verbs, whose far end is the test's own thread.
for only in answers_every_length_lap_after_lap serves_many_links answers_full_rings_of_all_links goes_on_when_a_link_fails \
    refuses_bad_descriptors moves_large_payloads; do
    BUILD=$build LD_PRELOAD=$pairs "$root/tests/rdma/hardware.sh" --device standin0 --address 127.0.0.1 --only $only \
        >"$dir/$only" 2>&1 || fail "$only: $(cat "$dir/$only")"
    for line in "^cpu-proxy +Tested: 1 \| Passing: 1 .*\(post=proxy\)" "^cpu-verbs +Tested: 1 \| Passing: 1 .*\(post=direct\)" \
        "^cuda-verbs +(not there: |Tested: 1 \| Passing: 1 .*\(post=direct\))" "^cuda-memory +not there: "; do
        grep -qE "$line" "$dir/$only" || fail "$only: no line '$line': $(cat "$dir/$only")"
    done
done

# A register for nobody: the proxy posts, and the line of direct posting says why it is not there.
RIG_DEVICE=standin0 RIG_ADDRESS=127.0.0.1 STANDIN_FAULTS=no_registers LD_PRELOAD=$pairs "$build/tests/gpu/loop_rdma" cpu-verbs \
    "$build/gpu-agent/models" none serves_many_links >"$dir/none" 2>&1 && fail "direct posting without a register" || status=$?
expect "exit status without a register" "$status" -eq 77
grep -q 'skipped: .*post=proxy reason="the device gives no doorbell register' "$dir/none" || fail "$(cat "$dir/none")"

# The stand-in has seen no doorbell or WQE that was wrong, and has all objects back.
RIG_DEVICE=standin0 RIG_ADDRESS=127.0.0.1 LD_PRELOAD=$pairs "$build/tests/gpu/loop_rdma" cpu-verbs "$build/gpu-agent/models" none \
    answers_full_rings_of_all_links >"$dir/counted" 2>&1 || fail "$(cat "$dir/counted")"
counted=$(grep '^standin: ' "$dir/counted" | tail -n 1)
for what in overruns wrong objects shared; do
    [[ $counted =~ \ $what=0\  ]] || fail "$counted"
done
[[ ! $counted =~ doorbells=0\  ]] || fail "nothing was rung: $counted"
rm -rf "$dir" && dir=
echo "six of the loop's requirements by hardware.sh, rung by the CPU and by the proxy:${counted#standin:}"
