#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""RoCEv2 packets that the load balancer must not believe, sent from the fabric under the name of a
worker whose traffic was captured. Each is to be counted under one name.

usage: bad_fabric.py INTERFACE CAPTURE.pcap harmless|replies|fatal

harmless  what leaves the queue pair as it is: each row several times
replies   replies in order and with the right keys, whose content is wrong: the queue pair moves on
          and is out of step with its worker from then on
fatal     what ends the queue pair, as it does on an RNIC

Prints as JSON what is to be counted.
"""
import collections
import dataclasses
import json
import struct
import sys

import wire

TIMES = 5


def reply(sequence=1, length=8, **fields):
    """Changes that make a reply: struct ring_reply, then 8 bytes."""
    data = struct.pack("<QQQQII", sequence, 1, 2, 3, length, 0) + bytes(8)
    return {"opcode": wire.WRITE_ONLY_IMM, "payload": data, "length": len(data),
            "ack_request": True, **fields}


def harmless(last, ack):
    """Rows [name of the counter, packet]: <last> is the worker's last WRITE, <ack> its last ACK."""
    psn = last.psn
    write = dataclasses.replace
    return [
        ["roce_icrc", write(last, good_icrc=False)],
        ["roce_icrc", write(ack, good_icrc=False)],
        ["roce_qpn", write(last, qpn=last.qpn ^ 0x400)],   # another generation of the link
        ["roce_qpn", write(last, qpn=last.qpn ^ 0x3ff)],   # another worker
        ["roce_qpn", write(last, qpn=last.qpn | 0xfc0000)],  # an lcore that does not exist
        ["roce_mac", write(last, source_mac=bytes.fromhex("020000006666"))],
        ["roce_mac", write(ack, source_mac=bytes.fromhex("020000006666"))],
        ["roce_source", write(last, source="10.201.0.77")],
        ["roce_source", write(last, destination="10.201.0.77")],
        # Refused packets have a PSN like served ones; in order they would end the link.
        ["roce_psn_duplicate", write(last, opcode=0x04, payload=bytes(16))],  # SEND only
        ["roce_psn_duplicate", write(last, opcode=0x0c, payload=bytes(16))],  # RDMA READ request
        ["roce_opcode", write(last, opcode=0x64, payload=bytes(16))],  # UD SEND only
        ["roce_malformed", write(last, pkey=0x1234)],
        ["roce_malformed", write(last, flags=0x41)],      # transport version 1
        ["roce_psn_ahead", write(last, psn=(psn + 5) & 0xffffff)],
        ["roce_psn_ahead", write(last, psn=(psn + 0x400000) & 0xffffff)],
        ["roce_psn_duplicate", last],
        ["roce_psn_duplicate", write(last, psn=(psn - 0x400000) & 0xffffff)],
        ["roce_ack_window", write(ack, psn=(ack.psn + 1000) & 0xffffff)],
        ["roce_ack_window", write(ack, psn=(ack.psn + 1000) & 0xffffff, syndrome=0x60)],
    ]


def replies(last, real):
    """<real> is a WRITE with the keys of a reply that was right."""
    rows = [
        ["reply_unannounced", {"opcode": wire.WRITE_ONLY, "payload": bytes(48), "length": 48}],
        ["reply_stale", reply()],
        ["reply_stale", reply(sequence=1 << 60)],
        ["reply_malformed", reply(length=9)],
        ["reply_malformed", reply(imm=real.imm ^ 1)],     # not the slot of the address
        ["reply_malformed", reply(imm=real.imm | 0xfff00)],  # no slot at all
        ["reply_malformed", {"opcode": wire.WRITE_ONLY_IMM, "payload": bytes(12), "length": 12}],
        ["reply_malformed", {"opcode": wire.WRITE_ONLY_IMM, "payload": b"", "length": 0}],
    ]
    return [[name, dataclasses.replace(real, **fields, psn=(last.psn + i) & 0xffffff)]
            for i, (name, fields) in enumerate(rows, 1)]


def fatal(last, real):
    fields = {**reply(), "psn": (last.psn + 1) & 0xffffff}
    return [["roce_access", dataclasses.replace(real, **fields, rkey=real.rkey ^ 1)]]


def main():
    interface, capture, kind = sys.argv[1:]
    packets = [p for p in map(wire.roce_parse, wire.pcap_frames(capture)) if p is not None]
    ours = [p for p in packets if p.source.startswith("10.201.0.1") and p.source != "10.201.0.1"]
    last = [p for p in ours if p.opcode != wire.ACK][-1]
    ours = [p for p in ours if p.qpn == last.qpn]
    ack = [p for p in ours if p.opcode == wire.ACK][-1]
    real = [p for p in ours if p.opcode == wire.WRITE_ONLY_IMM and p.length > 0][-1]
    rows = {"harmless": lambda: harmless(last, ack), "replies": lambda: replies(last, real),
            "fatal": lambda: fatal(last, real)}[kind]()
    s = wire.open_interface(interface)
    expected = collections.Counter()
    for name, packet in rows:
        for _ in range(TIMES if kind == "harmless" else 1):
            s.send(packet.frame())
            expected[name] += 1
    if kind == "harmless":
        # Too short for any packet object: BTH cut, no room for an ICRC; and packets other than RoCE.
        head = last.destination_mac + last.source_mac + b"\x08\x00"
        for name, payload, port in (["roce_malformed", bytes(11), wire.ROCE_PORT],
                                    ["roce_malformed", bytes(15), wire.ROCE_PORT],
                                    ["not_our_address", bytes(64), 4792]):
            for _ in range(TIMES):
                s.send(head + wire.ipv4(last.source, last.destination,
                                        wire.udp(50000, port, payload)))
                expected[name] += 1
    print(json.dumps({"expected": expected}))


main()
