#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Clients of a service with TLS and framing length; its worker echoes.

    tcp_tls.py echo|hold|bad|many ADDRESS PORT CA     tcp_tls.py plain ADDRESS PORT     tcp_tls.py flood ADDRESS PORT FROM

echo   every version and cipher, requests of all sizes, writes of all sizes, resumption, half-close
hold   one connection; commands on stdin: echo, close
bad    what must be refused: renegotiation, a forged record, versions that are too old, garbage, silence
many   16 connections at a time
plain  one request without TLS
flood  handshakes that are begun and not gone on with, until it is ended
"""
import concurrent.futures
import os
import random
import select
import socket
import ssl
import struct
import subprocess
import sys

command, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
rest = sys.argv[4] if len(sys.argv) > 4 else None


def context(version=None, ciphers=None):
    made = ssl.create_default_context(cafile=rest)
    if version:
        made.minimum_version = made.maximum_version = version
    if ciphers:
        made.set_ciphers(ciphers)
    return made


def tcp():
    sock = socket.create_connection((address, port), timeout=20)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def dial(made, session=None):
    return made.wrap_socket(tcp(), server_hostname=address, session=session)


def read(sock, n):
    data = bytearray()
    while len(data) < n:
        part = sock.recv(n - len(data))
        assert part, f'the connection ended after {len(data)} of {n} bytes'
        data += part
    return bytes(data)


def answer(sock):
    data = b''
    while True:
        length, status = struct.unpack('<II', read(sock, 8))
        assert status in (0, 256), f'status {status}'
        data += read(sock, length)
        if status == 0:
            return data


def ask(sock, data, pieces=None):
    stream = struct.pack('<I', len(data)) + data
    while stream:
        n = pieces() if pieces else len(stream)
        sock.sendall(stream[:n])
        stream = stream[n:]
    assert answer(sock) == data, 'another answer'


def echo():
    chance = random.Random(1)
    large = chance.randbytes(4 << 20)
    versions = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    for version in versions:
        with dial(context(version)) as sock:
            for n in (1, 100, 1472, 5000, 16384, 16385, 100000, len(large)):
                ask(sock, large[:n])
            ask(sock, large[:20000], lambda: chance.choice((1, 2, 3, 20, 1000)))
            # Many in one record, answered in their order.
            sock.sendall(b''.join(struct.pack('<I', n) + large[:n] for n in range(1, 200)))
            for n in range(1, 200):
                assert answer(sock) == large[:n]
            # A request that came before the client's goodbye is answered.
            sock.sendall(struct.pack('<I', 70000) + large[:70000])
            plain = sock.unwrap if version == versions[0] else None
            if plain is None:
                assert answer(sock) == large[:70000]
    for cipher in ('ECDHE-RSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES256-GCM-SHA384', 'ECDHE-RSA-CHACHA20-POLY1305'):
        with dial(context(versions[0], cipher)) as sock:
            assert sock.cipher()[0] == cipher
            ask(sock, large[:50000])
    for version in versions:
        made = context(version)
        with dial(made) as sock:
            ask(sock, b'a request, with whose answer the ticket comes')
            session = sock.session
        with dial(made, session) as sock:
            assert sock.session_reused, 'a ticket was not taken'
            ask(sock, large[:1000000])
    openssl_suites(large)
    rekey()


def openssl_suites(large):
    """TLS 1.3's ciphers one by one."""
    head = struct.pack('<I', 5000) + large[:5000]
    for suite in ('TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'):
        client = subprocess.Popen(['openssl', 's_client', '-connect', f'{address}:{port}', '-quiet', '-CAfile', rest,
                                   '-ciphersuites', suite], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL)
        client.stdin.write(head)
        client.stdin.flush()
        got = client.stdout.read(8 + 5000)
        client.stdin.close()
        client.kill()
        client.wait()
        assert got[8:] == large[:5000], f'{suite}: {got[:20]}'


def rekey():
    """New keys for both sides, asked for by the client three times; requests between them."""
    client = subprocess.Popen(['openssl', 's_client', '-connect', f'{address}:{port}', '-tls1_3', '-CAfile', rest],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def say(text, expected):
        client.stdin.write(text)
        client.stdin.flush()
        said = b''
        while expected not in said:
            part = client.stdout.read1(4096)
            assert part, said
            said += part

    for i in range(3):
        say(b'K\n', b'KEYUPDATE')
        data = b'request %d' % i
        say(struct.pack('<I', len(data)) + data, data)
    client.kill()
    client.wait()


def hold():
    sock = dial(context())
    for line in sys.stdin:
        if line.strip() == 'close':
            sock.close()
            print('closed', flush=True)
            return
        ask(sock, os.urandom(30000))
        print('ok', sock.version()[4:], flush=True)


def ends(sock):
    """The other side ends the connection; returns what it said before."""
    data = b''
    try:
        while part := sock.recv(4096):
            data += part
    except ConnectionResetError:
        pass
    return data


def bad():
    # Too old.
    try:
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers('ALL:@SECLEVEL=0')
        dial(old)
        raise SystemExit('TLS 1.1 was taken')
    except ssl.SSLError:
        pass
    # Renegotiation.
    client = subprocess.run(['openssl', 's_client', '-connect', f'{address}:{port}', '-tls1_2', '-CAfile', rest],
                            input=b'R\n', capture_output=True, timeout=20)
    assert client.returncode != 0, 'a renegotiation was taken'
    # A handshake that is garbage after its first record's header.
    with tcp() as sock:
        sock.sendall(b'\x16\x03\x01\x00\x20' + bytes(32))
        assert ends(sock)[:1] == b'\x15', 'no alert'
    # A record that nobody has encrypted.
    made, incoming, outgoing = context(), ssl.MemoryBIO(), ssl.MemoryBIO()
    with tcp() as sock:
        tls = made.wrap_bio(incoming, outgoing, server_hostname=address)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                sock.sendall(outgoing.read())
                incoming.write(sock.recv(65536))
        sock.sendall(outgoing.read() + b'\x17\x03\x03\x00\x40' + bytes(64))
        incoming.write(ends(sock))
        try:
            while True:
                tls.read(1000)
        except ssl.SSLError as error:
            assert 'bad record mac' in str(error).lower(), error
    # A client that is silent, and one that is so in the middle of its handshake.
    for first in (b'', b'\x16\x03\x01\x02\x00\x01'):
        with tcp() as sock:
            sock.sendall(first)
            ends(sock)


class Both:
    """Sends a stream while it is read, in one thread: two at a time corrupt a connection of OpenSSL."""

    def __init__(self, sock, stream):
        self.sock, self.stream = sock, memoryview(stream)
        sock.setblocking(False)

    def send(self):
        try:
            n = self.sock.send(self.stream[:16384]) if self.stream else 0
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        self.stream = self.stream[n:]
        return n > 0

    def recv(self, n):
        while True:
            sent = self.send()
            try:
                return self.sock.recv(n)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass
            if not sent:
                ready = select.select([self.sock], [self.sock] if self.stream else [], [], 60)
                assert any(ready), 'nothing came for a minute'


def many():
    """16 connections at a time, 8 open requests each, sizes of all kinds."""
    versions = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)

    def one(number):
        chance = random.Random(number)
        with dial(context(versions[number % 2])) as sock:
            asked = [chance.randbytes(int(2 ** chance.uniform(0, 18))) for _ in range(40)]
            stream = b''.join(struct.pack('<I', len(data)) + data for data in asked)
            both = Both(sock, stream)
            for data in asked:
                assert answer(both) == data, 'another answer'
        return len(asked)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        print(sum(pool.map(one, range(32))), 'answers', flush=True)


def plain():
    with tcp() as sock:
        ask(sock, b'plain')


def flood():
    made = ssl.create_default_context()
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = made.wrap_bio(incoming, outgoing, server_hostname=address)
    try:
        tls.do_handshake()
    except ssl.SSLWantReadError:
        pass
    hello, socks = outgoing.read(), []
    while True:
        try:
            sock = socket.create_connection((address, port), timeout=5, source_address=(rest, 0))
            sock.sendall(hello)
            socks.append(sock)
        except OSError:
            pass
        if len(socks) == 300:
            print('begun', flush=True)
        if len(socks) >= 600:
            socks.pop(0).close()


{'echo': echo, 'hold': hold, 'bad': bad, 'many': many, 'plain': plain, 'flood': flood}[command]()
