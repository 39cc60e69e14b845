#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Halts one thread of a process, which a signal cannot: hold_thread.py TID. Prints "held"; the thread goes
on when this program ends. It is halted in a system call, not in the middle of a ring that others use."""
import ctypes
import os
import signal
import sys

PTRACE_CONT, PTRACE_SEIZE, PTRACE_INTERRUPT = 7, 0x4206, 0x4207
WALL = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def ptrace(request, tid):
    if libc.ptrace(request, tid, None, None) != 0:
        sys.exit(f"ptrace: {os.strerror(ctypes.get_errno())}")


def in_system_call(tid):
    with open(f"/proc/{tid}/syscall", encoding="ascii") as file:
        return int(file.read().split()[0]) >= 0


thread = int(sys.argv[1])
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
ptrace(PTRACE_SEIZE, thread)
while True:
    ptrace(PTRACE_INTERRUPT, thread)
    os.waitpid(thread, WALL)
    if in_system_call(thread):
        break
    ptrace(PTRACE_CONT, thread)
print("held", flush=True)
signal.sigwait({signal.SIGTERM})
