#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A client of large requests while workers and the load balancer die: tcp_faults.py VIP.

Reads a command per line and answers each with a line: half NAME PORT, rest NAME, small NAME, next NAME;
open NAME PORT; two NAME PORT, both NAME."""
import fcntl
import functools
import random
import socket
import struct
import sys
import termios
import time

import told

SIZE = 1 << 20
HUGE = 8 << 20
vip = sys.argv[1]
rng = random.Random(8)
connections = {}


class Connection:
    def __init__(self, port, room):
        self.s = socket.socket()
        if room:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.s.settimeout(20)
        self.s.connect((vip, port))
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.body = rng.randbytes(SIZE)

    def open(self):
        return self.small()

    def two(self):
        """Two huge requests; nothing of their replies is read yet."""
        self.huge = [rng.randbytes(HUGE), rng.randbytes(HUGE)]
        for body in self.huge:
            self.s.sendall(struct.pack("<I", HUGE) + body)
        return "sent"

    def both(self):
        return ", ".join(self.answer(body) for body in self.huge)

    def half(self):
        """All that was sent is acknowledged, so the load balancer has it."""
        self.s.sendall(struct.pack("<I", SIZE) + self.body[:SIZE // 2])
        while struct.unpack("I", fcntl.ioctl(self.s, termios.TIOCOUTQ, bytes(4)))[0] > 0:
            time.sleep(0.001)
        return "half"

    def receive(self, n):
        data = b""
        while len(data) < n:
            part = self.s.recv(n - len(data))
            if not part:
                return data
            data += part
        return data

    def answer(self, body):
        head = self.receive(8)
        if len(head) < 8:
            return "closed"
        length, status = struct.unpack("<II", head)
        if status != 0:
            return f"status {status}"
        return "right" if length == len(body) and self.receive(length) == body else "wrong"

    def rest(self):
        self.s.sendall(self.body[SIZE // 2:])
        return self.answer(self.body)

    def small(self):
        body = rng.randbytes(100)
        self.s.sendall(struct.pack("<I", len(body)) + body)
        return self.answer(body)

    def next(self):
        """ms until the connection's end is known after the next segment."""
        began = time.monotonic()
        try:
            self.small()
        except ConnectionResetError:
            return f"reset {(time.monotonic() - began) * 1000:.0f}"
        return "no reset"


def order(command, name, port=None):
    if port:
        # A reader that is slow has little room.
        connections[name] = Connection(int(port), 65536 if command == "two" else 0)
    return getattr(connections[name], command)()


told.listen(**{command: functools.partial(order, command) for command in ("half", "rest", "small", "next", "open", "two", "both")})
