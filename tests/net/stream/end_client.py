#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Clients of framing `length` that ask until the other end closes, and say how it ended.

Some connections are idle. Prints one JSON object when all have ended: `closed` counts ends at the border of a
reply, `cut` those in the middle of one, `reset` resets, `again` what a new connection gets.
"""
import argparse
import json
import selectors
import socket
import struct
import time

PIPELINE = 4


class Connection:
    def __init__(self, o, n):
        self.idle = n < o.idle
        self.s = socket.create_connection((o.address, o.port))
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.asked, self.answered, self.wrong, self.notices = bytearray(), 0, 0, 0, 0
        self.end = None

    def body(self, number):
        return struct.pack('<I', number) * (1 + number % 300)

    def ask(self):
        while not self.idle and self.asked - self.answered - self.notices < PIPELINE:
            body = self.body(self.asked)
            self.asked += 1
            self.s.sendall(struct.pack('<I', len(body)) + body)

    def receive(self):
        data = self.s.recv(1 << 16)
        if not data:
            self.end = 'cut' if self.buffer else 'closed'
            return
        self.buffer += data
        while len(self.buffer) >= 8:
            length, status = struct.unpack_from('<II', self.buffer)
            if len(self.buffer) < 8 + length:
                return
            self.wrong += status == 0 and self.buffer[8:8 + length] != self.body(self.answered + self.notices)
            self.answered += status == 0
            self.notices += status != 0
            del self.buffer[:8 + length]

    def step(self):
        try:
            self.receive()
            if self.end is None:
                self.ask()
        except (ConnectionResetError, BrokenPipeError):
            self.end = 'reset'


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--address', required=True)
    p.add_argument('--port', type=int, required=True)
    p.add_argument('--connections', type=int, default=32)
    p.add_argument('--idle', type=int, default=8)
    p.add_argument('--progress', required=True, help='file that gets a line per 1,000 replies')
    p.add_argument('--limit-s', type=float, default=120)
    o = p.parse_args()
    everyone = [Connection(o, n) for n in range(o.connections)]
    selector, left, told, began = selectors.DefaultSelector(), len(everyone), 0, time.monotonic()
    for c in everyone:
        selector.register(c.s, selectors.EVENT_READ, c)
        c.ask()
    with open(o.progress, 'w', encoding='ascii') as progress:
        while left > 0 and time.monotonic() - began < o.limit_s:
            for key, _ in selector.select(1):
                c = key.data
                c.step()
                if c.end is not None:
                    selector.unregister(c.s)
                    c.s.close()
                    left -= 1
            answered = sum(c.answered for c in everyone)
            if answered >= told + 1000:
                told = answered
                print(told, file=progress, flush=True)
    try:
        socket.create_connection((o.address, o.port), timeout=10).close()
        again = 'accepted'
    except ConnectionRefusedError:
        again = 'refused'
    except OSError as e:
        again = str(e)
    print(json.dumps({
        'answered': sum(c.answered for c in everyone), 'wrong': sum(c.wrong for c in everyone),
        'refused': sum(c.notices for c in everyone), 'left': left, 'again': again,
        **{end: sum(c.end == end for c in everyone) for end in ('closed', 'cut', 'reset')}}))


main()
