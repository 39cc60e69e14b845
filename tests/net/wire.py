# SPDX-License-Identifier: BSD-3-Clause
"""Frames and RoCEv2 packets for the net tests: an implementation of the wire that shares nothing with
the programs under test. Layouts: IBTA volume 1, chapter 9 (BTH, RETH, AETH, ImmDt) and annex A17."""
import dataclasses
import socket
import struct
import zlib

ROCE_PORT = 4791
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM = 0x06, 0x07, 0x08, 0x09
WRITE_ONLY, WRITE_ONLY_IMM, ACK = 0x0a, 0x0b, 0x11
HAS_RETH = {WRITE_FIRST, WRITE_ONLY, WRITE_ONLY_IMM}
HAS_IMM = {WRITE_LAST_IMM, WRITE_ONLY_IMM}


def icrc(packet):
    """Of a packet from the IP header to the end of the payload and pad: CRC-32 with everything that
    a router may change set to ones (annex A17.3)."""
    masked = bytearray(packet)
    if packet[0] >> 4 == 4:
        masked[1] = masked[8] = masked[10] = masked[11] = 0xff  # TOS, TTL, header checksum
        udp_at = 20
    else:
        masked[0] |= 0x0f                                       # traffic class, flow label,
        masked[1] = masked[2] = masked[3] = masked[7] = 0xff    # hop limit
        udp_at = 40
    masked[udp_at + 6] = masked[udp_at + 7] = 0xff              # UDP checksum
    masked[udp_at + 8 + 4] = 0xff                               # BTH reserved byte
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + masked))


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ipv4(source, destination, payload, protocol=17, tos=2):
    header = struct.pack(">BBHHHBBH4s4s", 0x45, tos, 20 + len(payload), 0, 0x4000, 64, protocol, 0,
                         socket.inet_aton(source), socket.inet_aton(destination))
    return header[:10] + struct.pack(">H", checksum(header)) + header[12:] + payload


def ipv6(source, destination, payload, protocol=17, traffic_class=0):
    return struct.pack(">IHBB16s16s", 6 << 28 | traffic_class << 20, len(payload), protocol, 64,
                       socket.inet_pton(socket.AF_INET6, source),
                       socket.inet_pton(socket.AF_INET6, destination)) + payload


def udp(source_port, destination_port, payload):
    return struct.pack(">HHHH", source_port, destination_port, 8 + len(payload), 0) + payload


@dataclasses.dataclass
class Roce:
    """One RoCEv2 packet; roce_parse() makes it, frame() turns it into bytes again."""
    source_mac: bytes
    destination_mac: bytes
    source: str
    destination: str
    source_port: int
    opcode: int
    qpn: int
    psn: int
    ack_request: bool = False
    pkey: int = 0xffff
    flags: int = 0x40  # migrated; transport version 0
    va: int = 0
    rkey: int = 0
    length: int = 0
    imm: int = 0
    syndrome: int = 0x1f
    msn: int = 0
    payload: bytes = b""
    good_icrc: bool = True  # of a parsed packet: was it? Of one to send: shall it be?

    def frame(self, tos=2):
        pad = -len(self.payload) % 4
        body = struct.pack(">BBHII", self.opcode, self.flags & 0xcf | pad << 4, self.pkey, self.qpn,
                           self.ack_request << 31 | self.psn & 0xffffff)
        if self.opcode in HAS_RETH:
            body += struct.pack(">QII", self.va, self.rkey, self.length)
        if self.opcode in HAS_IMM:
            body += struct.pack(">I", self.imm)
        if self.opcode == ACK:
            body += struct.pack(">I", self.syndrome << 24 | self.msn)
        body += self.payload + bytes(pad)
        ip = ipv6 if ":" in self.source else ipv4
        packet = ip(self.source, self.destination,
                    udp(self.source_port, ROCE_PORT, body + bytes(4)), 17, tos)
        check = icrc(packet[:-4])
        if not self.good_icrc:
            check = bytes([check[0] ^ 1]) + check[1:]
        ether_type = b"\x86\xdd" if ip is ipv6 else b"\x08\x00"
        return self.destination_mac + self.source_mac + ether_type + packet[:-4] + check


def ip_parse(frame):
    """The UDP packet in an Ethernet frame with its addresses, or None."""
    if len(frame) >= 14 + 20 + 8 and frame[12:15] == b"\x08\x00\x45" and frame[23] == 17:
        packet = frame[14:14 + struct.unpack(">H", frame[16:18])[0]]
        return packet, 20, socket.inet_ntoa(packet[12:16]), socket.inet_ntoa(packet[16:20])
    if len(frame) >= 14 + 40 + 8 and frame[12:14] == b"\x86\xdd" and frame[20] == 17:
        packet = frame[14:14 + 40 + struct.unpack(">H", frame[18:20])[0]]
        return (packet, 40, socket.inet_ntop(socket.AF_INET6, packet[8:24]),
                socket.inet_ntop(socket.AF_INET6, packet[24:40]))
    return None


def roce_parse(frame):
    """The packet in an Ethernet frame, or None when it holds none."""
    found = ip_parse(frame)
    if found is None:
        return None
    packet, at, source, destination = found
    source_port, port = struct.unpack(">HH", packet[at:at + 4])
    if port != ROCE_PORT or len(packet) < at + 8 + 12 + 4:
        return None
    at += 8
    opcode, flags, pkey, qpn, psn = struct.unpack(">BBHII", packet[at:at + 12])
    p = Roce(frame[6:12], frame[0:6], source, destination, source_port, opcode, qpn & 0xffffff,
             psn & 0xffffff, bool(psn >> 31), pkey, flags)
    at += 12
    if opcode in HAS_RETH:
        p.va, p.rkey, p.length = struct.unpack(">QII", packet[at:at + 16])
        at += 16
    if opcode in HAS_IMM:
        p.imm = struct.unpack(">I", packet[at:at + 4])[0]
        at += 4
    if opcode == ACK:
        p.syndrome, p.msn = packet[at], int.from_bytes(packet[at + 1:at + 4], "big")
        at += 4
    p.payload = packet[at:len(packet) - 4 - (flags >> 4 & 3)]
    p.good_icrc = packet[-4:] == icrc(packet[:-4])
    return p


def open_interface(name):
    """A socket that sends and sees every frame of an interface."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind((name, 0))
    return s


def pcap_frames(path):
    """The frames of a capture file of microsecond or nanosecond pcap format, little-endian."""
    with open(path, "rb") as f:
        assert f.read(24)[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"), "not a pcap file"
        while header := f.read(16):
            yield f.read(struct.unpack("<IIII", header)[2])
