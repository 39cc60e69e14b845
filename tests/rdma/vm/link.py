#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Pulls or plugs in the cable of a machine's card.

usage: link.py QMP-SOCKET CARD on|off
"""
import json
import socket
import sys


def main():
    path, card, state = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        answers = s.makefile()
        answers.readline() # the greeting
        for command, arguments in (("qmp_capabilities", {}),
                                   ("set_link", {"name": card, "up": state == "on"})):
            s.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
            answer = json.loads(answers.readline())
            while "event" in answer:
                answer = json.loads(answers.readline())
            if "return" not in answer:
                sys.exit(f"link.py: {command} {card}: {answer}")


main()
