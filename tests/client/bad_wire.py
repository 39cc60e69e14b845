#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A relay of UDP datagrams that loses some, doubles some and delivers some late, in both directions and by seed.

usage: bad_wire.py LISTEN-PORT HOST:PORT [SEED]
"""
import random
import selectors
import socket
import sys


class Wire:
    def __init__(self, port, to, seed):
        self.chance, self.to, self.late = random.Random(seed), to, []
        self.selector = selectors.DefaultSelector()
        self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.front.bind(("127.0.0.1", port))
        self.selector.register(self.front, selectors.EVENT_READ, None)
        self.back = {}  # a client's address -> the socket that speaks for it

    def pass_on(self, datagram, send):
        fate = self.chance.random()
        if fate < 0.15:
            return
        if fate < 0.25:
            self.late.append((datagram, send))  # behind the next one
            return
        for _ in range(1 + (fate < 0.4)):
            send(datagram)
        late, self.late = self.late, []
        for datagram, send in late:
            send(datagram)

    def serve(self):
        print("ready", flush=True)
        while True:
            for key, _ in self.selector.select():
                if key.data is None:
                    datagram, client = self.front.recvfrom(65536)
                    self.pass_on(datagram, self.speaker(client).send)
                else:
                    self.pass_on(key.fileobj.recv(65536), lambda d, to=key.data: self.front.sendto(d, to))

    def speaker(self, client):
        if client not in self.back:
            self.back[client] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.back[client].connect(self.to)
            self.selector.register(self.back[client], selectors.EVENT_READ, client)
        return self.back[client]


host, _, port = sys.argv[2].rpartition(":")
Wire(int(sys.argv[1]), (host, int(port)), int(sys.argv[3]) if len(sys.argv) > 3 else 1).serve()
