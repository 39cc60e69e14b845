#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Clients of all manners for tests/bench/soak/soak.sh, until SIGTERM: then they finish, and one JSON object is printed.

Requests come at a light rate by UDP and TCP, small ones and up to --max-size bytes. Some clients read slowly, send slowly,
leave without a request, or reset the connection in the middle of a request or of a reply. `wrong` counts replies with
other bytes than the request's; `lost` requests of a well-behaved client that got neither a reply nor a notice, and connections
that ended under one.
"""
import argparse
import asyncio
import json
import math
import random
import signal
import socket
import struct
import sys
import traceback

TAGGED = struct.Struct('!5sBBBQII')  # magic and version, kind, priority, 0, id, deadline, length
MAGIC = b'\xdb\x44\x42\x51\x01'
NOTICE = b'\xdb\x44\x42\x4e'
PATTERN = random.Random(1).randbytes(4 << 20)
PATIENCE_S = 120
DATAGRAM_MAX = 1400


class Gone(Exception):
    """The load balancer ended the connection."""


class Soak:
    def __init__(self, o):
        self.o, self.random, self.ended = o, random.Random(o.seed), False
        self.count = dict.fromkeys(('requests', 'answered', 'wrong', 'lost', 'refused', 'connections', 'aborted', 'left_idle',
                                    'slow_reads', 'slow_sends', 'cancelled', 'failed'), 0)

    def add(self, what, n=1):
        self.count[what] += n

    def size(self, low, high):
        return min(high, int(math.exp(self.random.uniform(math.log(low), math.log(high + 1)))))

    def body(self, size):
        at = self.random.randrange(len(PATTERN) - size)
        return PATTERN[at:at + size]

    async def pause(self, seconds):
        """Sleep around <seconds>, less when the clients are to end."""
        until = asyncio.get_running_loop().time() + self.random.uniform(0.5, 1.5) * seconds
        while not self.ended and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(min(1, max(0, until - asyncio.get_running_loop().time())))


class Connection:
    """A TCP connection; `async with` closes it."""

    def __init__(self, soak, port, receive_buffer=None):
        self.soak, self.port, self.receive_buffer, self.buffer = soak, port, receive_buffer, bytearray()
        self.loop = asyncio.get_running_loop()

    async def __aenter__(self):
        six = self.soak.o.address6 and self.soak.random.random() < 0.3
        self.s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_STREAM)
        self.s.setblocking(False)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.receive_buffer:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_buffer)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self.loop.sock_connect(self.s, (self.soak.o.address6 if six else self.soak.o.address, self.port))
        except BaseException:
            self.s.close()
            raise
        self.soak.add('connections')
        return self

    async def __aexit__(self, *_):
        self.s.close()

    def reset(self):
        """Close with a reset, whatever is under way."""
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        self.s.close()

    async def send(self, data):
        await self.loop.sock_sendall(self.s, data)

    async def more(self, most=1 << 18):
        data = await self.loop.sock_recv(self.s, most)
        if not data:
            raise Gone('closed')
        self.buffer += data

    async def take(self, n):
        while len(self.buffer) < n:
            await self.more()
        data = bytes(self.buffer[:n])
        del self.buffer[:n]
        return data

    async def reply(self):
        """(bytes, status) of framing `length`"""
        length, status = struct.unpack('<II', await self.take(8))
        return await self.take(length), status


def framed(body):
    return struct.pack('<I', len(body)) + body


def judge(soak, body, got, status):
    if status != 0:
        soak.add('refused')
    else:
        soak.add('answered' if got == body else 'wrong')


async def exchange(soak, c, bodies):
    """Requests of framing `length`, all at once; returns when all are answered."""
    soak.add('requests', len(bodies))
    left = len(bodies)

    async def receive():
        nonlocal left
        for body in bodies:
            judge(soak, body, *await c.reply())
            left -= 1
    try:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(c.send(b''.join(map(framed, bodies))), receive())
    except (OSError, Gone, TimeoutError) as e:
        soak.add('lost', left)
        print(f'{left} requests lost: {e!r}', file=sys.stderr, flush=True)
        return False
    return True


# --- manners: each is one visit of a client ----------------------------------------------------------------------------


async def small(soak):
    async with Connection(soak, soak.o.length_port) as c:
        for _ in range(soak.random.randint(1, 8)):
            if not await exchange(soak, c, [soak.body(soak.size(1, DATAGRAM_MAX)) for _ in range(soak.random.randint(1, 8))]):
                return
            await soak.pause(0.05)
        if soak.random.random() < 0.3:  # the half that is closed is the client's
            c.s.shutdown(socket.SHUT_WR)


async def large(soak):
    async with Connection(soak, soak.o.length_port) as c:
        for _ in range(soak.random.randint(1, 2)):
            if not await exchange(soak, c, [soak.body(soak.size(1500, soak.o.max_size)) for _ in range(soak.random.randint(1, 3))]):
                return


async def tagged(soak):
    """Replies in any order, some requests cancelled."""
    n, bodies, data = soak.random.randint(1, 12), {}, b''
    for number in range(n):
        bodies[number + 1] = body = soak.body(soak.size(1, 20000 if number == 0 else DATAGRAM_MAX))
        data += TAGGED.pack(MAGIC, 1, soak.random.randint(0, 4), 0, number + 1, 0, len(body)) + body
        if soak.random.random() < 0.1:
            data += TAGGED.pack(MAGIC, 2, 0, 0, number + 1, 0, 0)
    async with Connection(soak, soak.o.tagged_port) as c:
        soak.add('requests', n)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await c.send(data)
                got = {}
                while bodies:
                    _, kind, more, _, number, _, length = TAGGED.unpack(await c.take(TAGGED.size))
                    if kind == 4:
                        soak.add('cancelled' if more == 6 else 'refused')
                        del bodies[number]
                        continue
                    got[number] = got.get(number, b'') + await c.take(length)
                    if not more:
                        judge(soak, bodies.pop(number), got.pop(number), 0)
        except (OSError, Gone, TimeoutError) as e:
            soak.add('lost', len(bodies))
            print(f'{len(bodies)} tagged requests lost: {e!r}', file=sys.stderr, flush=True)


async def abort_request(soak):
    """Ends in the middle of a request, by a reset or by a FIN."""
    body = framed(soak.body(soak.size(2, soak.o.max_size)))
    async with Connection(soak, soak.o.length_port) as c:
        soak.add('aborted')
        if soak.random.random() < 0.5:
            await exchange(soak, c, [soak.body(100)])
        try:
            async with asyncio.timeout(2):
                await c.send(body[:soak.random.randrange(1, len(body))])
        except TimeoutError:
            pass
        if soak.random.random() < 0.5:
            await asyncio.sleep(soak.random.uniform(0, 0.05))
        if soak.random.random() < 0.7:
            c.reset()


async def abort_reply(soak):
    """Ends with replies under way."""
    async with Connection(soak, soak.o.length_port) as c:
        soak.add('aborted')
        bodies = [soak.body(soak.size(1, soak.o.max_size)) for _ in range(soak.random.randint(1, 4))]
        try:
            async with asyncio.timeout(5):
                # What is sent while nothing is read may fill both ends' memory: the timeout is the abort, then.
                await c.send(b''.join(map(framed, bodies)))
                if soak.random.random() < 0.7:
                    await c.more()
        except TimeoutError:
            pass
        if soak.random.random() < 0.7:
            c.reset()


async def slow_reader(soak):
    body = soak.body(soak.size(30000, 200000))
    async with Connection(soak, soak.o.length_port, receive_buffer=4096) as c:
        soak.add('slow_reads')
        soak.add('requests')
        try:
            async with asyncio.timeout(PATIENCE_S):
                await c.send(framed(body))
                while len(c.buffer) < 8:
                    await c.more(1024)
                until = soak.random.randint(5000, 28000)  # a notice is shorter, and ends at once
                while struct.unpack_from('<I', c.buffer)[0] > 0 and len(c.buffer) < until:
                    await asyncio.sleep(0.05)
                    await c.more(1024)
                judge(soak, body, *await c.reply())
        except (OSError, Gone, TimeoutError) as e:
            soak.add('lost')
            print(f'a slow reader, port {c.s.getsockname()[1]}, lost its reply of {len(body)} after {len(c.buffer)} bytes: {e!r}', file=sys.stderr, flush=True)


async def slow_sender(soak):
    """Drips a request: gets its reply, or a notice when it has lost its place."""
    body = soak.body(soak.size(2000, 60000))
    data = framed(body)
    async with Connection(soak, soak.o.length_port) as c:
        soak.add('slow_sends')
        soak.add('requests')
        step = max(1, len(data) // 30)
        try:
            async with asyncio.timeout(PATIENCE_S):
                for i in range(0, len(data), step):
                    await c.send(data[i:i + step])
                    await asyncio.sleep(0.1)
                judge(soak, body, *await c.reply())
        except (OSError, Gone, TimeoutError) as e:
            soak.add('lost')
            print(f'a slow sender got no answer: {e!r}', file=sys.stderr, flush=True)


async def idle(soak):
    async with Connection(soak, soak.random.choice((soak.o.length_port, soak.o.tagged_port))):
        soak.add('left_idle')
        await soak.pause(1)


async def datagrams(soak):
    six = soak.o.address6 and soak.random.random() < 0.3
    loop = asyncio.get_running_loop()
    s = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM)
    s.setblocking(False)
    s.connect((soak.o.address6 if six else soak.o.address, soak.o.udp_port))
    try:
        for _ in range(soak.random.randint(1, 12)):
            bodies = {i: struct.pack('<Q', i) + soak.body(soak.size(1, DATAGRAM_MAX - 8)) for i in range(soak.random.randint(1, 8))}
            soak.add('requests', len(bodies))
            for body in bodies.values():
                s.send(body)
            try:
                async with asyncio.timeout(PATIENCE_S):
                    while bodies:
                        got = await loop.sock_recv(s, 2048)
                        notice = len(got) == 16 and got[:4] == NOTICE
                        number, = struct.unpack_from('<Q', got, 8 if notice else 0)
                        body = bodies.pop(number, None)
                        if body is None:
                            soak.add('wrong')
                        else:
                            judge(soak, body, got, 1 if notice else 0)
            except (OSError, TimeoutError) as e:
                soak.add('lost', len(bodies))
                print(f'{len(bodies)} datagrams lost: {e!r}', file=sys.stderr, flush=True)
            await soak.pause(0.05)
    finally:
        s.close()


# How many clients of each manner there are, and the mean seconds between one's visits.
MANNERS = ((small, 6, 0.3), (large, 3, 0.6), (tagged, 4, 0.3), (abort_request, 3, 0.4), (abort_reply, 3, 0.5), (slow_reader, 3, 1),
           (slow_sender, 3, 1), (idle, 4, 0.5), (datagrams, 6, 0.3))


async def come_and_go(soak, manner, every_s):
    await soak.pause(every_s)
    while not soak.ended:
        try:
            await manner(soak)
        except (OSError, Gone, TimeoutError) as e:
            # A manner catches what its requests meet; this is a connection that was refused or reset.
            soak.add('failed')
            print(f'{manner.__name__}: {e!r}', file=sys.stderr, flush=True)
        await soak.pause(every_s)


async def main():
    p = argparse.ArgumentParser()
    p.add_argument('--address', required=True)
    p.add_argument('--address6')
    p.add_argument('--length-port', type=int, default=8500)
    p.add_argument('--tagged-port', type=int, default=8501)
    p.add_argument('--udp-port', type=int, default=8502)
    p.add_argument('--max-size', type=int, default=1 << 20)
    p.add_argument('--seed', type=int, default=1)
    soak = Soak(p.parse_args())

    def end():
        soak.ended = True
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    async with asyncio.TaskGroup() as group:
        for manner, clients, every_s in MANNERS:
            for _ in range(clients):
                group.create_task(come_and_go(soak, manner, every_s))
    print(json.dumps(soak.count))


try:
    asyncio.run(main())
except BaseException:
    traceback.print_exc()
    sys.exit(1)
