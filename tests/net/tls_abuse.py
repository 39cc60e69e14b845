#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Clients of services with TLS and framing length that want to harm others, and one that does not.

    tls_abuse.py VIP PORT OTHER-PORT CA INNOCENT ATTACKER       a command per line, an answer per line

PORT is attacked, OTHER-PORT is another tenant's. INNOCENT and ATTACKER are addresses of this machine. The worker echoes."""
import os
import socket
import struct
import sys
import threading

import told

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tls"))
import early as openssl  # noqa: E402
import records  # noqa: E402
from records import ALERT, CLOSE_NOTIFY, DATA, HANDSHAKE, NO_RENEGOTIATION, USER_CANCELED, V12, V13, context  # noqa: E402

vip, CA, INNOCENT, ATTACKER = sys.argv[1], *sys.argv[4:7]
A, B = (vip, int(sys.argv[2])), (vip, int(sys.argv[3]))
VERSIONS = V12, V13
attacking = []


def request(data):
    return struct.pack("<I", len(data)) + data


def reply(client, data):
    """The answer to it, which is read."""
    length, status = struct.unpack("<II", client.read(8))
    if status != 0 or client.read(length) != data:
        raise ValueError(f"another answer: {length} {status}")


class Innocent:
    """A connection by TLS to each tenant, of each version, on which it asks."""

    def __init__(self):
        self.clients = [records.Client(INNOCENT, to, context(CA, version)) for to in (A, B) for version in VERSIONS]

    def ask(self, times):
        for i in range(times):
            for c in self.clients:
                data = bytes([i + 1]) * (1 + 4000 * (i % 4))
                c.send(c.record(DATA, request(data)))
                reply(c, data)
        return "right"


def innocent():
    """Requests on the connections that were there before, each answered right."""
    return old.ask(4)


def fresh():
    """The same on new ones."""
    new = Innocent()
    try:
        return new.ask(2)
    finally:
        for c in new.clients:
            c.close()


def attacker(version, **more):
    c = records.Client(ATTACKER, A, context(CA, version), **more)
    attacking.append(c)
    return c


def say(c, *contents):
    """Sends records; the other side may end the connection meanwhile."""
    try:
        for kind, content in contents:
            c.send(c.record(kind, content))
    except ConnectionError:
        pass


def leave():
    while attacking:
        attacking.pop().close()
    return "left"


# --- records --------------------------------------------------------------------------------------------------------

def in_a_row(kind, content, version, alert):
    """Records that say nothing. <alert>: what ends the connection, or none does and it is closed."""
    c = attacker(version)
    say(c, *[(kind, content)] * 40)
    end = c.ends()
    if alert != (end not in ("fin", "reset")):
        raise ValueError(f"it ended by {end}")


def empty():
    for version in VERSIONS:
        in_a_row(DATA, b"", version, True)
    return "ended 2"


def warnings():
    """One that is an answer to nothing ends the connection at once."""
    for version in VERSIONS:
        in_a_row(ALERT, bytes([1, USER_CANCELED]), version, True)
    in_a_row(ALERT, bytes([1, NO_RENEGOTIATION]), V12, False)
    return "ended 3"


def updates():
    """New keys, and nothing between them."""
    c = attacker(V13)
    try:
        for _ in range(40):
            c.send(c.update(1))
    except ConnectionError:
        pass
    return "ended 1" if c.ends() != "fin" else "it ended without an alert"


def slow_updates(n="100"):
    """New keys before each byte of a request."""
    c, data = attacker(V13), bytes(range(int(n) % 256)) or b"x"
    c.send(b"".join(c.update(1) + c.record(DATA, bytes([byte])) for byte in request(data)))
    reply(c, data)
    return "right"


def single_bytes():
    """Records of a byte, and of none between them."""
    for version in VERSIONS:
        c, data = attacker(version), os.urandom(2000)
        c.send(b"".join(c.record(DATA, bytes([byte])) + c.record(DATA, b"") for byte in request(data)))
        reply(c, data)
    return "right"


def oversized():
    n = 0
    for version in VERSIONS:
        for make in (lambda c: c.record(DATA, bytes(16385)), lambda c: b"\x17\3\3\xff\xff" + bytes(65535),
                     lambda c: b"\x17\3\3\0\0", lambda c: b"\x17\3\3\0\1x", lambda c: c.record(DATA, b"x")[:-1] + b"?",
                     lambda c: c.record(HANDSHAKE, b""), lambda c: c.record(24, b"x"), lambda c: c.record(ALERT, b"\1"),
                     lambda c: b"\x18" + c.record(DATA, b"x")[1:]):
            c = attacker(version)
            try:
                c.send(make(c))
            except ConnectionError:
                pass
            c.ends()
            n += 1
    return f"ended {n}"


def renegotiate():
    """A ClientHello with the connection's keys, whole and cut."""
    for version in VERSIONS:
        for cut in (4, 1):
            c = attacker(version)
            say(c, *[(HANDSHAKE, b"\1\0\0\0"[i:i + cut]) for i in range(0, 4, cut)])
            c.ends()
    return "ended 4"


def goodbyes():
    """close_notify in the middle of a request: it is none. In front of its reply: that comes, and what the client says
    behind its goodbye does not count."""
    for version in VERSIONS:
        c = attacker(version)
        say(c, (DATA, request(bytes(60000))[:16000]), (ALERT, bytes([1, CLOSE_NOTIFY])))
        if c.ends() == "reset":
            raise ValueError("reset")
        c, data = attacker(version), os.urandom(60000)
        whole = request(data)
        say(c, *[(DATA, whole[i:i + 16000]) for i in range(0, len(whole), 16000)])
        say(c, (ALERT, bytes([1, CLOSE_NOTIFY])), (DATA, request(b"not this")))
        reply(c, data)
        if c.ends() == "reset":
            raise ValueError("reset behind its reply")
    return "ended 4"


# --- handshakes -----------------------------------------------------------------------------------------------------

class Cut(Exception):
    pass


class Half(records.Client):
    """A handshake whose <flight> ends after a part of it, 0 to 1 by <at>."""

    def __init__(self, version, flight, at):
        self.flight, self.at = flight, at
        try:
            super().__init__(ATTACKER, A, context(CA, version), self.cut)
            raise ValueError("it was not cut")
        except Cut:
            pass

    def cut(self, bytes_):
        if self.flight > 0:
            self.flight -= 1
            return self.s.sendall(bytes_)
        self.s.sendall(bytes_[:int(len(bytes_) * self.at)])
        raise Cut


def to_end(s):
    try:
        while s.recv(65536):
            pass
    except ConnectionError:
        pass
    s.close()


def cuts(end):
    """At each message, and within; then the client does as <end> says. Part of the last flight."""
    socks = [Half(version, flight, at).s for version in VERSIONS for flight in (0, 1)
             for at in (0, 0.01, 0.3, 0.6, 0.99, 1)[:5 if flight else 6]]
    for s in socks:
        if end == "reset":
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        elif end == "fin":
            s.shutdown(socket.SHUT_WR)
    for s in socks if end != "reset" else ():
        to_end(s)
    return f"cut {len(socks)}"


class Split(records.Client):
    """Its first flight, the ClientHello, comes in records of a byte."""

    def __init__(self, version):
        self.flights = 0
        super().__init__(ATTACKER, A, context(CA, version), self.split)

    def split(self, bytes_):
        self.s.sendall(records.split(bytes_) if self.flights == 0 else bytes_)
        self.flights += 1


def split_hello():
    for version in VERSIONS:
        c = Split(version)
        attacking.append(c)
        say(c, (DATA, request(b"abc")))
        reply(c, b"abc")
    return "right"


def endless_hello():
    """A ClientHello that says it has 16 MiB, in records of a byte."""
    s = told.connect(ATTACKER, A)
    try:
        s.sendall(b"\x16\3\1\0\4\1\xff\xff\xff" + b"\x16\3\1\0\1\0" * 60000)
    except ConnectionError:
        pass
    to_end(s)
    return "ended 1"


def tickets():
    """A ticket is taken again and again by its tenant, and not by the other."""
    made = context(CA, V13)
    c = attacker_of(made, A)
    say(c, (DATA, request(b"abc")))
    reply(c, b"abc")
    session, resumed = c.tls.session, 0
    for to in [A] * 20 + [B] * 20:
        c = attacker_of(made, to, session)
        resumed += c.tls.session_reused
        say(c, (DATA, request(b"abc")))
        reply(c, b"abc")
        c.close()
    return f"resumed {resumed} of 40"


def attacker_of(made, to, session=None):
    return records.Client(ATTACKER, to, made, session=session)


def early():
    """Early data is refused, and requests in it are none, also when they come again."""
    c = openssl.Client(told.connect(ATTACKER, A))
    c.connect()
    c.write(request(b"abc"))
    reply(c, b"abc")
    session = c.session(16384)
    c.close()
    c = openssl.Client(told.connect(ATTACKER, A), session)
    flight = c.early(request(b"early"))
    c.s.sendall(flight)
    c.connect()
    if not c.is_refused() or not c.is_resumed():
        raise ValueError(f"refused {c.is_refused()}, resumed {c.is_resumed()}")
    c.write(request(b"late"))
    reply(c, b"late")
    c.close()
    for more in (b"", b"\x17\3\3\x40\0" + bytes(16384), (b"\x17\3\3\x10\0" + bytes(4096)) * 50):
        s = told.connect(ATTACKER, A)
        try:
            s.sendall(flight + more)
            s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        to_end(s)
    return "refused 4"


# --- all at once ----------------------------------------------------------------------------------------------------

def storm_on():
    """Attacks, one behind the other, until it is told to end."""
    n = 0
    while not calm.is_set():
        (empty, updates, oversized, renegotiate, split_hello, lambda: cuts("reset"))[n % 6]()
        leave()
        n += 1


def storm():
    calm.clear()
    threads.append(threading.Thread(target=storm_on))
    threads[0].start()
    return "begun"


def is_storm():
    return "yes" if threads[0].is_alive() else "no"


def end_storm():
    calm.set()
    threads.pop().join()
    return "ended"


calm, threads = threading.Event(), []
old = Innocent()
told.listen(innocent, fresh, leave, empty, warnings, updates, slow_updates, single_bytes, oversized, renegotiate, goodbyes, cuts,
            split_hello, endless_hello, tickets, early, storm, is_storm, end_storm)
