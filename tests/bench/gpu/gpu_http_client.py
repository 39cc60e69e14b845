#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A Python client of a model behind HTTP: bench-tcp-load's options and figures, by http.client, a thread for each
connection. gpu_tcp.py starts it.

    gpu_http_client.py --to ADDRESS:PORT --post PATH --requests FILE --replies FILE --request-bytes N --reply-bytes N ...

A request's body is one raw tensor (`Inference-Header-Content-Length: 0`); in front of a reply's may be the JSON that its
head says. A reply is compared byte by byte, or as float32 within --tolerance of its largest value.
"""
import argparse
import array
import http.client
import json
import sys
import threading
import time


class Difference:
    """How a reply differs from the expected one, of the largest value; and whether the largest is another one."""

    def __init__(self, tolerance):
        self.tolerance = tolerance

    def __call__(self, reply, expected):
        if not self.tolerance:
            return float(bytes(reply) != bytes(expected)), False
        import numpy

        got, wanted = (numpy.frombuffer(b, dtype="<f4") for b in (reply, expected))
        off = float(numpy.abs(got - wanted).max() / max(float(numpy.abs(wanted).max()), 1e-30))
        return off, got.argmax() != wanted.argmax()


class Client(threading.Thread):
    """One connection, one request at a time."""

    def __init__(self, options, rows, first, times):
        super().__init__()
        self.o, self.rows, self.next, self.times = options, rows, first, times
        self.figures = dict.fromkeys(("asked", "answered", "wrong", "other_class", "refused", "measured"), 0)
        self.worst, self.latencies, self.failure = 0.0, array.array("I"), None
        self.differ = Difference(options.tolerance)

    def ask(self, connection):
        request, expected = self.rows[self.next % len(self.rows)]
        self.next += 1
        self.figures["asked"] += 1
        began = time.monotonic()
        connection.request("POST", self.o.post, body=request, headers={
            "Content-Type": "application/octet-stream", "Inference-Header-Content-Length": "0"})
        response = connection.getresponse()
        body = memoryview(response.read())
        ended = time.monotonic()
        if response.status != 200:
            self.figures["refused"] += 1
            self.failure = f"refused: {response.status} {bytes(body[:200])}"
            return
        self.figures["answered"] += 1
        self.note(began, ended)
        self.compare(body[int(response.headers.get("Inference-Header-Content-Length", 0)):], expected)

    def compare(self, reply, expected):
        if len(reply) != len(expected):
            self.figures["wrong"] += 1
            return
        off, other = self.differ(reply, expected)
        self.worst = max(self.worst, off)
        self.figures["wrong"] += not off <= self.o.tolerance
        self.figures["other_class"] += bool(other)

    def note(self, began, ended):
        measure, end = self.times
        self.figures["measured"] += measure <= ended < end
        if measure <= began < end:
            self.latencies.append(int((ended - began) * 1e6))

    def run(self):
        try:
            address, port = self.o.to.split(":")
            connection = http.client.HTTPConnection(address, int(port), timeout=20)
            while time.monotonic() < self.times[1]:
                self.ask(connection)
            connection.close()
        except (OSError, http.client.HTTPException) as error:
            self.failure = repr(error)


def rows(options):
    with open(options.requests, "rb") as up, open(options.replies, "rb") as down:
        requests, replies = memoryview(up.read()), memoryview(down.read())
    up, down = options.request_bytes, options.reply_bytes
    return [(requests[i * up:(i + 1) * up], replies[i * down:(i + 1) * down]) for i in range(len(requests) // up)]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("to", "post", "requests", "replies"):
        parser.add_argument("--" + name, required=True)
    for name in ("request-bytes", "reply-bytes"):
        parser.add_argument("--" + name, required=True, type=int)
    parser.add_argument("--latencies", help="a file for them, 32 bits each, in us")
    parser.add_argument("--open", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--warm-up", type=float, default=0)
    parser.add_argument("--tolerance", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def main():
    options = parse()
    measure = time.monotonic() + options.warm_up
    clients = [Client(options, rows(options), options.seed + i, (measure, measure + options.seconds))
               for i in range(options.open)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    for failure in {client.failure for client in clients if client.failure}:
        print(failure, file=sys.stderr)
    figures = {name: sum(client.figures[name] for client in clients) for name in clients[0].figures}
    figures |= {"lost": figures["asked"] - figures["answered"], "worst": max(client.worst for client in clients)}
    if options.latencies:
        with open(options.latencies, "wb") as file:
            for client in clients:
                client.latencies.tofile(file)
    print(json.dumps(figures))
    return int(figures["wrong"] + figures["lost"] > 0 or figures["answered"] == 0)


if __name__ == "__main__":
    sys.exit(main())
