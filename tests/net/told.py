# SPDX-License-Identifier: BSD-3-Clause
"""Clients that are told what to do: a command per line comes in, and an answer per line goes out (tell() of story.sh)."""
import socket
import struct
import sys


def connect(source, to, resets=False):
    """A connection from this address. <resets>: when it is closed it is reset at once."""
    s = socket.socket()
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.bind((source, 0))
    s.settimeout(20)
    s.connect(to)
    if resets:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return s


def do(commands, line):
    """The answer of the function that has the name of the line's first word; the others are its arguments."""
    name, *arguments = line.split()
    try:
        return commands[name](*arguments)
    except (OSError, EOFError, ValueError) as error:
        return f"{name}: {type(error).__name__} {error}"


def listen(*functions, **named):
    commands = {**{f.__name__: f for f in functions}, **named}
    for line in sys.stdin:
        print(do(commands, line), flush=True)
