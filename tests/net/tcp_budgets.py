#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""An innocent client, one request at a time on one connection, and each answer compared: tcp_budgets.py VIP PORT.

Reads a line from its input, asks 20 times, and answers "right", or what went wrong."""
import random
import socket
import struct
import sys

vip, port = sys.argv[1], int(sys.argv[2])
rng = random.Random(7)


def receive(s, n):
    data = b""
    while len(data) < n:
        part = s.recv(n - len(data))
        if not part:
            return data
        data += part
    return data


def ask(s):
    body = rng.randbytes(1000)
    s.sendall(struct.pack("<I", len(body)) + body)
    return receive(s, 8 + len(body)) == struct.pack("<II", len(body), 0) + body


def connect():
    return socket.create_connection((vip, port), timeout=5, source_address=("10.200.0.2", 0))


lasting = connect()
for line in sys.stdin:
    try:
        if line.strip() == "new":
            with connect() as s:
                answer = "right" if ask(s) else "wrong"
        else:
            answer = "right" if all(ask(lasting) for _ in range(20)) else "wrong"
    except OSError as e:
        answer = str(e)
    print(answer, flush=True)
