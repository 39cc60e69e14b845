#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Clients that use up what one client may have, and one that does nothing of the kind: tcp_budgets.py VIP.

Reads a command per line and answers each with a line. Clients have addresses of their own."""
import select
import socket
import struct
import sys
import time

import told

vip = sys.argv[1]
PORT, UDP_PORT = 8500, 8501
INNOCENT, ATTACKERS = "10.200.0.3", ["10.200.0.11", "10.200.0.12", "10.200.0.13"]
LARGE = 64 << 10
attacking = []


def connect(address):
    return told.connect(address, (vip, PORT))


def attacker(number=0):
    s = told.connect(ATTACKERS[number], (vip, PORT), resets=True)
    attacking.append(s)
    return s


def receive(s, n):
    data = b""
    while len(data) < n:
        part = s.recv(n - len(data))
        if not part:
            raise EOFError("closed")
        data += part
    return data


def request(size, number=0):
    body = struct.pack("<I", number) * (size // 4)
    return struct.pack("<I", len(body)) + body


def check(s, size, number=0):
    length, status = struct.unpack("<II", receive(s, 8))
    if status != 0:
        raise ValueError(f"status {status}")
    if struct.pack("<I", length) + receive(s, length) != request(size, number):
        raise ValueError("a wrong reply")


def ask(s, sizes):
    for number, size in enumerate(sizes):
        s.sendall(request(size, number))
        check(s, size, number)


def innocent():
    """Requests of the client that was there before, each answered right."""
    ask(old, [100, 1000] * 10)
    return "right"


def fresh():
    """A new connection of it, a large request, too."""
    with connect(INNOCENT) as s:
        ask(s, [100, 1000, LARGE])
    return "right"


def connections(n, addresses="1"):
    """As many as there are, or as one address may have, and then some."""
    for i in range(int(n)):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.bind((ATTACKERS[i % int(addresses)], 0))
        s.setblocking(False)
        s.connect_ex((vip, PORT))
        attacking.append(s)
    return "begun"


def halves(n, addresses="1"):
    """Large requests, of which the last byte never comes, on connections of their own. All are open before any asks."""
    new = [attacker(i % int(addresses)) for i in range(int(n))]
    for s in new:
        s.setblocking(False)
        s.send(request(LARGE)[:-1])
    return "sent"


def statuses(n):
    """Waits until n of the attackers' connections have an answer; the statuses, and how many had each."""
    found, end = [], time.monotonic() + 20
    while len(found) < int(n) and time.monotonic() < end:
        for s in select.select(attacking, [], [], 1)[0]:
            s.setblocking(True)
            found.append(struct.unpack("<II", receive(s, 8))[1])
    return " ".join(f"{status}:{found.count(status)}" for status in sorted(set(found)))


def pipeline(n):
    """Many requests on one connection, sent as fast as it takes them, beside the other client's; all answered right."""
    s = attacker()
    out, answered = b"".join(request(400, i) for i in range(int(n))), 0
    s.setblocking(False)
    out = out[s.send(out):]
    innocent()
    while answered < int(n):
        readable, writable, _ = select.select([s], [s] if out else [], [], 20)
        if writable:
            out = out[s.send(out):]
        if readable:
            s.setblocking(True)
            check(s, 400, answered)
            s.setblocking(False)
            answered += 1
    return "right"


def flows(each):
    """Flows of UDP from all addresses; how many were answered."""
    new = []
    for address in ATTACKERS:
        for _ in range(int(each)):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.bind((address, 0))
            s.sendto(b"x", (vip, UDP_PORT))
            new.append(s)
    answered, ready = 0, new
    while ready:
        ready = select.select(new, [], [], 0.5)[0]
        for s in ready:
            answered += s.recv(100) == b"x"
            new.remove(s)
            attacking.append(s)
    attacking.extend(new)
    return f"answered {answered}"


def leave():
    for s in attacking:
        s.close()
    attacking.clear()
    return "left"


old = connect(INNOCENT)
told.listen(innocent, fresh, connections, halves, statuses, pipeline, flows, leave)
