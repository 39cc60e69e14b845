# SPDX-License-Identifier: BSD-3-Clause
"""Replies in pieces over tagged framing, by the library for clients: each ends with 0 if all was as expected.

pieces.py HOST:PORT udp|tcp whole|lossy|lost|stopped [COUNT]

The model is `words`: each word of a text is a piece of its reply. `whole`: every reply must be complete, piece by piece.
`lossy` (udp): datagrams of replies are lost, doubled and late on the way; then a reply is complete, or the client is told
that it is not. `lost`: process $WORKER is killed in the middle of replies; none may seem complete. `stopped`: it is told to end, and
all come whole.
"""
import os
import random
import select
import signal
import socket
import struct
import sys
import threading
import time

import doorbell_client as d

ADDRESS, PROTOCOL, STEP = sys.argv[1:4]
COUNT = int(sys.argv[4]) if len(sys.argv) > 4 else 200
draw = random.Random(7)


def text_of(words, longest=20):
    return " ".join("".join(draw.choice("abcdefgh") for _ in range(draw.randint(1, longest))) for _ in range(words))


def request_of(text):
    return struct.pack("<I", len(text)) + text.encode()


def pieces_of(text):
    """What the model says: a word with the spaces in front of it."""
    first, *others = text.split(" ")
    return [struct.pack("<I", len(w)) + w.encode() for w in [first] + [" " + other for other in others]]


def client(address=ADDRESS, in_flight=32 if PROTOCOL == "tcp" else 3):
    """By UDP a socket has room for the pieces of so many replies, however long this process is halted."""
    return d.Client(address, protocol=PROTOCOL, in_flight=in_flight)


def ask_all(c, count, **how):
    """(text, request that is over), for each of <count>."""
    texts = [text_of(draw.randint(1, 40)) for _ in range(count)]
    requests = [c.submit(request_of(text), **how) for text in texts]
    return [(text, c.wait(request)) for text, request in zip(texts, requests)]


def step_whole():
    with client() as c:
        pieces = 0
        for text, request in ask_all(c, COUNT, deadline_ms=60000):
            assert request.status == d.OK, (text, d.text(request.status), request.detail)
            assert request.chunks == pieces_of(text), (text, request.chunks)
            pieces += len(request.chunks)
    print(f"{COUNT} replies in {pieces} pieces by {PROTOCOL}")


class Wire(threading.Thread):
    """A way to <to> for one client's datagrams, which loses, doubles and delays what comes back."""

    def __init__(self, to):
        super().__init__(daemon=True)
        host, port = to.rsplit(":", 1)
        self.near, self.far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        self.near.bind(("127.0.0.1", 0))
        self.far.connect((host, int(port)))
        self.address = "127.0.0.1:%d" % self.near.getsockname()[1]
        self.fate, self.lost, self.late = random.Random(1), 0, []

    def run(self):
        peer = None
        while True:
            for s in select.select([self.near, self.far], [], [], 0.01)[0]:
                if s is self.near:
                    data, peer = s.recvfrom(65536)
                    self.far.send(data)
                else:
                    self.back(s.recv(65536), peer)
            for data in self.late:
                self.near.sendto(data, peer)
            self.late = []

    def back(self, data, peer):
        fate = self.fate.random()
        if fate < 0.02:
            self.lost += 1
        elif fate < 0.03:
            self.late.append(data)
        else:
            self.near.sendto(data, peer)
            if fate < 0.05:
                self.near.sendto(data, peer)


def step_lossy():
    wire, found = Wire(ADDRESS), {}
    wire.start()
    with client(wire.address) as c:
        for text, request in (asked for _ in range(COUNT // 3) for asked in ask_all(c, 3, deadline_ms=1500)):
            found[request.status] = found.get(request.status, 0) + 1
            # What there is of it is the beginning of the reply, also where the rest is missing.
            assert request.chunks == pieces_of(text)[:len(request.chunks)], (text, request.chunks)
            assert request.status != d.OK or len(request.chunks) == len(pieces_of(text)), (text, request.chunks)
    said = {d.text(status): n for status, n in found.items()}
    assert set(found) <= {d.OK, d.REPLY_CUT, d.NO_ANSWER, d.DEADLINE}, said
    assert found.get(d.OK, 0) > 0 and found.get(d.REPLY_CUT, 0) > 0 and wire.lost > 0, (said, wire.lost)
    print(f"{wire.lost} datagrams lost: {said}")


def begin(c, words):
    """(text, request), for each of 8, of all of which pieces have come."""
    texts = [text_of(words, 2) for _ in range(8)]
    requests = [c.submit(request_of(text), deadline_ms=60000) for text in texts]
    end = time.monotonic() + 60
    while min(len(request.chunks) for request in requests) < 2:
        assert time.monotonic() < end and all(r.status == d.PENDING for r in requests), [r.status for r in requests]
        select.select([c.fileno()], [c.fileno()] if c.wants_write() else [], [], c.timeout())
        c.process()
    return list(zip(texts, requests))


def step_stopped():
    with client(in_flight=8) as c:
        begun = begin(c, 60)
        os.kill(int(os.environ["WORKER"]), signal.SIGTERM)
        for text, request in begun:
            c.wait(request)
            assert request.status == d.OK and request.chunks == pieces_of(text), (d.text(request.status), request.chunks)
    print("8 replies are whole")


def step_lost():
    with client(in_flight=8) as c:
        begun = begin(c, 400)
        os.kill(int(os.environ["WORKER"]), signal.SIGKILL)
        for text, request in begun:
            c.wait(request)
            assert request.status == d.WORKER_LOST, (d.text(request.status), len(request.chunks))
            assert request.chunks == pieces_of(text)[:len(request.chunks)], request.chunks
    print(f"8 replies end with worker_lost behind {[len(request.chunks) for _, request in begun]} pieces")


globals()["step_" + STEP]()
