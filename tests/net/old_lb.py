#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A load balancer of before there were descriptions, as an agent sees it: it says nothing of them in its
hello, and refuses members that it does not know. It prints what came of the first registration, and ends.

usage: old_lb.py HOST PORT
"""
import json
import socket
import sys

HELLO = {"n_lcores": 1, "path_mtu": 1024, "address": "10.201.0.1", "max_request": 64, "max_reply": 64,
         "worker_timeout_ms": 5000, "ack_timeout": 17, "retry_count": 7}
KNOWN = {"version", "name", "model", "instance", "slots", "min_request", "max_request", "max_reply",
         "max_batch", "weight", "heartbeat_ms", "max_run_ms", "labels", "address", "path_mtu", "links"}


def main():
    with socket.create_server((sys.argv[1], int(sys.argv[2])), reuse_port=True) as listener:
        print("listening", flush=True)
        connection, _ = listener.accept()
        lines = connection.makefile("rw")
        for line in lines:
            call = json.loads(line)
            if call["method"] == "agent.hello":
                print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": HELLO}), file=lines,
                      flush=True)
                continue
            unknown = set(call["params"]) - KNOWN
            print(f"{call['method']}: unknown {sorted(unknown)}", flush=True)
            break


main()
