#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Asks the model of digits by UDP: the request's bytes to DIRECTORY/request, the model's own answer to DIRECTORY/reply.

    own_answer.py DIRECTORY HOST PORT
"""
import os
import socket
import struct
import sys

ROWS = '005d910000dfaf5003f20b8004c008800580098004b01c7002e5ac00006da000'

request = struct.pack('<Q', 18446744073709551615) + bytes(int(pixel, 17) for pixel in ROWS)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.settimeout(10)
    sock.connect((sys.argv[2], int(sys.argv[3])))
    sock.send(request)
    reply = sock.recv(2048)
for name, data in (('request', request), ('reply', reply)):
    with open(os.path.join(sys.argv[1], name), 'wb') as file:
        file.write(data)
