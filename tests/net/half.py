#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""First halves of datagrams: half.py INTERFACE LB-MAC VIP COUNT"""
import struct
import sys

from wire import ipv4, checksum, open_interface

interface, mac, vip, count = sys.argv[1:4] + [int(sys.argv[4])]
out = open_interface(interface)
for i in range(count):
    packet = bytearray(ipv4("10.200.0.2", vip, bytes(24)))
    packet[4:8] = struct.pack(">HH", 1000 + i, 0x2000)  # identification; more fragments
    packet[10:12] = bytes(2)
    packet[10:12] = struct.pack(">H", checksum(bytes(packet[:20])))
    out.send(bytes.fromhex(mac.replace(":", "")) + bytes.fromhex("020000000002") + b"\x08\x00" + packet)
