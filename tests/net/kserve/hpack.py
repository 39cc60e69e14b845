# SPDX-License-Identifier: BSD-3-Clause
"""Heads of requests as gRPC's core for C++ compresses them: the static table, and one that grows (RFC 7541), without Huffman's
code."""

STATIC = {(b':method', b'POST'): 3, (b':scheme', b'http'): 6, (b':path', None): 4, (b':authority', None): 1,
          (b'content-type', None): 31, (b'user-agent', None): 58}
STATIC_LENGTH = 61


def integer(value, bits, first):
    most = (1 << bits) - 1
    if value < most:
        return bytes([first | value])
    out, value = [first | most], value - most
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + [value])


def text(value):
    return integer(len(value), 7, 0) + value


class Encoder:
    """Of one connection: what it has said before is an index."""

    def __init__(self):
        self.known = []  # the youngest first

    def head(self, fields):
        return b''.join(self.field(name, value) for name, value in fields)

    def field(self, name, value):
        if (name, value) in STATIC:
            return integer(STATIC[name, value], 7, 0x80)
        if (name, value) in self.known:
            return integer(STATIC_LENGTH + 1 + self.known.index((name, value)), 7, 0x80)
        if name == b'grpc-timeout':  # it differs each time: a literal that nobody keeps
            return b'\0' + text(name) + text(value)
        self.known.insert(0, (name, value))
        index = STATIC.get((name, None))
        return integer(index, 6, 0x40) + text(value) if index else b'\x40' + text(name) + text(value)
