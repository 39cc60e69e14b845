#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""doorbell-client against doorbell-model-server on loopback: does it see what went wrong?

usage: selftest.py CLIENT SERVER ECHO.so MLP.so DIGITS_FOLDER
"""
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import unittest

CLIENT, SERVER, ECHO, MLP, DIGITS = sys.argv[1:6]
WEIGHTS = f"{DIGITS}/digits.safetensors"
MODELS = {"echo": ["--model", ECHO, "--model-args", "max_request=9000"],
          "mlp": ["--model", MLP, "--model-args", f"weights={WEIGHTS}"]}
DIGITS_ARGS = ["digits", "--data", f"{DIGITS}/digits.bin"]
CHECKED = ["--weights", WEIGHTS, "--model", MLP]


def free_address(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.bind((host, 0))
        port = s.getsockname()[1]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@contextlib.contextmanager
def server(model, *faults, host="127.0.0.1", address=None):
    address = address or free_address(host)
    process = subprocess.Popen([SERVER, "--listen", address, *MODELS[model], *faults],
                               stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        yield address, process
    finally:
        process.send_signal(signal.SIGCONT)
        process.kill()
        process.wait()
        process.stdout.close()


def client(address, *args):
    """The exit status and the figures of a run."""
    done = subprocess.run([CLIENT, args[0], "--to", address, "--json", "-", *args[1:]],
                          stdout=subprocess.PIPE, text=True, timeout=60)
    return done.returncode, json.loads(done.stdout)


@contextlib.contextmanager
def under_way(address, *args):
    """A run that has printed its first line of progress, a second after its start."""
    with subprocess.Popen([CLIENT, "echo", "--to", address, "--json", "-", "--sockets", "4",
                           "--progress", *args],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        run.stderr.readline()
        yield run


class Digits(unittest.TestCase):
    def test_every_reply_is_the_expected_bytes(self):
        with server("mlp") as (to, _):
            status, figures = client(to, *DIGITS_ARGS, *CHECKED)
        self.assertEqual(status, 0)
        self.assertEqual((figures["requests"], figures["answered"]), (1797, 1797))
        self.assertEqual([figures[k] for k in ("lost", "wrong", "duplicates", "notices")], [0] * 4)
        self.assertGreater(figures["accuracy"], 0.97)
        self.assertLessEqual(figures["p50_us"], figures["p99_us"])
        self.assertLessEqual(figures["p99_us"], figures["p999_us"])
        self.assertGreater(figures["rps"], 0)
        self.assertGreater(figures["seconds"], 0)

    def test_a_wrong_bit_is_seen(self):
        with server("mlp", "--corrupt", "100") as (to, _):
            status, figures = client(to, *DIGITS_ARGS, *CHECKED)
        self.assertEqual((status, figures["wrong"], figures["answered"]), (1, 17, 1780))

    def test_draws_and_says_so(self):
        with server("mlp") as (to, _):
            text = subprocess.run([CLIENT, *DIGITS_ARGS, "--to", to, "--draw", "5"],
                                  stdout=subprocess.PIPE, text=True, timeout=60).stdout
        self.assertEqual(text.count("answer "), 5)
        self.assertIn("@@", text)

    def test_a_model_error_is_a_refusal(self):
        with server("mlp") as (to, _):
            status, figures = client(to, "echo", "--sockets", "2", "--requests", "5")
        self.assertEqual(figures["notices_by_code"]["model_error"], 10)
        self.assertEqual((status, figures["refused"], figures["lost"]), (0, 10, 0))


class Echo(unittest.TestCase):
    def test_all_sizes_over_both_families(self):
        for host in "127.0.0.1", "::1":
            with self.subTest(host), server("echo", host=host) as (to, _):
                status, figures = client(to, "echo", "--requests", "100", "--sockets", "32")
                self.assertEqual(status, 0)
                self.assertEqual((figures["requests"], figures["answered"]), (3200, 3200))
                self.assertEqual(sum(figures["timeline"]), 3200)
                self.assertEqual(len(figures["gap_ms_by_socket"]), 32)

    def test_requests_without_an_id(self):
        with server("echo") as (to, _):
            status, figures = client(to, "echo", "--max-size", "11", "--sockets", "4",
                                     "--requests", "200")
        self.assertEqual((status, figures["answered"]), (0, 800))

    def test_losses_are_counted_and_may_be_allowed(self):
        args = ["echo", "--sockets", "4", "--requests", "50", "--timeout-ms", "2000"]
        with server("echo", "--drop", "50") as (to, _):
            status, figures = client(to, *args)
            allowed, _ = client(to, *args, "--allow-lost", "4")
        self.assertEqual((status, figures["lost"], figures["answered"]), (1, 4, 196))
        self.assertEqual(allowed, 0)

    def test_faults_of_short_requests(self):
        with server("echo", "--drop", "25", "--duplicate", "7") as (to, _):
            _, figures = client(to, "echo", "--sockets", "2", "--requests", "50", "--min-size",
                                "6", "--max-size", "11", "--timeout-ms", "2000")
        self.assertEqual((figures["lost"], figures["wrong"]), (4, 0))
        # The copy of a flow's last reply may come after the end.
        self.assertIn(figures["duplicates"], (13, 14))

    def test_notices_are_counted_apart(self):
        with server("echo", "--refuse", "10") as (to, _):
            status, figures = client(to, "echo", "--sockets", "4", "--requests", "50")
        self.assertEqual((status, figures["notices"], figures["refused"]), (0, 20, 20))
        self.assertEqual(figures["notices_by_code"]["busy"], 20)
        self.assertEqual((figures["answered"], figures["lost"]), (180, 0))

    def test_a_notice_and_an_answer_in_any_order(self):
        """A notice taken for the oldest request moves on when that one is answered after all."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind(("127.0.0.1", 0))
            s.settimeout(10)
            args = [CLIENT, "echo", "--to", "127.0.0.1:%d" % s.getsockname()[1], "--json", "-",
                    "--sockets", "1", "--window", "3", "--requests", "3", "--min-size", "20",
                    "--max-size", "40", "--timeout-ms", "3000"]
            with subprocess.Popen(args, stdout=subprocess.PIPE, text=True) as process:
                received = [s.recvfrom(2048) for _ in range(3)]
                peer = received[0][1]
                s.sendto(b"\xdbDBN\x01\x01" + bytes(10), peer)
                for datagram, _ in received[0], received[2]:
                    s.sendto(datagram, peer)
                figures = json.loads(process.communicate(timeout=30)[0])
        self.assertEqual((figures["answered"], figures["refused"], figures["lost"]), (2, 1, 0))

    def test_a_reply_on_the_wrong_socket_is_wrong(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind(("127.0.0.1", 0))
            s.settimeout(10)
            args = [CLIENT, "echo", "--to", "127.0.0.1:%d" % s.getsockname()[1], "--json", "-",
                    "--sockets", "2", "--requests", "1", "--min-size", "20", "--max-size", "20",
                    "--timeout-ms", "2000"]
            with subprocess.Popen(args, stdout=subprocess.PIPE, text=True) as process:
                (a, peer_a), (b, peer_b) = s.recvfrom(2048), s.recvfrom(2048)
                s.sendto(a, peer_b)
                s.sendto(b, peer_a)
                figures = json.loads(process.communicate(timeout=30)[0])
        self.assertEqual((figures["wrong"], figures["answered"], figures["lost"]), (2, 0, 2))
        self.assertEqual(process.returncode, 1)

    def test_nobody_there(self):
        status, figures = client(free_address("127.0.0.1"), "echo", "--sockets", "2",
                                 "--requests", "2", "--timeout-ms", "200")
        self.assertEqual((status, figures["lost"]), (1, 4))
        self.assertGreater(figures["unreachable"], 0)

    def test_rate_and_duration(self):
        # A halted client sends fewer in its time and none of the rest later, so the best of its runs counts.
        sent = []
        with server("echo") as (to, _):
            while max(sent, default=0) < 300 and len(sent) < 10:
                status, figures = client(to, "echo", "--duration-s", "1", "--rate", "500",
                                         "--sockets", "8")
                self.assertEqual((status, figures["requests"]), (0, figures["answered"]))
                self.assertLessEqual(figures["requests"], 501)
                self.assertGreaterEqual(figures["seconds"], 1)
                sent.append(figures["requests"])
        self.assertGreaterEqual(max(sent), 300, sent)

    def test_a_signal_ends_a_run_in_order(self):
        with server("echo") as (to, _), under_way(to, "--duration-s", "3600",
                                                  "--rate", "1000") as run:
            run.terminate()
            figures = json.loads(run.communicate(timeout=30)[0])
        self.assertEqual((run.returncode, figures["requests"]), (0, figures["answered"]))
        self.assertGreater(figures["requests"], 100)

    def test_a_stall_shows_in_gap_and_timeline(self):
        with server("echo") as (to, process), under_way(to, "--duration-s", "1.5",
                                                        "--timeout-ms", "5000") as run:
            process.send_signal(signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)
            with self.assertRaises(subprocess.TimeoutExpired):
                run.wait(timeout=0.8)
            process.send_signal(signal.SIGCONT)
            figures = json.loads(run.communicate(timeout=30)[0])
        self.assertGreater(figures["longest_gap_ms"], 490)
        self.assertIn(0, figures["timeline"][9:])
        self.assertEqual((figures["lost"], figures["wrong"]), (0, 0))


class Options(unittest.TestCase):
    def test_mistakes_are_named(self):
        rows = [
            ([], "usage: doorbell-client"),
            (["paint"], "unknown command 'paint'"),
            (["echo"], "doorbell-client echo: --to is required"),
            (["echo", "--to", "localhost:1"], "is not ADDR:PORT; write 192.0.2.1:9000"),
            (["echo", "--to", "::1:9000"], "is not ADDR:PORT; write 192.0.2.1:9000"),
            (["echo", "--to", "127.0.0.1:0"], "is not ADDR:PORT; write 192.0.2.1:9000"),
            (["echo", "--sockets", "0"], "--sockets: '0' is not a number from 1 to"),
            (["echo", "--window", "-1"], "--window: '-1' is not a number"),
            (["echo", "--duration-s", "nan"], "--duration-s: 'nan' is not a number of seconds"),
            (["echo", "--to", "127.0.0.1:9", "--min-size", "9", "--max-size", "8"], "--min-size"),
            (["echo", "--to", "127.0.0.1:9", "more"], "unexpected argument 'more'"),
            (["echo", "--fast"], "there is no option --fast"),
            (["digits", "--to", "127.0.0.1:9"], "--data is required"),
            (["digits", "--to", "127.0.0.1:9", "--data", WEIGHTS], "is not a file of digits"),
            ([*DIGITS_ARGS, "--to", "127.0.0.1:9", "--weights", WEIGHTS], "need each other"),
            ([*DIGITS_ARGS, "--to", "127.0.0.1:9", "--weights", WEIGHTS, "--model", ECHO],
             "unknown argument 'weights'"),
            ([*DIGITS_ARGS, "--to", "127.0.0.1:9", "--weights", f"{DIGITS}/digits.bin",
              "--model", MLP], "the header claims"),
        ]
        for args, problem in rows:
            with self.subTest(args=args):
                done = subprocess.run([CLIENT, *args], stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode, 2)
                self.assertIn(problem, done.stderr)

    def test_help(self):
        for args in ["--help"], ["echo", "--help"], ["digits", "--help"]:
            done = subprocess.run([CLIENT, *args], stdout=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 0)
            self.assertIn("usage: doorbell-client", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
