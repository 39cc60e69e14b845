# SPDX-License-Identifier: BSD-3-Clause
"""Network namespaces joined by a veth pair, made by system calls, for machines without ip and ethtool.

A namespace is an open file: it ends when no process is in it and the file is closed.
"""
import array
import contextlib
import ctypes
import fcntl
import ipaddress
import os
import socket
import struct

CLONE_NEWNET = 0x40000000
RTM_NEWLINK, RTM_NEWADDR = 16, 20
NLM_F_REQUEST, NLM_F_ACK, NLM_F_EXCL, NLM_F_CREATE = 1, 4, 0x200, 0x400
NLMSG_ERROR = 2
IFLA_IFNAME, IFLA_MTU, IFLA_TXQLEN, IFLA_LINKINFO, IFLA_NET_NS_FD = 3, 4, 13, 18, 28
IFLA_INFO_KIND, IFLA_INFO_DATA, VETH_INFO_PEER = 1, 2, 1
IFA_ADDRESS, IFA_LOCAL = 1, 2
IFF_UP = 1
SIOCETHTOOL = 0x8946
# Of struct ethtool_value: checksums of what is sent, segmentation (TSO, GSO), and GRO.
OFFLOADS = {"tx": 0x17, "tso": 0x1f, "gso": 0x24, "gro": 0x2c}

libc = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


# --- namespaces -----------------------------------------------------------------------------------

def open_namespace():
    """The one that this thread is in."""
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def enter(namespace):
    checked(libc.setns(namespace, CLONE_NEWNET))


def make_namespace():
    """A new one, in which this thread is then."""
    checked(libc.unshare(CLONE_NEWNET))
    return open_namespace()


@contextlib.contextmanager
def inside(namespace):
    before = open_namespace()
    enter(namespace)
    try:
        yield
    finally:
        enter(before)
        os.close(before)


# --- rtnetlink ------------------------------------------------------------------------------------

def attribute(kind, value):
    if isinstance(value, int):
        value = struct.pack("=I", value)
    elif isinstance(value, str):
        value = value.encode() + b"\0"
    length = 4 + len(value)
    return struct.pack("=HH", length, kind) + value + bytes(-length % 4)


def link_header(index=0, up=False):
    return struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, IFF_UP if up else 0, IFF_UP if up else 0)


def ask(kind, body, flags=0):
    """Send a request to the kernel, in the namespace of this thread, and wait for its word."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as s:
        s.bind((0, 0))
        s.send(struct.pack("=IHHII", 16 + len(body), kind, NLM_F_REQUEST | NLM_F_ACK | flags, 1, 0) + body)
        answer = s.recv(65536)
    error, = struct.unpack_from("=i", answer, 16)
    if struct.unpack_from("=H", answer, 4)[0] != NLMSG_ERROR or error != 0:
        raise OSError(-error, f"rtnetlink request {kind}: {os.strerror(-error)}")


def add_veth(name, mtu, peer_name, peer_namespace, queue=10000):
    """A pair of which one end is here and the other in <peer_namespace>."""
    common = attribute(IFLA_MTU, mtu) + attribute(IFLA_TXQLEN, queue)
    peer = link_header() + attribute(IFLA_IFNAME, peer_name) + attribute(IFLA_NET_NS_FD, peer_namespace) + common
    info = attribute(IFLA_INFO_KIND, b"veth") + attribute(IFLA_INFO_DATA, attribute(VETH_INFO_PEER, peer))
    ask(RTM_NEWLINK, link_header() + attribute(IFLA_IFNAME, name) + common + attribute(IFLA_LINKINFO, info),
        NLM_F_CREATE | NLM_F_EXCL)


def set_up(name):
    ask(RTM_NEWLINK, link_header(socket.if_nametoindex(name), up=True))


def add_address(name, address):
    """<address> with its prefix: 10.200.0.2/24."""
    it = ipaddress.ip_interface(address)
    family = socket.AF_INET if it.version == 4 else socket.AF_INET6
    head = struct.pack("=BBBBI", family, it.network.prefixlen, 0, 0, socket.if_nametoindex(name))
    ask(RTM_NEWADDR, head + attribute(IFA_LOCAL, it.packed) + attribute(IFA_ADDRESS, it.packed),
        NLM_F_CREATE | NLM_F_EXCL)


# --- devices and settings -------------------------------------------------------------------------

def set_offloads(name, on):
    """All of OFFLOADS of a device; one that it does not have is left."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for command in OFFLOADS.values():
            value = array.array("B", struct.pack("=II", command, on))
            request = struct.pack("16sP", name.encode(), value.buffer_info()[0])
            with contextlib.suppress(OSError):
                fcntl.ioctl(s, SIOCETHTOOL, request.ljust(40, b"\0"))


def set_sysctl(path, value):
    """Of the namespace of this thread. False when this kernel does not take it."""
    try:
        with open("/proc/sys/" + path, "w", encoding="ascii") as file:
            file.write(value)
    except OSError:
        return False
    return True
