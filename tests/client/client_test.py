#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The client libraries in C and in Python against server.py: the same requests, the same ends.

usage: client_test.py FOLDER_OF_DOORBELL_CLIENT_PY CLIENT_ASK FOLDER_OF_EXAMPLES [PROGRAM_OF_AN_EXAMPLE...]
"""
import contextlib
import os
import random
import select
import socket
import subprocess
import sys
import threading
import time
import unittest

FOLDER, ASK, EXAMPLES, PROGRAMS = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]
sys.dont_write_bytecode = True
sys.path[:0] = [FOLDER, os.path.dirname(os.path.abspath(__file__))]
import doorbell_client  # noqa: E402
from doorbell_client import Client, Error, Notice, NoAnswer, NotSent, Stream  # noqa: E402
from server import Server  # noqa: E402

ALL = [("tcp", "tagged"), ("tcp", "length"), ("udp", "tagged"), ("udp", "datagram")]
TCP, TAGGED = ALL[:2], [ALL[0], ALL[2]]


def shown(reply):
    """A long reply by its size and FNV-1a, as client-ask shows it."""
    if len(reply) <= 100:
        return reply.decode()
    value = 0xcbf29ce484222325
    for byte in reply:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return f"{len(reply)} bytes {value:016x}"


SIZED = shown(bytes(i * i % 251 for i in range(1000)) * 300)

# Each row: what is asked at once, over which framings, with which options, and how each request ends: status, tries, reply.
ROWS = [
    ("echo", ALL, {}, {"echo:hello": "ok 1 hello", "echo:world": "ok 1 world"}),
    ("empty", ALL, {}, {"echo:": "ok 1 "}),
    ("many", ALL, {}, {f"echo:{i}": f"ok 1 {i}" for i in range(200)}),
    ("few at a time", ALL, {"in_flight": 2}, {f"echo:{i}": f"ok 1 {i}" for i in range(50)}),
    ("one after the other", ALL, {"sequential": 1}, {f"echo:{i}": f"ok 1 {i}" for i in range(50)}),
    ("large", TCP, {}, {"size:300000": "ok 1 " + SIZED, "echo:behind": "ok 1 behind"}),
    ("chunks", TCP + TAGGED, {}, {"chunks:a,bc,def": "ok 1 abcdef", "echo:behind": "ok 1 behind"}),
    ("split headers", TCP, {}, {"split:hello": "ok 1 hello", "split:world": "ok 1 world"}),
    ("any order, one segment", TCP, {}, {"hold:first": "ok 1 first", "echo:second": "ok 1 second"}),
    ("notice", ALL, {}, {"notice:4:1:x": "model error 1 ", "echo:behind": "ok 1 behind"}),
    ("busy, no retries", ALL, {}, {"notice:1:1:x": "busy 1 "}),
    ("busy, then not", ALL, {"retries": 3}, {"notice:1:2:x": "ok 3 x", "notice:9:1:y": "ok 2 y"}),
    ("busy for too long", ALL, {"retries": 2}, {"notice:1:9:x": "busy 3 "}),
    ("worker lost", ALL, {"retries": 2}, {"notice:3:1:x": "worker lost 1 ", "notice:2:1:x": "timeout 1 "}),
    ("worker lost, idempotent", ALL, {"retries": 2, "idempotent": 1},
     {"notice:3:1:x": "ok 2 x", "notice:2:2:y": "ok 3 y", "notice:99:1:z": "ok 2 z", "notice:7:1:x": "deadline 1 "}),
    ("lost", ALL, {"deadline_ms": 100, "retries": 2}, {"lose:1:x": "no answer 1 "}),
    ("lost, idempotent", ALL[2:], {"deadline_ms": 10000, "retries": 2, "idempotent": 1, "try_ms": 50},
     {"lose:2:x": "ok 3 x"}),
    ("slow", ALL, {"deadline_ms": 5000}, {"slow:50:x": "ok 1 x"}),
    ("too late, and the next", TCP, {"deadline_ms": 700, "sequential": 1}, {"hold:x": "no answer 1 ", "echo:y": "ok 1 y"}),
    ("reset", TCP, {}, {"reset:1:x": "disconnected 1 "}),
    ("reset, idempotent", TCP, {"retries": 1, "idempotent": 1}, {"reset:1:x": "ok 2 x"}),
    ("reset, and the next", TCP, {"sequential": 1}, {"reset:1:x": "disconnected 1 ", "echo:y": "ok 1 y"}),
    ("half a reply", TCP, {"sequential": 1}, {"half:0123456789": "disconnected 1 ", "echo:y": "ok 1 y"}),
    ("half a reply, idempotent", TCP, {"retries": 1, "idempotent": 1}, {"half:0123456789": "disconnected 2 "}),
    ("garbage", TCP, {"sequential": 1}, {"garbage": "protocol error 1 ", "echo:y": "ok 1 y"}),
    ("garbage over UDP", [ALL[2]], {"deadline_ms": 700, "sequential": 1}, {"garbage": "no answer 1 ",
                                                                           "echo:y": "ok 1 y"}),
    ("4 GiB", TCP, {"sequential": 1}, {"huge": "protocol error 1 ", "echo:y": "ok 1 y"}),
    ("unasked", TAGGED, {}, {"unasked:x": "ok 1 x", "echo:y": "ok 1 y"}),
    ("twice", [ALL[0], ALL[2], ALL[3]], {"sequential": 1}, {f"twice:{i}": f"ok 1 {i}" for i in range(20)}),
    ("stranger", ALL[2:], {"sequential": 1}, {"stranger:x": "ok 1 own", "echo:y": "ok 1 y"}),
]


@contextlib.contextmanager
def serving(protocol, framing, **how):
    server = Server(protocol, framing, **how)
    try:
        yield server
    finally:
        server.close()


def ask_in_c(address, protocol, framing, options, texts):
    words = [f"{name}={value}" for name, value in options.items()]
    ran = subprocess.run([ASK, address, protocol, framing, *words, "--", *texts], stdout=subprocess.PIPE, timeout=60,
                         check=True)
    return ran.stdout.decode().splitlines()


def run_together(client, requests):
    """As a caller's event loop does."""
    left = set(requests)
    while left:
        poller = select.poll()
        if client.fileno() >= 0:
            poller.register(client.fileno(), select.POLLIN | (select.POLLOUT if client.wants_write() else 0))
        wait = client.timeout()
        poller.poll(None if wait is None else wait * 1000 + 1)
        left -= set(client.process())


def ask_in_python(address, protocol, framing, options, texts):
    options = dict(options)
    of_client = {name: options.pop(name) for name in ("in_flight", "silence_ms", "backoff_ms") if name in options}
    sequential = options.pop("sequential", False)
    options["idempotent"] = bool(options.get("idempotent"))
    with Client(address, protocol=protocol, framing=framing, **of_client) as client:
        requests = []
        for word in texts:
            requests.append(client.submit(word.encode(), **options))
            if sequential:
                client.wait(requests[-1])
        if not sequential:
            run_together(client, requests)
    return [f"{doorbell_client.text(r.status)} {r.tries} " +
            (shown(r.result()) if r.status == doorbell_client.OK else "") for r in requests]


class Rows(unittest.TestCase):
    maxDiff = 2000

    def test_both_libraries_end_requests_alike(self):
        for name, framings, options, ends in ROWS:
            for protocol, framing in dict.fromkeys(framings):
                for ask in (ask_in_c, ask_in_python):
                    with self.subTest(name, protocol=protocol, framing=framing, ask=ask.__name__):
                        with serving(protocol, framing) as server:
                            got = ask(server.address, protocol, framing, {"backoff_ms": 5, **options}, list(ends))
                            self.assertEqual(got, list(ends.values()))

    def test_a_deadline_and_a_cancel_reach_the_service(self):
        for protocol, framing in TAGGED:
            for ask in (ask_in_c, ask_in_python):
                with self.subTest(protocol=protocol, ask=ask.__name__), serving(protocol, framing) as server:
                    options = {"deadline_ms": 1000, "sequential": 1}
                    lines = ask(server.address, protocol, framing, options, ["deadline", "lose:1:x", "cancels"])
                    self.assertTrue(0 < int(lines[0].split()[-1]) <= 1000000, lines)
                    self.assertEqual(lines[1:], ["no answer 1 ", "ok 1 1"])

    def test_a_reply_without_room(self):
        for protocol, framing in ALL:
            with self.subTest(protocol=protocol, framing=framing), serving(protocol, framing) as server:
                options = {"reply_size": 4, "sequential": 1}
                self.assertEqual(ask_in_c(server.address, protocol, framing, options, ["echo:12345", "echo:1234"]),
                                 ["reply too large 1 ", "ok 1 1234"])
                if protocol == "tcp":
                    with Client(server.address, protocol=protocol, framing=framing, max_reply=4) as client:
                        with self.assertRaisesRegex(Error, "protocol error .*claims 5 bytes"):
                            client.infer(b"echo:12345")
                        with self.assertRaisesRegex(Error, "reply too large"):
                            client.infer(b"chunks:abc,def")
                        self.assertEqual(client.infer(b"echo:1234"), b"1234")

    def test_ipv6(self):
        if not socket.has_ipv6:
            self.skipTest("no IPv6")
        for protocol, framing in ALL:
            for ask in (ask_in_c, ask_in_python):
                with self.subTest(protocol=protocol, framing=framing), serving(protocol, framing, host="::1") as server:
                    self.assertEqual(ask(server.address, protocol, framing, {}, ["echo:x"]), ["ok 1 x"])

    def test_a_name_with_several_addresses_is_tried_until_one_answers(self):
        """localhost may be ::1 and 127.0.0.1; only the second one is served."""
        with serving("tcp", "tagged") as server:
            for ask in (ask_in_c, ask_in_python):
                address = server.address.replace("127.0.0.1", "localhost")
                self.assertEqual(ask(address, "tcp", "tagged", {}, ["echo:x"]), ["ok 1 x"])


class InPython(unittest.TestCase):
    def test_errors_say_whether_a_worker_ran_it(self):
        with serving("tcp", "tagged") as server, Client(server.address, protocol="tcp") as client:
            with self.assertRaises(Notice) as caught:
                client.infer(b"notice:1:1:x")
            self.assertEqual((caught.exception.status, caught.exception.ran), (1, doorbell_client.NEVER_RAN))
            with self.assertRaises(TimeoutError) as caught:
                client.infer(b"lose:1:x", deadline_ms=30)
            self.assertIsInstance(caught.exception, NoAnswer)
            self.assertEqual(caught.exception.ran, doorbell_client.MAY_HAVE_RUN)
            with self.assertRaises(ConnectionError):
                client.infer(b"reset:1:x")
            self.assertEqual(client.infer(b"echo:x"), b"x")
            self.assertEqual(client.counters["connections"], 2)

    def test_no_connection(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            with Client("127.0.0.1:%d" % taken.getsockname()[1], protocol="tcp", backoff_ms=1) as client:
                with self.assertRaisesRegex(NotSent, r"127.0.0.1:\d+: no connection: Connection refused"):
                    client.infer(b"x", retries=2)

    def test_a_stream_yields_chunks_as_they_come(self):
        with serving("tcp", "length") as server, Client(server.address, protocol="tcp", framing="length") as client:
            self.assertEqual(list(client.stream(b"chunks:a,bc,def")), [b"a", b"bc", b"def"])
            chunks = client.stream(b"chunks:a,b")
            self.assertEqual(next(chunks), b"a")
            chunks.close()
            self.assertEqual(client.infer(b"echo:x"), b"x")
            with self.assertRaises(Notice):
                list(client.stream(b"notice:4:1:x"))

    def test_cancel_ends_a_request_at_once_and_others_go_on(self):
        for protocol, framing in ALL:
            with self.subTest(protocol=protocol, framing=framing), serving(protocol, framing) as server, \
                    Client(server.address, protocol=protocol, framing=framing) as client:
                first, second = client.submit(b"slow:100:late"), client.submit(b"echo:x")
                client.cancel(first)
                self.assertEqual(first.status, doorbell_client.CANCELLED)
                self.assertEqual(client.wait(second).result(), b"x")
                self.assertEqual(first.chunks, [])

    def test_close_ends_what_is_pending(self):
        with serving("udp", "tagged") as server:
            with Client(server.address) as client:
                request = client.submit(b"lose:1:x")
            self.assertEqual(request.status, doorbell_client.CANCELLED)

    def test_a_silent_connection_is_given_up(self):
        with serving("tcp", "length") as server, \
                Client(server.address, protocol="tcp", framing="length", silence_ms=400) as client:
            with self.assertRaises(doorbell_client.Disconnected):
                client.infer(b"lose:1:x", deadline_ms=10000)
            self.assertEqual(client.infer(b"lose:1:x"), b"x")
            self.assertEqual(server.connections, 2)

    def test_a_trickle_is_silence(self):
        for framing in ("tagged", "length"):
            with self.subTest(framing), serving("tcp", framing) as server, \
                    Client(server.address, protocol="tcp", framing=framing, silence_ms=2000) as client:
                with self.assertRaises(NoAnswer):
                    client.infer(b"trickle", deadline_ms=100)
                self.assertEqual(client.infer(b"echo:x", deadline_ms=10000, retries=1, idempotent=True), b"x")
                self.assertEqual(server.connections, 2)

    def test_arguments(self):
        for address in ("", "host", "host:", ":80", "1.2.3.4:0", "1.2.3.4:65536", "1.2.3.4:x", "fd00::1:80", "[::1]"):
            with self.subTest(address), self.assertRaises(ValueError):
                Client(address)
        for how in ({"protocol": "sctp"}, {"framing": "length"}, {"protocol": "tcp", "framing": "datagram"},
                    {"in_flight": 0}):
            with self.subTest(how), self.assertRaises(ValueError):
                Client("127.0.0.1:1", **how)
        with Client("127.0.0.1:1") as client:
            for data, how in ((b"", {}), (b"x", {"priority": 5}), (b"x", {"deadline_ms": 0}), (b"x", {"retries": -1})):
                with self.subTest(how), self.assertRaises(ValueError):
                    client.submit(data, **how)

    def test_memory_of_requests_that_are_over_is_given_back(self):
        with serving("tcp", "tagged") as server, Client(server.address, protocol="tcp") as client:
            for _ in range(20):
                client.infer(b"echo:x", retries=1, idempotent=True)
            held = (client._pending, client._finished, client._queue, client._sent)
            self.assertFalse(any(held), held)

    def test_any_bytes_make_answers_or_a_protocol_error(self):
        """By seed; and however they are cut."""
        heads = {"tagged": [doorbell_client.HEADER.pack(doorbell_client.MAGIC, 3, more, 0, 7, 0, n)
                            for more in (0, 1) for n in (0, 1, 30)] +
                           [doorbell_client.HEADER.pack(doorbell_client.MAGIC, 4, 1, 0, 7, 0, 0)],
                 "length": [b"\0\0\0\0\0\0\0\0", b"\3\0\0\0\0\1\0\0", b"\0\0\0\0\5\0\0\0", b"\1\0\0\0\0\0\0\0"]}
        for seed in range(400):
            chance = random.Random(seed)
            framing = chance.choice(["tagged", "length"])
            data = b"".join(chance.choice(heads[framing]) + bytes(chance.choice([0, 1, 3, 30, 30]))
                            for _ in range(20))
            if chance.random() < 0.5:
                data = bytes(byte ^ (chance.random() < 0.01) for byte in data)
            self.assertEqual(self.fed(framing, [data]), self.fed(framing, self.cut(data, chance)), seed)

    @staticmethod
    def cut(data, chance):
        while data:
            n = chance.randint(1, 40)
            yield data[:n]
            data = data[n:]

    @staticmethod
    def fed(framing, parts):
        stream, answers = Stream(framing, 1 << 16), []
        try:
            for part in parts:
                for a in stream.feed(part):
                    answers.append((a.id, a.notice, a.chunk, a.more, a.data))
        except doorbell_client.ProtocolError as error:
            answers.append(str(error))
        return answers


class Examples(unittest.TestCase):
    """deploy/docs/examples, against this service: what they send is no command of it, so it is told to echo."""

    def run_example(self, command, protocol):
        server = Server(protocol, "tagged")
        server.answer = lambda text, f, send, deadline_us: send(f.reply(text))
        env = {**os.environ, "PYTHONPATH": FOLDER, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            for _ in range(10):  # the programs give their requests half a second, in which a machine may halt them
                ran = subprocess.run([*command, server.address], env=env, text=True, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, timeout=30, check=False)
                if ran.returncode == 0:
                    break
        finally:
            server.close()
        self.assertEqual(ran.returncode, 0, ran.stdout)
        return ran.stdout

    def test_python(self):
        for name, protocol in (("infer.py", "udp"), ("infer_tcp.py", "tcp")):
            with self.subTest(name):
                self.assertRegex(self.run_example([sys.executable, os.path.join(EXAMPLES, name)], protocol), r"\w+ ")

    def test_c(self):
        for program in PROGRAMS:
            with self.subTest(program):
                protocol = "tcp" if "tcp" in os.path.basename(program) else "udp"
                self.assertRegex(self.run_example([program], protocol), r"\w+ ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
