#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# tagged_request.py [ADDRESS]: a request with an id, a priority and a deadline, and a cancel
import socket, struct, sys

REQUEST, CANCEL, REPLY = 1, 2, 3


def header(kind, request_id, priority=0, deadline_us=0):
    return b"\xdbDBQ" + struct.pack("!BBBBQII", 1, kind, priority, 0, request_id, deadline_us, 0)


def read(datagram):
    """(what, id, bytes): ("reply", 7, b"...") or ("notice", 7, code)"""
    request_id, = struct.unpack("!Q", datagram[8:16])
    if datagram[:4] == b"\xdbDBN" and len(datagram) == 16:
        return "notice", request_id, datagram[5]
    if datagram[:4] == b"\xdbDBQ" and datagram[5] == REPLY:
        return "reply", request_id, datagram[24:]
    raise ValueError("neither a reply nor a notice")


sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.connect((sys.argv[1] if len(sys.argv) > 1 else "10.200.0.100", 8501))
sock.settimeout(2)
for request_id in (7, 8):
    sock.send(header(REQUEST, request_id, priority=3, deadline_us=500000) + bytes(8 + 64))
sock.send(header(CANCEL, 8))    # says nothing when request 8 has been answered already
for _ in (7, 8):
    what, request_id, content = read(sock.recv(2048))
    print(f"request {request_id}: {what}", content if what == "notice" else f"of {len(content)} bytes")
