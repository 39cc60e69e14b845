#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""An echo client in VLAN-tagged frames: resolves the service's address, sends requests of several
sizes, expects the same bytes under the same tag.

usage: vlan_client.py INTERFACE VLAN OWN-ADDRESS SERVICE-ADDRESS PORT
"""
import os
import socket
import struct
import sys
import time

import wire

SOL_PACKET, PACKET_AUXDATA, VLAN_VALID = 263, 8, 0x10


def receive(s):
    """A frame and its tag, which the kernel may have taken out of it."""
    data, ancillary, _, address = s.recvmsg(2048, 256)
    if address[2] == socket.PACKET_OUTGOING:
        return None, None
    if data[12:14] == b"\x81\x00":
        return data[:12] + data[16:], struct.unpack(">H", data[14:16])[0] & 0xfff
    for level, kind, aux in ancillary:
        if level == SOL_PACKET and kind == PACKET_AUXDATA:
            status, _, _, _, _, tci, _ = struct.unpack("IIIHHHH", aux[:20])
            if status & VLAN_VALID:
                return data, tci & 0xfff
    return data, None


def await_frame(s, vlan, is_it):
    end = time.monotonic() + 5
    while time.monotonic() < end:
        frame, tag = receive(s)
        if frame is not None and is_it(frame):
            if tag != vlan:
                sys.exit(f"answered with tag {tag}, asked with {vlan}")
            return frame
    sys.exit("no answer within 5 s")


def main():
    interface, vlan, own, service, port = sys.argv[1:]
    vlan, port = int(vlan), int(port)
    s = wire.open_interface(interface)
    s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    s.settimeout(5)
    mac = s.getsockname()[4]
    tag = struct.pack(">HH", 0x8100, vlan)
    who = struct.pack(">HHBBH6s4s6s4s", 1, 0x800, 6, 4, 1, mac, socket.inet_aton(own), bytes(6),
                      socket.inet_aton(service))
    s.send(b"\xff" * 6 + mac + tag + b"\x08\x06" + who)
    answer = await_frame(s, vlan, lambda f: f[12:14] == b"\x08\x06" and f[20:22] == b"\0\x02")
    head = answer[22:28] + mac + tag + b"\x08\x00"
    for size in (1, 20, 1000, 1472):
        request = os.urandom(size)
        s.send(head + wire.ipv4(own, service, wire.udp(40000, port, request)))
        reply = await_frame(s, vlan, lambda f: f[12:14] == b"\x08\x00" and f[23] == 17)
        length = struct.unpack(">H", reply[38:40])[0]
        if reply[42:34 + length] != request:
            sys.exit(f"a request of {size} bytes came back as {length - 8} others")


main()
