#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A wire between two interfaces that loses, repeats and reorders RoCE packets. It must not touch
anything else: registration and address resolution are not what is tested.

usage: lossy_wire.py INTERFACE-A INTERFACE-B PERCENT SEED     until SIGTERM; then says what it did
"""
import random
import select
import signal
import socket
import sys

import wire

SO_RCVBUFFORCE = 33


def main():
    percent, dice = float(sys.argv[3]), random.Random(int(sys.argv[4]))
    ends = [wire.open_interface(name) for name in sys.argv[1:3]]
    for s in ends:
        s.setblocking(False)
        s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
    counts = {"passed": 0, "lost": 0, "repeated": 0, "swapped": 0}
    held = [[], []]  # a packet that waits for the next to overtake it

    def stop(*_):
        print(" ".join(f"{name}: {n}" for name, n in counts.items()), flush=True)
        sys.exit(0)

    def forward(frame, direction):
        out = ends[1 - direction]
        what = "passed"
        if frame[12:14] == b"\x08\x00" and frame[23] == 17 and dice.random() * 100 < percent:
            what = dice.choice(["lost", "lost", "repeated", "swapped"])
        counts[what] += 1
        if what == "swapped" and not held[direction]:
            held[direction].append(frame)
            return
        for f in [frame] * {"lost": 0, "repeated": 2}.get(what, 1) + held[direction]:
            out.send(f)
        held[direction].clear()

    signal.signal(signal.SIGTERM, stop)
    print("ready", flush=True)
    while True:
        for s in select.select(ends, [], [])[0]:
            try:
                while True:
                    frame, address = s.recvfrom(65536)
                    if address[2] != socket.PACKET_OUTGOING:
                        forward(frame, ends.index(s))
            except BlockingIOError:
                pass


main()
