#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks every RoCEv2 packet of a capture: ICRC, sequence, lengths; and that the opcodes named on
the command line occur. A packet may be sent again, as it was but for the request for an ACK.

usage: roce_check.py CAPTURE.pcap OPCODE...
"""
import collections
import sys

import wire


def content(p):
    return p.opcode, p.va, p.rkey, p.length, p.imm, p.payload


def main():
    opcodes = collections.Counter()
    next_psn, sent, again = {}, {}, 0
    packets = [p for p in map(wire.roce_parse, wire.pcap_frames(sys.argv[1])) if p is not None]
    for number, p in enumerate(packets, 1):
        where = f"RoCE packet {number} ({p.source} to QP {p.qpn:#x}, PSN {p.psn})"
        opcodes[p.opcode] += 1
        if not p.good_icrc:
            sys.exit(f"{where}: wrong ICRC")
        if p.flags & 0x0f or p.pkey != 0xffff:
            sys.exit(f"{where}: version {p.flags & 0x0f}, P_Key {p.pkey:#x}")
        if p.opcode == wire.ACK:
            if p.syndrome >> 5:
                sys.exit(f"{where}: NAK {p.syndrome:#x}")
            continue
        if sent.get((p.qpn, p.psn)) == content(p):
            again += 1
            continue
        if p.psn != next_psn.get(p.qpn, p.psn):
            sys.exit(f"{where}: expected PSN {next_psn[p.qpn]}")
        next_psn[p.qpn] = (p.psn + 1) & 0xffffff
        sent[p.qpn, p.psn] = content(p)
        if p.opcode in (wire.WRITE_ONLY, wire.WRITE_ONLY_IMM) and p.length != len(p.payload):
            sys.exit(f"{where}: RETH says {p.length} bytes, the packet has {len(p.payload)}")
    for name in sys.argv[2:]:
        if opcodes[getattr(wire, name)] == 0:
            sys.exit(f"no packet with opcode {name} among {len(packets)}")
    print(f"{len(packets)} packets, every ICRC and PSN right, {again} sent again; by opcode: " +
          ", ".join(f"{opcode:#04x}: {n}" for opcode, n in sorted(opcodes.items())))


main()
