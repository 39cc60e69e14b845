# SPDX-License-Identifier: BSD-3-Clause
"""A service as small as it can be, for tests of clients: kernel sockets, a thread per connection, and the framings of
lb/framing/stream.h and lb/packet/request.h. The text of a request says what becomes of it:

    echo:X          the reply X                       notice:CODE:N:X   a notice the first N times, then X
    size:N          N bytes                           lose:N:X          nothing the first N times, then X
    chunks:A,B,C    a reply of three chunks           reset:N:X         the connection is reset N times, then X
    split:X         X, a byte per segment             hold:X            X, in one segment with the next reply, behind
    slow:MS:X       X, after some ms                                    it where the framing allows any order
    half:X          half of the reply, then the end   twice:X           X two times
    unasked:X       a reply to nothing, then X        garbage           bytes in no framing
    huge            a chunk that claims 4 GiB         cancels           how many cancels came so far
    deadline        the request's deadline in us      stranger:X        X from another port, then "own"
    trickle         a reply of 100,000 bytes, one every 10 ms
"""
import collections
import socket
import struct
import threading
import time

HEADER = struct.Struct("!4sBBBBQII")


def tagged(kind, six, ident, chunk, data, stream):
    return HEADER.pack(b"\xdbDBQ", 1, kind, six, 0, ident, chunk, len(data) if stream else 0) + data


class Framing:
    """Bytes around the answers to one request."""

    def __init__(self, name, tcp, ident, first):
        self.name, self.tcp, self.id, self.first = name, tcp, ident, first

    def reply(self, data, chunk=0, more=False, ident=None):
        if self.name == "tagged":
            return tagged(3, int(more), self.id if ident is None else ident, chunk, data, self.tcp)
        return data if self.name == "datagram" else struct.pack("<II", len(data), 256 * more) + data

    def notice(self, code):
        if self.name == "length":
            return struct.pack("<II", 0, code)
        if self.tcp:
            return tagged(4, code, self.id, 0, b"", True)
        first = struct.pack("!Q", self.id) if self.name == "tagged" else self.first[:8].ljust(8, b"\0")
        return b"\xdbDBN" + struct.pack("!BBH", 1, code, 0) + first

    def huge(self):
        if self.name == "length":
            return struct.pack("<II", 0xffffffff, 0)
        return HEADER.pack(b"\xdbDBQ", 1, 3, 0, 0, self.id, 0, 0xffffffff)


class End(Exception):
    """The connection is to end."""


class Server:
    """Serves until close(). .address is where."""

    def __init__(self, protocol, framing, host="127.0.0.1"):
        self.tcp, self.framing, self.host = protocol == "tcp", framing, host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family, socket.SOCK_STREAM if self.tcp else socket.SOCK_DGRAM)
        self.socket.bind((host, 0))
        port = self.socket.getsockname()[1]
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.lock, self.seen, self.cancels = threading.Lock(), collections.Counter(), 0
        self.connections, self.held, self.ended = 0, {}, False
        if self.tcp:
            self.socket.listen(16)
        self.thread = threading.Thread(target=self.accept if self.tcp else self.datagrams, daemon=True)
        self.thread.start()

    def close(self):
        self.ended = True
        if self.tcp:
            socket.create_connection(self.socket.getsockname()[:2]).close()
        else:
            wake = socket.socket(self.socket.family, socket.SOCK_DGRAM)
            wake.sendto(b"", self.socket.getsockname())
            wake.close()
        self.thread.join()
        self.socket.close()

    # --- what becomes of a request

    def times(self, text):
        with self.lock:
            self.seen[text] += 1
            return self.seen[text]

    def answer(self, text, f, send, deadline_us):
        """Calls send(bytes) for what is to go out in one segment, or raises End."""
        command, _, rest = text.decode("latin-1").partition(":")
        count = self.times(text)
        if command in ("notice", "lose", "reset"):
            parts = rest.split(":") if command == "notice" else ["0", *rest.split(":")]
            if count > int(parts[1]):
                return send(f.reply(parts[2].encode()))
            if command == "reset":
                raise End("reset")
            return send(f.notice(int(parts[0]))) if command == "notice" else None
        return getattr(self, "do_" + command)(rest, f, send, deadline_us)

    def do_echo(self, rest, f, send, _):
        held = self.held.pop(threading.get_ident(), b"")
        reply = f.reply(rest.encode())
        send(held + reply if f.name == "length" else reply + held)

    def do_size(self, rest, f, send, _):
        send(f.reply(bytes(i * i % 251 for i in range(1000)) * (int(rest) // 1000)))

    def do_chunks(self, rest, f, send, _):
        parts = rest.split(",")
        for i, part in enumerate(parts):
            send(f.reply(part.encode(), i, i + 1 < len(parts)))

    def do_split(self, rest, f, send, _):
        for byte in f.reply(rest.encode()):
            send(bytes([byte]))

    def do_slow(self, rest, f, send, _):
        ms, _, data = rest.partition(":")
        time.sleep(int(ms) / 1000)
        send(f.reply(data.encode()))

    def do_hold(self, rest, f, send, _):
        self.held[threading.get_ident()] = f.reply(rest.encode())

    def do_half(self, rest, f, send, _):
        reply = f.reply(rest.encode())
        send(reply[:-(len(rest) // 2)])
        raise End("close")

    def do_twice(self, rest, f, send, _):
        send(f.reply(rest.encode()) * 2 if f.tcp else f.reply(rest.encode()))
        if not f.tcp:
            send(f.reply(rest.encode()))

    def do_unasked(self, rest, f, send, _):
        send(f.reply(b"nobody's", ident=f.id ^ 1 << 63))
        send(f.reply(rest.encode()))

    def do_garbage(self, rest, f, send, _):
        send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    def do_huge(self, rest, f, send, _):
        send(f.huge())

    def do_trickle(self, rest, f, send, _):
        for byte in f.reply(bytes(100000)):
            send(bytes([byte]))
            time.sleep(0.01)

    def do_cancels(self, rest, f, send, _):
        send(f.reply(str(self.cancels).encode()))

    def do_deadline(self, rest, f, send, deadline_us):
        send(f.reply(str(deadline_us).encode()))

    def do_stranger(self, rest, f, send, _):
        send(f.reply(rest.encode()), stranger=True)
        send(f.reply(b"own"))

    # --- TCP

    def accept(self):
        while True:
            connection, _ = self.socket.accept()
            if self.ended:
                return connection.close()
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while True:
                self.serve_one(connection)
        except End as end:
            if str(end) == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError:
            pass
        connection.close()

    def serve_one(self, connection):
        if self.framing == "length":
            length, = struct.unpack("<I", self.take(connection, 4))
            return self.answer(self.take(connection, length), Framing("length", True, 0, b""), connection.sendall, 0)
        magic, version, kind, _, zero, ident, deadline_us, length = HEADER.unpack(self.take(connection, HEADER.size))
        assert (magic, version, zero) == (b"\xdbDBQ", 1, 0) and kind in (1, 2)
        if kind == 2:
            self.cancels += 1
            return None
        f = Framing("tagged", True, ident, b"")
        return self.answer(self.take(connection, length), f, connection.sendall, deadline_us)

    @staticmethod
    def take(connection, n):
        data = b""
        while len(data) < n:
            more = connection.recv(n - len(data))
            if not more:
                raise End("close")
            data += more
        return data

    # --- UDP

    def datagrams(self):
        stranger = socket.socket(self.socket.family, socket.SOCK_DGRAM)
        while True:
            data, to = self.socket.recvfrom(65536)
            if self.ended:
                return stranger.close()

            def send(answer, to=to, **how):
                (stranger if how.get("stranger") else self.socket).sendto(answer, to)
            f, text, deadline_us = Framing("datagram", False, 0, data), data, 0
            if self.framing == "tagged":
                magic, version, kind, _, zero, ident, deadline_us, last = HEADER.unpack(data[:HEADER.size])
                assert (magic, version, zero, last) == (b"\xdbDBQ", 1, 0, 0) and kind in (1, 2)
                if kind == 2:
                    self.cancels += 1
                    continue
                f, text = Framing("tagged", False, ident, b""), data[HEADER.size:]
            self.answer(text, f, send, deadline_us)
