#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""gpu-agent/python without a GPU and without PyTorch: options, refusals, and how serving ends.

usage: agent_python_test.py FOLDER_OF_DOORBELL_AGENT_PY FILE.py... [--library libdoorbell-agent.so]
                            [--graph-text graph_text.so]
"""
import ctypes
import os
import signal
import sys
import threading
import unittest
from unittest import mock

FILES, LIBRARY, GRAPH_TEXT = sys.argv[2:], None, None
if "--graph-text" in FILES:
    GRAPH_TEXT = FILES.pop()
    FILES.remove("--graph-text")
if "--library" in FILES:
    LIBRARY = FILES.pop()
    FILES.remove("--library")
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import doorbell_agent  # noqa: E402


class Tensor:
    """What of a tensor is looked at."""

    def __init__(self, *shape, device="cuda:0", contiguous=True, dtype="torch.float32"):
        self.shape, self.device, self.is_cuda = shape, device, device.startswith("cuda")
        self.contiguous, self.dtype = contiguous, dtype

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

    def test_sizes_of_batches(self):
        sizes = doorbell_agent.check_buckets
        self.assertEqual([sizes(None, n) for n in (1, 2, 6, 8)], [[], [1], [1, 2, 4], [1, 2, 4]])
        self.assertEqual(sizes(None, 128), [1, 2, 4, 8, 16, 32, 64])
        self.assertEqual((sizes((), 8), sizes([8, 3, 1, 3], 8)), ([], [1, 3]))
        self.refuses("from 1 to max_batch, 8", sizes, [9], 8)
        self.refuses("from 1 to max_batch, 8", sizes, [0], 8)
        self.refuses("7 sizes below max_batch", sizes, range(1, 9), 9)

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
        captured = mock.Mock(inputs=Tensor(8, 784), outputs=Tensor(8, 10))
        captured.describe.side_effect = lambda description: doorbell_agent.Graph(
            batch=8, description=ctypes.pointer(description))
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


    def test_the_agent_gets_the_names_and_the_version(self):
        with mock.patch.object(doorbell_agent, "run_until_stopped") as run:
            self.serve(Agent(), max_batch=8, input_name="image", output_name="scores", version="7")
        told = run.call_args.args[2]._obj.description[0]
        self.assertEqual((told.version, told.input[0].name, told.output[0].name),
                         (b"7", b"image", b"scores"))
        self.assertEqual(list(told.input[0].shape)[:told.input[0].rank], [-1, 784])

    def test_a_budget_is_what_pytorch_leaves_of_it(self):
        self.assertEqual(doorbell_agent.budget_left(1000, 0, 0), 1000)
        self.assertEqual(doorbell_agent.budget_left(1000, 1, 0), 999)
        self.assertEqual(doorbell_agent.budget_left(1000, 999 << 20, 0), 1)
        with self.assertRaisesRegex(doorbell_agent.Error, "has taken 1000 MB of GPU 2, which leaves nothing of "
                                                          "gpu_memory_mb=1000"):
            doorbell_agent.budget_left(1000, 1000 << 20, 2)
        for bad in (0, -1, 1.5, "1", True):
            with self.assertRaisesRegex(doorbell_agent.Error, "is no number of MB"):
                doorbell_agent.budget_left(bad, 0, 0)

    def test_the_agent_gets_what_the_module_leaves_of_the_budget(self):
        with mock.patch.object(doorbell_agent, "run_until_stopped") as run, \
                mock.patch.object(doorbell_agent, "reserved", return_value=100 << 20):
            self.serve(Agent(), gpu_memory_mb=1000)
        words = run.call_args.args[1]
        self.assertEqual(words[words.index("--gpu-memory-mb") + 1], "900")

    def test_a_bad_name_is_refused_before_anything_is_captured(self):
        with mock.patch.object(doorbell_agent, "run_until_stopped") as run:
            with self.assertRaisesRegex(doorbell_agent.Error, "input_name='two words': use 1 to 63"):
                self.serve(Agent(), input_name="two words")
        run.assert_not_called()

    def test_bad_sizes_are_refused_before_anything_is_captured(self):
        with mock.patch.object(doorbell_agent, "run_until_stopped") as run:
            with self.assertRaisesRegex(doorbell_agent.Error, "from 1 to max_batch, 4"):
                self.serve(Agent(), max_batch=4, buckets=[5])
        run.assert_not_called()

    def test_the_memory_of_all_sizes_is_said(self):
        captured = doorbell_agent.Captured(None, Tensor(8, 784), Tensor(8, 10),
                                           [(None, Tensor(2, 10))], 3 << 20)
        self.assertEqual(captured.sizes(),
                         "graphs for batches of 2, 8; memory of the GPU: 3 MiB")


class Descriptions(unittest.TestCase):
    def test_types_have_kserves_names(self):
        for dtype, name in (("torch.bool", "BOOL"), ("torch.uint8", "UINT8"),
                            ("torch.int64", "INT64"), ("torch.float16", "FP16"),
                            ("torch.float32", "FP32"), ("torch.float64", "FP64"),
                            ("torch.bfloat16", "BF16")):
            self.assertEqual(doorbell_agent.datatype(Tensor(1, dtype=dtype)), name)

    def test_rows_of_a_batch_are_described(self):
        d = doorbell_agent.description(Tensor(8, 3, 224, 224, dtype="torch.float16"), Tensor(8, 10))
        self.assertEqual((d.version, d.platform, d.batch), (b"1", b"pytorch", 1))
        self.assertEqual((d.n_inputs, d.n_outputs), (1, 1))
        self.assertEqual((d.input[0].name, d.input[0].datatype, d.input[0].rank),
                         (b"input0", b"FP16", 4))
        self.assertEqual(list(d.input[0].shape)[:4], [-1, 3, 224, 224])
        self.assertEqual((d.output[0].name, d.output[0].datatype), (b"output0", b"FP32"))
        self.assertEqual(list(d.output[0].shape)[:2], [-1, 10])

    def test_what_has_no_name_is_served_undescribed(self):
        described = doorbell_agent.description
        self.assertIsNone(described(Tensor(1, dtype="torch.complex64"), Tensor(1)))
        self.assertIsNone(described(Tensor(1), Tensor(1, dtype="torch.float8_e4m3fn")))
        self.assertIsNone(described(Tensor(*[1] * 9), Tensor(1)))

    def test_names_and_versions_that_an_agent_refuses(self):
        for arguments, words in (({"input_name": ""}, "input_name=''"),
                                 ({"output_name": "a b"}, "output_name='a b'"),
                                 ({"input_name": "n" * 64}, "use 1 to 63"),
                                 ({"input_name": "ä"}, "printable ASCII"),
                                 ({"version": "1/2"}, "version='1/2'"),
                                 ({"version": "1\n"}, "version="),
                                 ({"version": "v" * 32}, "use 1 to 31")):
            with self.assertRaisesRegex(doorbell_agent.Error, words):
                doorbell_agent.description(Tensor(1), Tensor(1), **arguments)

    @unittest.skipUnless(GRAPH_TEXT, "the library cannot be loaded into this build's python")
    def test_c_reads_what_python_wrote(self):
        graph = mock.Mock()
        graph.raw_cuda_graph.return_value = 0x1000
        inputs, outputs = Tensor(8, 3, 224), Tensor(8, 10, dtype="torch.int8")
        inputs.device = mock.Mock(index=3)
        captured = doorbell_agent.Captured(graph, inputs, outputs, [(graph, Tensor(2, 10))])
        told = captured.describe(doorbell_agent.description(inputs, outputs, "image", "out", "2.0"))
        text = ctypes.create_string_buffer(512)
        ctypes.CDLL(GRAPH_TEXT).graph_text(ctypes.byref(told), text, ctypes.c_size_t(len(text)))
        self.assertEqual(text.value.decode(),
                         "graph 0x1000 2688 40 8 gpu 3 smaller 0x1000 2 version 2.0 platform pytorch batch 1 "
                         "in image FP32 -1 3 224 out out INT8 -1 10")
        captured = doorbell_agent.Captured(graph, inputs, outputs)
        ctypes.CDLL(GRAPH_TEXT).graph_text(ctypes.byref(captured.describe()), text,
                                           ctypes.c_size_t(len(text)))
        self.assertEqual(text.value.decode(), "graph 0x1000 2688 40 8 gpu 3 undescribed")


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
