# SPDX-License-Identifier: BSD-3-Clause
"""The requests that a worker held, read from a capture of the fabric, and how each one ended.

in_hand.py watch INTERFACE ADDRESS OUT
    until SIGTERM, on the interface that the load balancer sends by: writes OUT, a line per request that
    was written to the worker at ADDRESS: its id, when (s), and when its reply came (0: never)
in_hand.py judge WATCHED RECORDS LB-LOG WORKER FAULT BASE-P99-US
    figures as JSON, of the worker's requests that it had at FAULT (s) or got later and never answered:
    RECORDS are doorbell-client's, LB-LOG tells when the load balancer began to doubt the worker
"""
import datetime
import json
import re
import signal
import socket
import struct
import sys
import time

ETH_P_ALL = 3
SO_ATTACH_FILTER = 26
ROCE_PORT = 4791
WRITE_ONLY, WRITE_ONLY_IMM = 0x0a, 0x0b
BTH_AT = 14 + 20 + 8
RETH_AT = BTH_AT + 12
PAYLOAD_AT = RETH_AT + 16
REPLY_AT = PAYLOAD_AT + 4 + 40  # behind the immediate and struct ring_reply


def only(address):
    """A filter: IPv4 packets from or to <address>."""
    host = struct.unpack(">I", socket.inet_aton(address))[0]
    program = [(0x28, 0, 0, 12), (0x15, 0, 5, 0x0800), (0x20, 0, 0, 26), (0x15, 2, 0, host),
               (0x20, 0, 0, 30), (0x15, 0, 1, host), (0x06, 0, 0, 256), (0x06, 0, 0, 0)]
    return b"".join(struct.pack("HBBI", *step) for step in program)


def watch(interface, address, out):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    code = only(address)
    buffer = bytearray(code)
    import ctypes
    at = (ctypes.c_char * len(buffer)).from_buffer(buffer)
    s.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                 struct.pack("HP", len(code) // 8, ctypes.addressof(at)))
    s.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE
    s.bind((interface, 0))
    worker = socket.inet_aton(address)
    written, answered, ended = {}, {}, []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    s.settimeout(0.05)
    print("ready", file=sys.stderr, flush=True)
    while not ended:
        try:
            frame = s.recv(256)
        except TimeoutError:
            continue
        now = time.time()
        opcode = frame[BTH_AT]
        if frame[30:34] == worker and opcode == WRITE_ONLY and len(frame) >= PAYLOAD_AT + 16:
            written.setdefault(struct.unpack_from("<Q", frame, PAYLOAD_AT)[0], now)
        elif frame[26:30] == worker and opcode == WRITE_ONLY_IMM and len(frame) >= REPLY_AT + 16:
            answered.setdefault(struct.unpack_from("<Q", frame, REPLY_AT)[0], now)
    with open(out, "w") as f:
        for ident, when in written.items():
            f.write(f"{ident:016x} {when:.6f} {answered.get(ident, 0):.6f}\n")


def doubted(log, worker, fault):
    """When the load balancer first said that something is wrong with the worker, after <fault>."""
    for line in open(log):
        said = re.match(r"(\S+Z) \S+ lb: worker=(\S+) number=\d+ state=(suspect|gone) ", line)
        if said and said[2] == worker:
            when = datetime.datetime.fromisoformat(said[1].replace("Z", "+00:00")).timestamp()
            if when >= fault:
                return when
    sys.exit(f"{log}: nothing of {worker} since {fault}")


def percentile(values, share):
    return values[max(0, -(-len(values) * share // 100) - 1)] if values else 0


def judge(watched, records, log, worker, fault, base_p99_us):
    fault = float(fault)
    outcome = {}
    for line in open(records):
        ident, how, us = line.split()
        outcome[ident] = how, int(us)
    detection = doubted(log, worker, fault) - fault
    times, ended = [], {}
    for line in open(watched):
        ident, when, answer = line.split()
        # written too long after the fault: the worker is back
        if ident not in outcome or 0 < float(answer) or float(when) > fault + detection + 0.02:
            continue
        how, us = outcome[ident]
        ended[how] = ended.get(how, 0) + 1
        if how == "answered":
            times.append(us)
    times.sort()
    base, detection = float(base_p99_us) / 1000, detection * 1000
    worst = times[-1] / 1000 if times else 0
    json.dump({"affected": sum(ended.values()), "ended": ended,
               "affected_max_ms": round(worst, 1),
               "affected_p99_ms": round(percentile(times, 99) / 1000, 1),
               "undisturbed_p99_ms": round(base, 1), "detection_ms": round(detection, 1),
               "over_undisturbed": round((worst - detection) / base, 2)}, sys.stdout)
    print()


{"watch": watch, "judge": judge}[sys.argv[1]](*sys.argv[2:])
