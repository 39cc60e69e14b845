# SPDX-License-Identifier: BSD-3-Clause
"""Frames of HTTP/2 as bytes, and a client that sends them one by one. No compression of heads but literals."""
import socket
import struct

PREFACE = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'
DATA, HEADERS, RST, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9


def frame(kind, flags, stream, payload=b''):
    return struct.pack('>I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('>I', stream) + payload


def field(name, value):
    return b'\x00' + bytes([len(name)]) + name + bytes([len(value)]) + value


def head(method):
    """The fields of a call."""
    names = [(b':method', b'POST'), (b':scheme', b'http'), (b':authority', b'x'),
             (b':path', b'/inference.GRPCInferenceService/' + method), (b'content-type', b'application/grpc')]
    return b''.join(field(name, value) for name, value in names)


class Client:
    def __init__(self, host, port):
        self.sock = socket.create_connection((host, port), 10)
        self.sock.settimeout(20)
        self.sock.sendall(PREFACE + frame(SETTINGS, 0, 0))

    def read(self, n):
        got = b''
        while len(got) < n:
            part = self.sock.recv(n - len(got))
            if not part:
                raise EOFError
            got += part
        return got

    def frame(self):
        head = self.read(9)
        return head[3], struct.unpack('>I', head[5:])[0], self.read(int.from_bytes(head[:3], 'big'))

    def until(self, *kinds):
        """The next frame of one of these kinds."""
        while True:
            kind, stream, payload = self.frame()
            if kind in kinds:
                return kind, stream, payload

    def flood(self, part, times):
        """Sends until the other side ends the connection; says how it did."""
        try:
            for _ in range(times):
                self.sock.sendall(part)
        except TimeoutError:
            raise
        except OSError:
            return
        try:
            while True:
                self.until(GOAWAY)
        except TimeoutError:
            raise
        except (EOFError, OSError):
            return
