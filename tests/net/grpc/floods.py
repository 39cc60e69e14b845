#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Clients of HTTP/2 that send frames for their own sake: each connection must end, or cost nothing.

    floods.py HOST PORT
"""
import socket
import struct
import sys

from frames import CONTINUATION, DATA, HEADERS, PING, RST, SETTINGS, Client, field, frame, head

HEAD = head(b'ServerLive')


def client():
    return Client(sys.argv[1], int(sys.argv[2]))


def live(to, stream):
    """A call that is answered; True if it was."""
    to.sock.sendall(frame(HEADERS, 4, stream, HEAD) + frame(DATA, 1, stream, b'\0' * 5))
    return to.until(DATA)[2] == b'\0\0\0\0\2\x08\1'


other = client()
assert live(other, 1)
# Answers that nobody reads: PING and SETTINGS, in one write, so that they come in one turn.
client().flood(frame(PING, 0, 0, b'12345678') * 4000, 50)
client().flood(frame(SETTINGS, 0, 0, struct.pack('>HI', 4, 65535)) * 4000, 50)
# A head without end.
client().flood(frame(HEADERS, 0, 1, HEAD) + frame(CONTINUATION, 0, 1, b'') * 4000, 50)
client().flood(frame(HEADERS, 0, 1, HEAD) + frame(CONTINUATION, 0, 1, field(b'x', b'y' * 100) * 100) * 40, 50)
# Calls that are opened and given up.
given_up, part = client(), b''
for n in range(3000):
    part += frame(HEADERS, 4, 2 * n + 1, HEAD) + frame(RST, 0, 2 * n + 1, struct.pack('>I', 8))
given_up.flood(part, 1)
# More entries of SETTINGS than there are settings; another preface; a frame that is too long.
client().flood(frame(SETTINGS, 0, 0, struct.pack('>HI', 4, 65535) * 100), 1)
sock = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)
sock.settimeout(20)
sock.sendall(b'PRI * HTTP/9.9\r\n\r\nSM\r\n\r\n')
try:
    assert sock.recv(100) == b''
except ConnectionResetError:
    pass
client().flood(frame(DATA, 0, 1, bytes(20000)), 1)
# As many connections as one client may have, of which others have some: the next one is closed, the others live.
clients = []
while len(clients) < 32:
    try:
        one = client()
        assert live(one, 1)
    except (EOFError, ConnectionResetError):
        break
    clients.append(one)
assert 24 < len(clients) < 32, len(clients)
assert live(other, 3) and all(live(c, 3) for c in clients)
