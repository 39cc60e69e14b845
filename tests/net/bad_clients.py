#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Packets that no client should send, each to be counted under one name.

usage: bad_clients.py INTERFACE LB-MAC TIMES    sends each of them so often, and prints as JSON what
                                                is to be counted, and how many were answered
"""
import json
import socket
import sys
import time

from scapy.all import (ARP, Dot1Q, Ether, ICMP, ICMPv6EchoRequest, ICMPv6ND_NS, IP, IPv6,
                       IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, Raw, TCP, UDP, conf)

VIP, VIP6 = "10.200.0.100", "fd00:200::100"
ECHO, SMALL, CLOSED, ROCE = 8500, 8501, 8999, 4791
TOO_LARGE = b"\xdbDBN\x01\x0a"
SO_RCVBUFFORCE = 33


def rows(mac, broadcast="ff:ff:ff:ff:ff:ff"):
    """Rows: [name of the counter, the kind of packet, frame]."""
    conf.verb = 0
    ether = Ether(dst=mac)
    ip, ip6 = IP(src="10.200.0.2", dst=VIP), IPv6(src="fd00:200::2", dst=VIP6)
    udp = UDP(sport=40000, dport=ECHO)
    hello = Raw(b"hello, worker")

    def raw(packet, cut=None, **patch):
        """Built bytes, cut short, with bytes at some offsets (after Ethernet) replaced."""
        data = bytearray(bytes(packet))
        for offset, value in patch.items():
            data[14 + int(offset[1:])] = value
        return bytes(data[:cut])

    # No IPv4 fragments here: the kernel reassembles them before an af_packet port sees them.
    good, good6 = ether / ip / udp / hello, ether / ip6 / udp / hello
    return [
        ["not_our_mac", "for another station", Ether(dst="02:00:00:00:00:99") / ip / udp / hello],
        ["not_our_mac", "UDP by broadcast", Ether(dst=broadcast) / ip / udp / hello],
        ["truncated", "ends inside the IPv4 header", raw(good, cut=14 + 12)],
        ["truncated", "ends before the IPv4 total length", raw(good, cut=-4)],
        ["truncated", "ends inside the IPv6 header", raw(good6, cut=14 + 30)],
        ["truncated", "ends before the IPv6 payload length", raw(good6, cut=-4)],
        ["truncated", "ICMP of 4 bytes",
         ether / IP(src="10.200.0.2", dst=VIP, proto=1) / Raw(b"\x08\0\xf7\xff")],
        ["ethertype", "unknown EtherType", Ether(dst=mac, type=0x88b5) / hello],
        ["ethertype", "two VLAN tags", ether / Dot1Q(vlan=5) / Dot1Q(vlan=6) / ip / udp / hello],
        ["arp_other", "ARP for nobody's address",
         Ether(dst=broadcast) / ARP(psrc="10.200.0.2", pdst="10.200.0.99")],
        ["arp_other", "ARP of 10 bytes", Ether(dst=broadcast, type=0x806) / Raw(bytes(10))],
        ["nd_other", "solicitation for nobody's address",
         ether / IPv6(src="fd00:200::2", dst="fd00:200::99") / ICMPv6ND_NS(tgt="fd00:200::99")],
        ["ip_header", "IP version 5", raw(good, _0=0x55)],
        ["ip_header", "IPv4 header of 16 bytes", raw(good, _0=0x44)],
        ["ip_header", "total length below the header's", raw(good, _2=0, _3=19)],
        ["ip_header", "IPv6 with version 4", raw(good6, _0=0x40)],
        ["ip_checksum", "IPv4 header checksum", raw(good, _10=0, _11=0)],
        ["ip_extension", "hop-by-hop options", ether / ip6 / IPv6ExtHdrHopByHop() / udp / hello],
        ["fragment_malformed", "IPv6 fragment of odd length, not the last",
         ether / ip6 / IPv6ExtHdrFragment(m=1, nh=17) / udp / hello],
        ["fragment_too_large", "IPv6 fragment of a datagram of 60,000 bytes",
         ether / ip6 / IPv6ExtHdrFragment(m=1, offset=7500, nh=17) / Raw(bytes(800))],
        ["fragment", "all of a ping in one IPv6 fragment",
         ether / ip6 / IPv6ExtHdrFragment(nh=58) / ICMPv6EchoRequest()],
        ["l4_protocol", "IPv6 fragment of TCP",
         ether / ip6 / IPv6ExtHdrFragment(m=1, nh=6) / Raw(bytes(24))],
        ["not_our_address", "UDP to another address",
         ether / IP(src="10.200.0.2", dst="10.200.0.99") / udp / hello],
        ["not_our_address", "the same over IPv6",
         ether / IPv6(src="fd00:200::2", dst="fd00:200::99") / udp / hello],
        ["not_our_address", "ping to another address",
         ether / IP(src="10.200.0.2", dst="10.200.0.99") / ICMP()],
        ["not_our_address", "ping to the fabric's address",
         ether / IP(src="10.200.0.2", dst="10.201.0.1") / ICMP()],
        ["l4_protocol", "TCP", ether / ip / TCP(sport=40000, dport=ECHO, flags="S")],
        ["udp_length", "UDP header cut",
         ether / IP(src="10.200.0.2", dst=VIP, proto=17) / Raw(bytes(7))],
        ["udp_length", "UDP length of 7", raw(good, _24=0, _25=7)],
        ["udp_length", "UDP length beyond the packet", raw(good, _24=1, _25=0)],
        ["udp_checksum", "UDP checksum", raw(good, _26=0x12, _27=0x34)],
        ["udp_checksum", "UDP checksum over IPv6", raw(good6, _46=0x12, _47=0x34)],
        ["udp_checksum", "none, which IPv6 does not allow", raw(good6, _46=0, _47=0)],
        ["icmp_no_flow", "an error about a packet that is not ours",
         ether / ip / ICMP(type=11) / bytes(ip / udp)],
        ["icmp_other", "ICMP echo reply", ether / ip / ICMP(type=0)],
        ["icmp_checksum", "ICMP checksum", ether / ip / ICMP(chksum=0x1234)],
        ["icmp_checksum", "ICMPv6 checksum", ether / ip6 / ICMPv6EchoRequest(cksum=0x1234)],
        ["bad_source", "from port 0", ether / ip / UDP(sport=0, dport=ECHO) / hello],
        ["bad_source", "from 127.0.0.1", ether / IP(src="127.0.0.1", dst=VIP) / udp / hello],
        ["bad_source", "from multicast", ether / IP(src="224.0.0.1", dst=VIP) / udp / hello],
        ["bad_source", "from 0.0.0.0", ether / IP(src="0.0.0.0", dst=VIP) / udp / hello],
        ["bad_source", "from broadcast", ether / IP(src="255.255.255.255", dst=VIP) / udp / hello],
        ["bad_source", "from ::1", ether / IPv6(src="::1", dst=VIP6) / udp / hello],
        ["bad_source", "from IPv6 multicast", ether / IPv6(src="ff02::1", dst=VIP6) / udp / hello],
        ["unknown_service", "no service on this port",
         ether / ip / UDP(sport=40000, dport=CLOSED) / hello],
        ["unknown_service", "the same over IPv6",
         ether / ip6 / UDP(sport=40000, dport=CLOSED) / hello],
        ["empty_request", "no payload", ether / ip / udp],
        ["request_too_large", "101 bytes to a service of 100",
         ether / ip / UDP(sport=40000, dport=SMALL) / Raw(bytes(101))],
        ["request_too_large", "1473 bytes, of a larger MTU", ether / ip / udp / Raw(bytes(1473))],
        ["truncated", "a frame larger than the port's buffers",
         ether / ip / udp / Raw(bytes(3000))],
        ["roce_client_port", "RoCE from a client",
         ether / ip / UDP(sport=50000, dport=ROCE) / Raw(bytes(64))],
        ["roce_client_port", "the same over IPv6",
         ether / ip6 / UDP(sport=50000, dport=ROCE) / Raw(bytes(64))],
    ]


def main():
    interface, mac, times = sys.argv[1], sys.argv[2], int(sys.argv[3])
    expected = {}
    frames = rows(mac)
    watch = conf.L2listen(iface=interface)
    watch.ins.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 25)
    # Notices come here; without a socket the kernel would answer them.
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.bind(("10.200.0.2", 40000))
    out = conf.L2socket(iface=interface)
    for name, _, frame in frames:
        for _ in range(times):
            out.outs.send(bytes(frame))
        expected[name] = expected.get(name, 0) + times
    end = time.monotonic() + 0.3
    answered = told = 0
    watch.ins.settimeout(0.05)
    while time.monotonic() < end:
        try:
            data, address = watch.ins.recvfrom(4096)
        except TimeoutError:
            continue
        # address[2] is 4 for packets that this interface sent
        if address[2] == 4 or data[6:12] != bytes.fromhex(mac.replace(":", "")):
            continue
        if data[42:].startswith(TOO_LARGE):
            told += 1
        else:
            answered += 1
    print(json.dumps({"expected": expected, "answered": answered, "told": told}))


main()
