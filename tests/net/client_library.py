# SPDX-License-Identifier: BSD-3-Clause
"""Clients that tests/net/client_library_test.sh starts; figures as JSON.

client_library.py ADDRESS restart     asks until SIGTERM, one request at a time; every one must get its reply
client_library.py ADDRESS cancel      of ten requests five are cancelled
"""
import json
import signal
import sys

from doorbell_client import CANCELLED, Client


def restart(client):
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    n = 0
    print("asking", file=sys.stderr, flush=True)
    while not ended:
        data = b"request %d" % n
        reply = client.infer(data, deadline_ms=60000, retries=10000, idempotent=True, try_ms=500)
        assert reply == data, (reply, data)
        n += 1
    return n


def cancel(client):
    requests = [client.submit(b"%d" % i) for i in range(10)]
    for request in requests[1::2]:
        client.cancel(request)
    assert [r.status == CANCELLED for r in requests] == [False, True] * 5
    for i in range(0, 10, 2):
        assert client.wait(requests[i]).result() == b"%d" % i
    # The load balancer's notices for the others, which nobody waits for here.
    while client.counters["ignored"] < 5:
        client.wait(client.submit(b"another"))
    return client.counters["notices"]


with Client(sys.argv[1], backoff_max_ms=300) as made:
    result = globals()[sys.argv[2]](made)
    print(json.dumps({"result": result, **made.counters}))
