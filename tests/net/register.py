#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Registers as an agent with numbers of the caller's choice, and prints the load balancer's answer.

usage: register.py HOST PORT [FIELD=NUMBER ...]
"""
import json
import socket
import sys

PARAMS = {"version": 3, "name": "odd", "model": "echo", "instance": "0" * 15 + "1", "slots": 64,
          "max_request": 1472, "max_reply": 1472, "max_batch": 32, "weight": 1,
          "heartbeat_ms": 100, "path_mtu": 1024, "address": "10.201.0.99",
          "links": [{"lcore": 0, "qpn": 77, "psn": 1, "rkey": 5, "descriptors": 4096,
                     "payloads": 65536, "cancels": 1048576, "stride": 1472, "room": 0,
                     "entry": 64}]}


def main():
    for text in sys.argv[3:]:
        field, number = text.split("=")
        PARAMS[field] = int(number)
    hello = {field: PARAMS[field] for field in ("version", "model", "address")}
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=10) as s:
        lines = s.makefile("rw")
        for i, (method, params) in enumerate([("hello", hello), ("register", PARAMS)]):
            print(json.dumps({"jsonrpc": "2.0", "id": i, "method": f"agent.{method}",
                              "params": params}), file=lines, flush=True)
            answer = json.loads(lines.readline())
    print(answer.get("error", {}).get("message", "registered"))


main()
