#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# infer_tcp.py HOST:PORT: three requests at once over one TCP connection, the answers in any order
import sys
from doorbell_client import Client, Error

with Client(sys.argv[1], protocol="tcp", framing="tagged") as client:
    requests = [client.submit(text.encode() * 1000, deadline_ms=2000, retries=3) for text in ("one", "two", "three")]
    client.cancel(requests[1])  # the load balancer is told that nobody waits for it
    for request in requests:
        try:
            print("a reply of", len(client.wait(request).result()), "bytes")
        except Error as error:
            print("no reply:", error)
