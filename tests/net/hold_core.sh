# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# For stories whose load balancer ($pid_lb) has two data-plane cores: halt the second one in the middle of a turn.

# Returns when the core stands still; it goes on with: stop "$pid_held". Again after that: once more.
hold_second_core() {
    local thread before=0
    [ ! -f "$dir/held.log" ] || before=$(grep -c held "$dir/held.log" || true)
    # The EAL numbers its workers from 1, as the cores are.
    thread=$(grep -lE '^(rte|dpdk)-worker-?2$' /proc/"$pid_lb"/task/*/comm | cut -d/ -f5)
    [ -n "$thread" ] || fail "which thread is the second core? $(cat /proc/"$pid_lb"/task/*/comm)"
    start held lb python3 "$here/hold_thread.py" "$thread"
    wait_for "the second core to stand still" second_core_held $((before + 1))
    ! grep -q ptrace "$dir/held.log" || skip "$(cat "$dir/held.log"): no thread can be halted here"
}

# second_core_held TIMES: has it been halted so often, or can it not be?
second_core_held() {
    grep -q ptrace "$dir/held.log" || [ "$(grep -c held "$dir/held.log")" -eq "$1" ]
}
