#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Datagrams with a forged source address.

usage: loop.py send INTERFACE SOURCE-MAC SOURCE SOURCE-PORT LB-MAC VIP PORT COUNT
       loop.py echo ADDRESS PORT    answer what comes until SIGTERM; then print how much that was
"""
import signal
import socket
import sys

import wire


def send(interface, source_mac, source, source_port, mac, vip, port, count):
    out = wire.open_interface(interface)
    ether = bytes.fromhex(mac.replace(":", "")) + bytes.fromhex(source_mac.replace(":", "")) + b"\x08\x00"
    # a checksum of 0: there is none
    frame = ether + wire.ipv4(source, vip, wire.udp(int(source_port), int(port), b"a request"))
    for _ in range(int(count)):
        out.send(frame)


def echo(address, port):
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, int(port)))
    seen = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(print(seen, flush=True)))
    print("ready", flush=True)
    while True:
        data, peer = server.recvfrom(2048)
        seen += 1
        server.sendto(data, peer)


{"send": send, "echo": echo}[sys.argv[1]](*sys.argv[2:])
