#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Clients that do not wait for their answers: one by HTTP/1.1, which closes its connection, and one by HTTP/2, which resets
its stream.

    access_gone.py MESSAGES HOST PORT
"""
import json
import os
import socket
import struct
import sys

sys.path[:0] = [sys.argv[1], os.path.join(os.path.dirname(__file__), '..', 'grpc')]
import frames
import inference_pb2 as pb

HOST, PORT = sys.argv[2], int(sys.argv[3])

body = json.dumps({'id': 'gone', 'inputs': [{'name': 'input0', 'shape': [1], 'datatype': 'UINT8', 'data': [1]}]}).encode()
with socket.create_connection((HOST, PORT), 10) as sock:
    head = b'POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n' % len(body)
    sock.sendall(head + body)
    # Another connection is answered when this one was read.
    with socket.create_connection((HOST, PORT), 10) as other:
        other.sendall(b'GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n')
        assert other.recv(4096).startswith(b'HTTP/1.1 200')
    # A reset, not a FIN: a client that only stops sending still wants its answer.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))

request = pb.ModelInferRequest(model_name='echo', id='reset')
request.inputs.add(name='input0', datatype='UINT8', shape=[1])
request.raw_input_contents.append(b'x')
message = request.SerializeToString()
to = frames.Client(HOST, PORT)
to.sock.sendall(frames.frame(frames.HEADERS, 4, 1, frames.head(b'ModelInfer')) +
                frames.frame(frames.DATA, 1, 1, b'\0' + struct.pack('>I', len(message)) + message) +
                frames.frame(frames.RST, 0, 1, struct.pack('>I', 8)) + frames.frame(frames.PING, 0, 0, b'all read'))
to.until(frames.PING)
