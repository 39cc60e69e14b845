#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# infer.py [HOST:PORT]: asks the service digits-tagged which digit a picture shows
import sys
from doorbell_client import Client, Error

ROWS = "005d9100 00dfaf50 03f20b80 04c00880 05800980 04b01c70 02e5ac00 006da000"
picture = bytes(int(pixel, 17) for pixel in ROWS.replace(" ", ""))  # 64 bytes, 0 (white) to 16

with Client(sys.argv[1] if len(sys.argv) > 1 else "10.200.0.100:8501") as client:
    try:
        # At most half a second; asked again when it was lost, as asking twice does no harm.
        reply = client.infer(b"my bytes" + picture, deadline_ms=500, retries=3, idempotent=True)
    except Error as error:
        sys.exit(f"no reply: {error}; the model {error.ran} it")
print("this picture shows a", reply[8])
