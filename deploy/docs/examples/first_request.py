#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# first_request.py [ADDRESS]: asks the service digits which digit a picture shows
import os, socket, sys

ROWS = "005d9100 00dfaf50 03f20b80 04c00880 05800980 04b01c70 02e5ac00 006da000"
request_id = os.urandom(8)                          # any 8 bytes; the model returns them
picture = bytes(int(pixel, 17) for pixel in ROWS.replace(" ", ""))  # 64 bytes, 0 (white) to 16
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.connect((sys.argv[1] if len(sys.argv) > 1 else "10.200.0.100", 8500))
sock.settimeout(2)                                  # UDP: a lost datagram gets no answer
sock.send(request_id + picture)
answer = sock.recv(2048)
if len(answer) == 16 and answer[:4] == b"\xdbDBN":  # a notice instead of a reply
    sys.exit(f"no reply: notice code {answer[5]}")
print("this picture shows a", answer[8] if answer[:8] == request_id else "?")
