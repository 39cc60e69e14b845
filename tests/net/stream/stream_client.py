#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A client of framing `length` by the kernel's TCP: requests of all sizes, pipelined, compared to the byte.

Prints one JSON object. Exits with 1 when a reply was wrong, or missing after --limit-s.
"""
import argparse
import json
import math
import os
import random
import selectors
import socket
import struct
import time


class Connection:
    def __init__(self, o, n):
        self.o = o
        self.random = random.Random(o.seed * 1000003 + n)
        family = socket.AF_INET6 if ':' in o.address else socket.AF_INET
        self.s = socket.socket(family, socket.SOCK_STREAM)
        self.s.connect((o.address, o.port))
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.s.setblocking(False)
        self.out, self.buffer, self.open = bytearray(), bytearray(), []
        self.asked = self.answered = self.wrong = self.notices = 0
        self.moved, self.stall = time.monotonic(), 0.0

    def ask(self):
        while self.asked < self.o.requests and len(self.open) < self.o.pipeline and len(self.out) < 1 << 22:
            low, high = math.log(self.o.min_size), math.log(self.o.max_size + 1)
            body = self.random.randbytes(int(math.exp(self.random.uniform(low, high))))
            self.open.append((body, time.monotonic()))
            self.out += struct.pack('<I', len(body)) + body
            self.asked += 1

    def send(self):
        self.ask()
        while self.out:
            try:
                n = self.s.send(self.out[:1 << 18])
            except BlockingIOError:
                return
            del self.out[:n]
            self.note()
            self.ask()

    def note(self):
        now = time.monotonic()
        self.stall = max(self.stall, now - self.moved)
        self.moved = now

    def receive(self, latencies):
        try:
            data = self.s.recv(1 << 20)
        except BlockingIOError:
            return True
        if not data:
            return False
        self.note()
        self.buffer += data
        while len(self.buffer) >= 8:
            length, status = struct.unpack_from('<II', self.buffer)
            if len(self.buffer) < 8 + length:
                break
            body, at = self.open.pop(0)
            latencies.append(time.monotonic() - at)
            if status != 0:
                self.notices += 1
            elif self.buffer[8:8 + length] != body:
                self.wrong += 1
            else:
                self.answered += 1
            del self.buffer[:8 + length]
        if not self.open:
            self.moved = time.monotonic()
        return True

    def done(self):
        return self.asked == self.o.requests and not self.open


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--address', required=True)
    p.add_argument('--port', type=int, required=True)
    p.add_argument('--connections', type=int, default=1)
    p.add_argument('--requests', type=int, default=10, help='of each connection')
    p.add_argument('--pipeline', type=int, default=1)
    p.add_argument('--min-size', type=int, default=1)
    p.add_argument('--max-size', type=int, default=1024)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--limit-s', type=float, default=60)
    o = p.parse_args()
    began = time.monotonic()
    all_of_them = [Connection(o, n) for n in range(o.connections)]
    selector, latencies, lost = selectors.DefaultSelector(), [], 0
    for c in all_of_them:
        selector.register(c.s, selectors.EVENT_READ | selectors.EVENT_WRITE, c)
    left = len(all_of_them)
    while left > 0 and time.monotonic() - began < o.limit_s:
        for key, events in selector.select(1):
            c = key.data
            if events & selectors.EVENT_WRITE:
                c.send()
            over = events & selectors.EVENT_READ and not c.receive(latencies)
            selector.modify(c.s, selectors.EVENT_READ | (selectors.EVENT_WRITE if c.out or c.asked < o.requests and
                                                         len(c.open) < o.pipeline else 0), c)
            if over or c.done():
                selector.unregister(c.s)
                c.s.close()
                lost += len(c.open)
                left -= 1
    seconds = time.monotonic() - began
    lost += sum(len(c.open) for c in all_of_them if c.s.fileno() >= 0)
    latencies.sort()
    figures = {
        'requests': sum(c.asked for c in all_of_them), 'answered': sum(c.answered for c in all_of_them),
        'wrong': sum(c.wrong for c in all_of_them), 'refused': sum(c.notices for c in all_of_them), 'lost': lost,
        'rps': len(latencies) / seconds, 'seconds': seconds,
        'p50_us': 1e6 * latencies[len(latencies) // 2] if latencies else 0,
        'p99_us': 1e6 * latencies[len(latencies) * 99 // 100] if latencies else 0,
        'stall_ms': 1e3 * max((c.stall for c in all_of_them), default=0),
    }
    print(json.dumps(figures), flush=True)
    os._exit(1 if figures['wrong'] or figures['lost'] or left else 0)


main()
