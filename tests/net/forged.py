#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ICMP errors about replies that nobody sent: forged.py INTERFACE LB-MAC VIP COUNT"""
import struct
import sys

from wire import checksum, ipv4, open_interface, udp

interface, mac, vip, count = sys.argv[1:4] + [int(sys.argv[4])]
out = open_interface(interface)
for i in range(count):
    inner = ipv4(vip, "10.200.0.2", udp(8500, 1 + i, bytes(8)))
    icmp = struct.pack(">BBHI", 3, 3, 0, 0) + inner
    icmp = icmp[:2] + struct.pack(">H", checksum(icmp)) + icmp[4:]
    out.send(bytes.fromhex(mac.replace(":", "")) + bytes.fromhex("020000000002") + b"\x08\x00" +
             ipv4("10.200.0.77", vip, icmp, protocol=1))
