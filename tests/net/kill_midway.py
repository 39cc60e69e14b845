#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills a process when its interface has sent so many bytes more: kill_midway.py INTERFACE BYTES PID.

Prints "watching", and in the end how many it sent in all, after the last of them."""
import os
import signal
import sys
import time

path, most, pid = f"/sys/class/net/{sys.argv[1]}/statistics/tx_bytes", int(sys.argv[2]), int(sys.argv[3])


def sent():
    with open(path, encoding="ascii") as f:
        return int(f.read())


first = sent()
print("watching", flush=True)
while sent() - first < most:
    time.sleep(0.0001)
os.kill(pid, signal.SIGKILL)
last = -1
while last != sent():
    last = sent()
    time.sleep(0.1)  # longer than frames of a process that has gone can wait
print(last - first, flush=True)
