#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Segments of a stranger who knows a connection's addresses and ports, and not its numbers, while it is used:
tcp_blind.py VIP PORT INTERFACE LB-MAC. Prints one JSON object; exits with 1 if the connection noticed."""
import json
import random
import socket
import struct
import sys
import time

from wire import checksum, ipv4, open_interface

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
STEP = 40000  # less than the window that is offered: some segment of each sweep is in it
SPACE = 1 << 29  # of the numbers, with the client's own in it
TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ, SEND_QUEUE = 19, 20, 21, 2

vip, port, interface, mac = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
rng = random.Random(5961)
out = open_interface(interface)
ether = bytes.fromhex(mac.replace(":", "")) + bytes.fromhex("020000000666") + b"\x08\x00"
answered = sent = 0


def segment(source, source_port, seq, ack, flags, payload):
    tcp = struct.pack(">HHIIBBHHH", source_port, port, seq, ack, 0x50, flags, 65535, 0, 0) + payload
    pseudo = socket.inet_aton(source) + socket.inet_aton(vip) + struct.pack(">HH", 6, len(tcp))
    tcp = tcp[:16] + struct.pack(">H", checksum(pseudo + tcp)) + tcp[18:]
    return ether + ipv4(source, vip, tcp, protocol=6, tos=0)


def receive(s, n):
    data = b""
    while len(data) < n:
        part = s.recv(n - len(data))
        if not part:
            sys.exit("the connection was closed")
        data += part
    return data


def ask(s):
    global answered
    body = rng.randbytes(1000)
    s.sendall(struct.pack("<I", len(body)) + body)
    if receive(s, 8 + len(body)) != struct.pack("<II", len(body), 0) + body:
        sys.exit("a wrong reply")
    answered += 1


def own_number(s):
    s.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    s.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, SEND_QUEUE)
    number = s.getsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ)
    s.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, -1)  # off, and no probe
    return number % (1 << 32)


def sweep(s, flags, payload=b""):
    """Segments with numbers all over the space, and requests between them."""
    global sent
    source, source_port = s.getsockname()
    first = own_number(s) - rng.randrange(SPACE)
    for i in range(SPACE // STEP + 1):
        seq = (first + i * STEP) % (1 << 32)
        out.send(segment(source, source_port, seq, rng.randrange(1 << 32) if flags & ACK else 0, flags, payload))
        sent += 1
        if i % 512 == 0:
            ask(s)


with socket.create_connection((vip, port), timeout=20) as s:
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    ask(s)
    began = time.monotonic()
    sweep(s, RST)
    sweep(s, RST | ACK)
    sweep(s, SYN)
    sweep(s, SYN | ACK)
    sweep(s, PSH | ACK, b"\0" * 64)
    sweep(s, ACK)
    sweep(s, FIN | ACK)
    sweep(s, FIN | SYN | RST | PSH)
    took = time.monotonic() - began
    for _ in range(20):
        ask(s)
print(json.dumps({"answered": answered, "sent": sent, "seconds": took}))
