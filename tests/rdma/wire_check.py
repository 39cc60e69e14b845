#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks what our RoCEv2 endpoint put on the wire, in a capture of the rows against rdma_rxe.

usage: wire_check.py CAPTURE.pcap OUR-MAC

Every packet of ours must be, byte for byte, what another implementation (../net/wire.py, with zlib's
CRC) builds from the same fields; every packet of the peer's must have the ICRC that it computes. Of
each kind of packet, the first and the longest are shown to tshark, which must find the same fields.
Packets made by hand, many of them wrong, are known by their UDP port.
"""
import collections
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../net"))
import wire  # pylint: disable=wrong-import-position

CRAFT_UDP_PORT = 0xbadd  # rxe/craft.h
EACH = 20                # of a kind, for tshark
WRITES = {wire.WRITE_FIRST: "WRITE_FIRST", wire.WRITE_MIDDLE: "WRITE_MIDDLE",
          wire.WRITE_LAST: "WRITE_LAST", wire.WRITE_LAST_IMM: "WRITE_LAST_IMM",
          wire.WRITE_ONLY: "WRITE_ONLY", wire.WRITE_ONLY_IMM: "WRITE_ONLY_IMM"}
NEEDED = {f"{name}{version}" for version in ("", "/IPv6")
          for name in [*WRITES.values(), "ACK", "NAK 60", "NAK 61", "NAK 62", "NAK 63", "RNR"]}
# tshark's name of a field, and what it should print.
FIELDS = {
    "udp.srcport": lambda p: str(p.source_port),
    "infiniband.bth.opcode": lambda p: str(p.opcode),
    "infiniband.bth.se": lambda p: str(p.flags >> 7),
    "infiniband.bth.m": lambda p: str(p.flags >> 6 & 1),
    "infiniband.bth.padcnt": lambda p: str(-len(p.payload) % 4),
    "infiniband.bth.tver": lambda p: "0",
    "infiniband.bth.p_key": lambda p: "65535",
    "infiniband.bth.destqp": lambda p: f"0x{p.qpn:06x}",
    "infiniband.bth.a": lambda p: str(int(p.ack_request)),
    "infiniband.bth.psn": lambda p: str(p.psn),
    "infiniband.reth.va": lambda p: f"0x{p.va:016x}" if p.opcode in wire.HAS_RETH else "",
    "infiniband.reth.r_key": lambda p: f"0x{p.rkey:08x}" if p.opcode in wire.HAS_RETH else "",
    "infiniband.reth.dmalen": lambda p: str(p.length) if p.opcode in wire.HAS_RETH else "",
    "infiniband.immdt": lambda p: f"0x{p.imm:08x}" if p.opcode in wire.HAS_IMM else "",
    "infiniband.aeth.syndrome": lambda p: str(p.syndrome) if p.opcode == wire.ACK else "",
    "infiniband.aeth.msn": lambda p: str(p.msn) if p.opcode == wire.ACK else "",
}


def kind(packet):
    if packet.opcode == wire.ACK:
        name = ("ACK" if packet.syndrome >> 5 == 0 else
                "RNR" if packet.syndrome >> 5 == 1 else f"NAK {packet.syndrome:x}")
    else:
        name = WRITES.get(packet.opcode, f"opcode {packet.opcode:#x}")
    return name + ("/IPv6" if ":" in packet.source else "")


def parse(frame):
    try:
        return wire.roce_parse(frame)
    except (struct.error, IndexError):
        return None # noise


def write_pcap(path, frames):
    with open(path, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1))
        for frame in frames:
            f.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)


def tshark(path):
    command = ["tshark", "-r", path, "-T", "fields", "-E", "separator=;", "-E", "occurrence=f"]
    for field in [*FIELDS, "frame.protocols", "infiniband.invariant.crc"]:
        command += ["-e", field]
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return [line.split(";") for line in out.stdout.decode().splitlines()]


def equal(seen, expected):
    """tshark prints a number as decimal or hexadecimal, or as bytes, and not always the same way."""
    if seen in (expected, expected.removeprefix("0x")):
        return True
    number = {"True": "1", "False": "0"}.get(seen, seen)
    try:
        return int(number, 0) == int(expected, 0)
    except ValueError:
        return False


def compare(packets, frames, rows):
    if len(rows) != len(packets):
        sys.exit(f"tshark shows {len(rows)} of {len(packets)} packets")
    for packet, frame, row in zip(packets, frames, rows):
        *values, protocols, crc = row
        for (field, expected), seen in zip(FIELDS.items(), values):
            if not equal(seen, expected(packet)):
                sys.exit(f"{kind(packet)} PSN {packet.psn:#x}: tshark's {field} is '{seen}', "
                         f"not '{expected(packet)}'")
        if "infiniband" not in protocols:
            sys.exit(f"{kind(packet)}: to tshark it is {protocols}")
        if not equal(crc, f"0x{frame[-4:].hex()}"):
            sys.exit(f"{kind(packet)}: tshark's ICRC is {crc}, not {frame[-4:].hex()}")


def main():
    path, mac = sys.argv[1], bytes.fromhex(sys.argv[2].replace(":", ""))
    kinds, peers = collections.Counter(), collections.Counter()
    chosen = collections.defaultdict(list)
    for frame in wire.pcap_frames(path):
        packet = parse(frame)
        if packet is None or packet.source_port == CRAFT_UDP_PORT:
            continue
        if packet.source_mac != mac:
            peers[packet.good_icrc] += 1
            continue
        name = kind(packet)
        built = packet.frame(tos=0)
        if built != frame:
            sys.exit(f"{name} PSN {packet.psn:#x} is\n{frame.hex()}\ninstead of\n{built.hex()}")
        kinds[name] += 1
        if len(chosen[name]) < EACH or len(frame) > len(chosen[name][-1]):
            chosen[name] = chosen[name][:EACH - 1] + [frame]
    if missing := NEEDED - set(kinds):
        sys.exit(f"never seen: {', '.join(sorted(missing))}")
    if peers[False] or not peers[True]:
        sys.exit(f"the peer: {peers[False]} wrong ICRCs of {peers.total()}")
    frames = [frame for name in chosen for frame in chosen[name]]
    write_pcap(path + ".chosen", frames)
    compare([parse(frame) for frame in frames], frames, tshark(path + ".chosen"))
    print(f"{kinds.total()} packets of {len(kinds)} kinds of ours are what another builds, "
          f"{peers[True]} of the peer's have the right ICRC, tshark agrees about {len(frames)}")


main()
