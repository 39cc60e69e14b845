#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A flood of requests from sources that do not exist, each of a flow of its own.

usage: flood.py INTERFACE LB-MAC VIP PORT RATE    so many a second until SIGTERM; then prints how
                                                  many were sent
"""
import random
import signal
import socket
import struct
import sys
import time

import wire

BATCH = 64


def main(interface, mac, vip, port, rate):
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    link.bind((interface, 0))
    ether = bytes.fromhex(mac.replace(":", "")) + link.getsockname()[4] + b"\x08\x00"
    rng, sent, begin = random.Random(1), 0, time.monotonic()
    while not stop:
        # 198.18.0.0/15 is for benchmarks (RFC 2544); checksums of 0 mean none.
        frames = [ether + wire.ipv4(f"198.{rng.randint(18, 19)}.{rng.randint(0, 255)}."
                                    f"{rng.randint(1, 254)}", vip,
                                    struct.pack(">HHHH", rng.randint(1024, 65535), port, 8 + 64, 0)
                                    + bytes(64)) for _ in range(BATCH)]
        for frame in frames:
            link.send(frame)
        sent += BATCH
        time.sleep(max(0, begin + sent / rate - time.monotonic()))
    print(sent, flush=True)


main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))
