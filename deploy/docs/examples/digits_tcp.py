#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# digits_tcp.py HOST:PORT FILE: the pictures of a file of digits, over one TCP connection, the answers in any order
import sys
from doorbell_client import Client

with open(sys.argv[2], "rb") as file:
    file.seek(24)  # behind the head: per picture 64 pixels, the digit, and whether training had not seen it
    pictures = list(iter(lambda: file.read(66), b""))
with Client(sys.argv[1], protocol="tcp", framing="tagged") as client:
    requests = [client.submit(b"by  tcp:" + p[:64], deadline_ms=20000, retries=3, idempotent=True) for p in pictures]
    digits = [client.wait(request).result()[8] for request in requests]
    connections = client.counters["connections"]
held_out = [(digit, picture[64]) for digit, picture in zip(digits, pictures) if picture[65] == 1]
right = sum(digit == label for digit, label in held_out)
print(f"{len(digits)} answers over {connections} TCP connection, {right} of {len(held_out)} new pictures read right")
