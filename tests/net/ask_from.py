#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""One request from each of COUNT source ports, and its reply: the same flows in every run.

usage: ask_from.py VIP PORT FIRST-SOURCE-PORT COUNT
"""
import socket
import sys


def main(vip, port, first, count):
    sockets = []
    for i in range(count):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("", first + i))
        s.settimeout(5)
        s.sendto(b"%d" % i, (vip, port))
        sockets.append(s)
    for i, s in enumerate(sockets):
        if s.recv(64) != b"%d" % i:
            sys.exit(f"port {first + i} got another reply")


main(sys.argv[1], *map(int, sys.argv[2:]))
