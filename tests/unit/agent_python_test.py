#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""gpu-agent/python without a GPU and without PyTorch: options, refusals, and how serving ends.

usage: agent_python_test.py FOLDER_OF_DOORBELL_AGENT_PY FILE.py... [--library libdoorbell-agent.so]
"""
import os
import signal
import sys
import threading
import unittest
from unittest import mock

FILES, LIBRARY = sys.argv[2:], None
if "--library" in FILES:
    LIBRARY = FILES.pop()
    FILES.remove("--library")
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import doorbell_agent  # noqa: E402


class Tensor:
    """What of a tensor is looked at."""

    def __init__(self, *shape, device="cuda:0", contiguous=True):
        self.shape, self.device, self.is_cuda = shape, device, device.startswith("cuda")
        self.contiguous = contiguous

    def is_contiguous(self):
        return self.contiguous

    def numel(self):
        n = 1
        for side in self.shape:
            n *= side
        return n

    def element_size(self):
        return 4

    def data_ptr(self):
        return 4096


class Module:
    def __init__(self, device="cuda:0", training=False):
        self.device, self.training = device, training

    def parameters(self):
        return [Tensor(3, device=self.device)]

    def buffers(self):
        return []


class Options(unittest.TestCase):
    def test_names_and_values_become_the_command_line(self):
        words = doorbell_agent.command_line(lb="10.0.0.1:4790", batch_timeout_us=50, slots=64)
        self.assertEqual(words,
                         ["doorbell-agent", "--lb", "10.0.0.1:4790", "--batch-timeout-us", "50",
                          "--slots", "64"])

    def test_true_is_an_option_without_value_and_false_is_none(self):
        self.assertEqual(doorbell_agent.command_line(busy_poll=True, no_hugepages=False, name=None),
                         ["doorbell-agent", "--busy-poll"])

    def test_zero_is_a_value(self):
        self.assertEqual(doorbell_agent.command_line(traffic_class=0)[1:], ["--traffic-class", "0"])

    def test_what_the_module_decides_is_refused(self):
        for name in ("gpu", "model_args"):
            with self.assertRaisesRegex(TypeError, name):
                doorbell_agent.command_line(**{name: "1"})


class Refusals(unittest.TestCase):
    def refuses(self, words, check, *arguments):
        with self.assertRaisesRegex(doorbell_agent.Error, words):
            check(*arguments)

    def test_examples(self):
        doorbell_agent.check_example(Tensor(1, 784), 8)
        self.refuses("on the CPU", doorbell_agent.check_example, Tensor(1, 784, device="cpu"), 8)
        self.refuses("one tensor", doorbell_agent.check_example, [Tensor(1, 784)], 8)
        self.refuses("first dimension", doorbell_agent.check_example, Tensor(), 8)
        self.refuses("max_batch=257", doorbell_agent.check_example, Tensor(1, 784), 257)

    def test_modules(self):
        doorbell_agent.check_module(Module(), "cuda:0")
        doorbell_agent.check_module(lambda x: x, "cuda:0")
        self.refuses("parameters are on cpu", doorbell_agent.check_module, Module("cpu"), "cuda:0")
        self.refuses("eval()", doorbell_agent.check_module, Module(training=True), "cuda:0")

    def test_outputs(self):
        doorbell_agent.check_output(Tensor(8, 10), 8, "cuda:0")
        self.refuses("tuple of 2", doorbell_agent.check_output, (Tensor(8), Tensor(8)), 8, "cuda:0")
        self.refuses("not contiguous", doorbell_agent.check_output,
                     Tensor(8, 10, contiguous=False), 8, "cuda:0")
        self.refuses("first dimension", doorbell_agent.check_output, Tensor(10), 8, "cuda:0")
        self.refuses("output is on cpu", doorbell_agent.check_output,
                     Tensor(8, 10, device="cpu"), 8, "cuda:0")
        self.refuses("float, not a tensor", doorbell_agent.check_output, 1.0, 8, "cuda:0")

    def test_a_row_is_what_lies_behind_the_first_dimension(self):
        self.assertEqual(doorbell_agent.row_bytes(Tensor(8, 3, 224, 224)), 602112)


class Agent:
    """A library whose agent runs until it is stopped."""

    def __init__(self, status=0):
        self.stopped, self.status, self.stops = threading.Event(), status, 0

    def doorbell_agent_run(self, argc, argv, graph):
        os.kill(os.getpid(), signal.SIGINT)
        return self.status if self.stopped.wait(20) else 99

    def doorbell_agent_stop(self):
        self.stops += 1
        self.stopped.set()


class Serving(unittest.TestCase):
    def serve(self, agent, **options):
        captured = mock.Mock()
        captured.describe.return_value = doorbell_agent.Graph(batch=8)
        with mock.patch.object(doorbell_agent, "load_library", return_value=agent), \
                mock.patch.object(doorbell_agent, "capture", return_value=captured):
            doorbell_agent.serve(Module(), Tensor(1, 784), lb="10.0.0.1:4790", device="net_ring0",
                           address="10.0.0.2/24", **options)

    def test_ends_when_interrupted_and_puts_the_handler_back(self):
        agent, before = Agent(), signal.getsignal(signal.SIGINT)
        self.serve(agent)
        self.assertEqual(agent.stops, 1)
        self.assertIs(signal.getsignal(signal.SIGINT), before)

    def test_raises_what_the_agent_ended_with(self):
        with self.assertRaisesRegex(doorbell_agent.Error, "status 3"):
            self.serve(Agent(3))

    def test_the_class_names_the_model(self):
        with mock.patch.object(doorbell_agent, "run_until_stopped") as run:
            self.serve(Agent(), max_batch=8)
        words = run.call_args.args[1]
        self.assertEqual(words[words.index("--model") + 1], "module")
        self.assertEqual(words[words.index("--max-batch") + 1], "8")


@unittest.skipUnless(LIBRARY, "the library cannot be loaded into this build's python")
class Library(unittest.TestCase):
    WORDS = {"lb": "127.0.0.1:4790", "device": "net_ring0", "address": "10.0.0.2/24", "model": "m"}

    def test_wrong_options_end_with_status_2(self):
        words = doorbell_agent.command_line(no_such_option=True, **self.WORDS)
        with self.assertRaisesRegex(doorbell_agent.Error, "status 2"):
            doorbell_agent.run(doorbell_agent.load_library(LIBRARY), words, None)

    def test_a_graph_that_is_none_ends_with_status_1(self):
        with self.assertRaisesRegex(doorbell_agent.Error, "status 1"):
            doorbell_agent.run(doorbell_agent.load_library(LIBRARY),
                               doorbell_agent.command_line(**self.WORDS), doorbell_agent.Graph())


class Files(unittest.TestCase):
    def test_all_can_be_compiled(self):
        for file in FILES:
            with self.subTest(file), open(file, encoding="utf-8") as source:
                compile(source.read(), file, "exec")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
