# SPDX-License-Identifier: BSD-3-Clause
"""A client of tagged framing (lb/packet/request.h): one scenario per call, figures as JSON.

tagged.py ADDRESS PORT SCENARIO [SOURCE ...]
"""
import json
import select
import socket
import struct
import sys
import time

MAGIC = b"\xdbDBQ"
NOTICE = b"\xdbDBN"
REQUEST, CANCEL, REPLY = 1, 2, 3
CODES = {1: "busy", 2: "timeout", 3: "worker_lost", 4: "model_error", 5: "expired",
         6: "cancelled", 7: "deadline", 8: "malformed", 9: "stopping", 10: "too_large"}


def header(ident, kind=REQUEST, priority=0, deadline_us=0):
    return MAGIC + struct.pack("!BBBBQII", 1, kind, priority, 0, ident, deadline_us, 0)


class Client:
    def __init__(self, to, source=None):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect(to)
        self.sent = {}
        self.answers = {}  # id -> (what, seconds since sent)
        self.order = []
        self.odd = []

    def send(self, ident, payload=b"x", **how):
        self.sent[ident] = (time.monotonic(), payload)
        self.socket.send(header(ident, **how) + payload)

    def cancel(self, ident):
        self.socket.send(header(ident, kind=CANCEL))

    def take(self, datagram):
        if len(datagram) == 16 and datagram[:4] == NOTICE:
            what, (ident,) = CODES[datagram[5]], struct.unpack("!Q", datagram[8:16])
        elif datagram[:4] == MAGIC and datagram[5] == REPLY:
            what, (ident,) = "reply", struct.unpack("!Q", datagram[8:16])
            if datagram[24:] != self.sent[ident][1]:
                what = "wrong"
        else:
            return self.odd.append(datagram.hex())
        if ident in self.answers:
            what = "twice"
        self.order.append(ident)
        self.answers[ident] = (what, time.monotonic() - self.sent.get(ident, (0,))[0])

    def collect(self, count, seconds=10):
        """Until <count> answers are there in all."""
        end = time.monotonic() + seconds
        while len(self.order) < count and time.monotonic() < end:
            if select.select([self.socket], [], [], 0.05)[0]:
                self.take(self.socket.recv(65536))

    def count(self):
        kinds = {}
        for what, _ in self.answers.values():
            kinds[what] = kinds.get(what, 0) + 1
        return kinds


def echo(to, _):
    c = Client(to)
    for i in range(1000):
        c.send(i, bytes([i % 256]) * (1 + i % 1400))
        c.collect(i - 7)
    c.collect(1000)
    return {"answers": c.count(), "odd": c.odd}


def malformed(to, _):
    c = Client(to)
    tag = struct.unpack("!Q", b"garbage!")[0]
    for datagram in (b"garbage!", header(1)[:23], header(2, priority=5) + b"x", b"\0" * 40):
        c.sent = {k: (time.monotonic(), b"") for k in (tag, 0, struct.unpack("!Q", header(2)[:8])[0])}
        c.socket.send(datagram)
    c.socket.send(header(3, kind=REPLY) + b"x")  # a reply is no request; still said so, once
    end = time.monotonic() + 5
    codes = []
    while len(codes) < 5 and time.monotonic() < end:
        if select.select([c.socket], [], [], 0.05)[0]:
            codes.append(c.socket.recv(100)[5])
    return {"codes": codes}


def deadline(to, _):
    """40 at once to a worker that takes 20 ms for each: 100 ms are enough for a few."""
    c = Client(to)
    for i in range(40):
        c.send(i, deadline_us=100000)
    c.collect(40)
    return {"answers": c.count(),
            "reply_ms": max(s for what, s in c.answers.values() if what == "reply") * 1000,
            "last_ms": max(s for _, s in c.answers.values()) * 1000}


def cancel(to, _):
    """The first ones run, the others wait: both kinds are cancelled."""
    c = Client(to)
    for i in range(20):
        c.send(i)
    time.sleep(0.01)
    for i in range(1, 20, 2):
        c.cancel(i)
    c.cancel(77)
    c.collect(20)
    cancelled = sorted(i for i, (what, _) in c.answers.items() if what == "cancelled")
    return {"answers": c.count(), "cancelled": cancelled}


def priority(to, _):
    c = Client(to)
    for i in range(20):
        c.send(i, priority=4)
    c.send(100, priority=1)
    c.collect(21)
    return {"answers": c.count(), "place": c.order.index(100)}


def fair(to, sources):
    """One client keeps 200 outstanding, the other one at a time."""
    greedy, modest = (Client(to, s) for s in sources)
    ident, times = 0, []
    for ident in range(200):
        greedy.send(ident)
    greedy.sent_next = 200
    for i in range(20):
        modest.send(i)
        while len(modest.order) <= i:
            ready = select.select([greedy.socket, modest.socket], [], [], 5)[0]
            if not ready:
                break
            for c in (greedy, modest):
                if c.socket in ready:
                    c.take(c.socket.recv(65536))
                    if c is greedy:
                        c.send(c.sent_next)
                        c.sent_next += 1
        if i not in modest.answers:
            break
        times.append(modest.answers[i][1])
    waits = sorted(s for _, s in greedy.answers.values())
    return {"modest": modest.count(), "greedy": greedy.count(),
            "worst_ms": max(times, default=1e9) * 1000,
            "greedy_median_ms": waits[len(waits) // 2] * 1000}


if __name__ == "__main__":
    to = (sys.argv[1], int(sys.argv[2]))
    print(json.dumps(globals()[sys.argv[3]](to, sys.argv[4:])))
