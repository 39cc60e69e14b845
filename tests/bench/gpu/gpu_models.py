#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Models captured by PyTorch, served by the loop on the GPU, by CPU threads that launch the same
graph, and by eager PyTorch with pageable copies: all behind the same rings, in turn. And by aiohttp
with eager PyTorch, on a TCP connection.

Wants PyTorch, torchvision, a GPU, and libbench-gpu.so beside this file, or in $BENCH_GPU_LIBRARY.
"""
import argparse
import contextlib
import ctypes
import json
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../../gpu-agent/python")]
import doorbell_agent  # noqa: E402
import gpu_http  # noqa: E402

GAP_US = 20
SLOTS = 128  # four of the largest batches: peers have three in flight
BATCHES = (8, 32)
THROUGHPUT_S = 0.5
TOLERANCE = 1e-3
# As enum gpu_models_server counts.
SERVERS = ("", "peer_gathered_", "peer_copied_", "peer_pipelined_", "plain_")
LOOP, GATHERED, COPIED, PIPELINED, PLAIN = range(len(SERVERS))


# --- models, with random weights -----------------------------------------------------------------

def mlp(torch, _torchvision):
    from torch.nn import Linear, ReLU, Sequential
    return Sequential(Linear(784, 1024), ReLU(), Linear(1024, 1024), ReLU(), Linear(1024, 10)), \
        (784,)


def superres(torch, _torchvision):
    from torch.nn import Conv2d, PixelShuffle, Sequential, Tanh
    return Sequential(Conv2d(1, 64, 5, padding=2), Tanh(), Conv2d(64, 32, 3, padding=1), Tanh(),
                      Conv2d(32, 9, 3, padding=1), PixelShuffle(3)), (1, 224, 224)


def squeezenet(_torch, torchvision):
    return torchvision.models.squeezenet1_1(weights=None), (3, 224, 224)


def resnet50(_torch, torchvision):
    return torchvision.models.resnet50(weights=None), (3, 224, 224)


MODELS = {"mlp": mlp, "superres": superres, "squeezenet": squeezenet, "resnet50": resnet50}
REQUESTS = {"mlp": 2000, "superres": 1000, "squeezenet": 1000, "resnet50": 500}


# --- the library ---------------------------------------------------------------------------------

class Item(ctypes.Structure):
    """struct agent_model_item."""
    _fields_ = [("request", ctypes.c_void_p), ("request_length", ctypes.c_uint32),
                ("reply_length", ctypes.c_uint32), ("reply", ctypes.c_void_p),
                ("status", ctypes.c_int32)]


class Latency(ctypes.Structure):
    """struct gpu_latency."""
    _fields_ = [(name, ctypes.c_double) for name in (
        "p10_us", "p50_us", "p99_us", "p999_us", "gpu_p50_us", "gpu_p99_us", "taken_us", "run_us",
        "outside_us", "class_low_us", "class_high_us")] + [("lost", ctypes.c_uint64), ("wrong", ctypes.c_uint64)]


RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(Item), ctypes.c_uint32)


def load_library():
    path = os.environ.get("BENCH_GPU_LIBRARY", os.path.join(HERE, "libbench-gpu.so"))
    lib, graph = ctypes.CDLL(path), ctypes.POINTER(doorbell_agent.Graph)
    for name, result, arguments in (
            ("start", ctypes.c_void_p, [graph, ctypes.c_int, RUN, ctypes.c_uint32,
                                        ctypes.c_char_p, ctypes.c_size_t]),
            ("stop", None, [ctypes.c_void_p]),
            ("ask", ctypes.c_uint32, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32,
                                      ctypes.c_void_p]),
            ("latency", ctypes.c_uint64, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32,
                                          ctypes.c_uint32, ctypes.POINTER(Latency)]),
            ("throughput", ctypes.c_double, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_double]),
            ("alone_us", ctypes.c_double, [graph, ctypes.c_char_p, ctypes.c_size_t])):
        function = getattr(lib, "gpu_models_" + name)
        function.restype, function.argtypes = result, arguments
    return lib


class Failed(Exception):
    """A model cannot be measured; others may."""


# --- serving -------------------------------------------------------------------------------------

class Case:
    """A model captured for one size of batch, its requests, and what eager PyTorch answers."""

    def __init__(self, torch, name, module, row, batch):
        self.torch, self.name, self.module, self.batch = torch, name, module, batch
        self.requests = torch.rand(batch, *row)  # on the host, pageable
        device = next(module.parameters()).device
        with torch.no_grad():
            self.expected = module(self.requests.to(device)).cpu()
        self.captured = doorbell_agent.capture(module, self.requests.to(device), batch)
        self.graph = self.captured.describe()
        self.device = device
        self.run = RUN(self.answer)
        self.kept = False

    def answer(self, _state, items, n):
        """What people write first: copy in, run, copy out."""
        if not self.kept:
            # One reference too many: or Python makes this thread known to it, and forgets it, with
            # every batch.
            ctypes.pythonapi.PyGILState_Ensure()
            self.kept = True
        try:
            rows = [self.row(items[i].request) for i in range(n)]
            with self.torch.no_grad():
                batch = rows[0][None] if n == 1 else self.torch.stack(rows)
                replies = self.module(batch.to(self.device)).cpu()
            size = self.graph.reply_bytes
            for i in range(n):
                ctypes.memmove(items[i].reply, replies[i].data_ptr(), size)
                items[i].reply_length, items[i].status = size, 0
        except Exception as error:  # no exception leaves a callback
            print(f"gpu_models.py: {self.name}: {error}", file=sys.stderr)
            for i in range(n):
                items[i].status = -5

    def body(self):
        return self.requests.numpy().tobytes()

    def row(self, address):
        """A request where it lies."""
        there = (ctypes.c_char * self.graph.request_bytes).from_address(address)
        return self.torch.frombuffer(there, dtype=self.torch.float32).view(self.requests.shape[1:])

    @contextlib.contextmanager
    def served(self, lib, server):
        error = ctypes.create_string_buffer(512)
        self.torch.cuda.synchronize()
        self.kept = False
        at = lib.gpu_models_start(ctypes.byref(self.graph), server,
                                  self.run if server == PLAIN else RUN(), SLOTS, error, 512)
        if not at:
            why = error.value.decode(errors="replace")
            raise Failed(f"{self.name}: {SERVERS[server]}loop: {why}")
        try:
            yield at
        finally:
            lib.gpu_models_stop(at)

    def check(self, lib, at, server):
        """Do all rows come back as eager PyTorch computes them?"""
        replies = self.torch.full_like(self.expected, float("nan"))
        good = lib.gpu_models_ask(at, self.requests.data_ptr(), self.batch, replies.data_ptr())
        if good != self.batch:
            raise Failed(f"{self.name}: {SERVERS[server]}loop answered {good} of {self.batch}")
        off = ((replies - self.expected).abs().max() / self.expected.abs().max()).item()
        if not off <= TOLERANCE:
            raise Failed(f"{self.name}: {SERVERS[server]}loop differs from eager PyTorch "
                         f"by {off:.2e}")


def latency(lib, case, server, add):
    took, prefix = Latency(), SERVERS[server] + case.name
    with case.served(lib, server) as at:
        case.check(lib, at, server)
        lost = lib.gpu_models_latency(at, case.requests.data_ptr(), REQUESTS[case.name], GAP_US,
                                      ctypes.byref(took))
    if lost:
        raise Failed(f"{case.name}: {SERVERS[server]}loop lost or refused {lost}")
    add(f"{prefix}_p50_us", took.p50_us)
    add(f"{prefix}_p99_us", took.p99_us)
    if server == LOOP:
        for part in ("taken_us", "run_us", "outside_us"):
            add(f"{prefix}_{part}", getattr(took, part))
    return took.p50_us


def throughput(lib, case, server, add):
    with case.served(lib, server) as at:
        case.check(lib, at, server)
        rate = lib.gpu_models_throughput(at, case.requests.data_ptr(), THROUGHPUT_S)
    if rate < 0:
        raise Failed(f"{case.name}: {SERVERS[server]}loop lost some")
    add(f"{SERVERS[server]}{case.name}_rps_batch{case.batch}", rate)
    return rate


def alone(lib, case, add):
    error = ctypes.create_string_buffer(512)
    case.torch.cuda.synchronize()
    us = lib.gpu_models_alone_us(ctypes.byref(case.graph), error, 512)
    if us < 0:
        raise Failed(f"{case.name}: alone: {error.value.decode(errors='replace')}")
    add(f"{case.name}_alone_us" if case.batch == 1 else f"{case.name}_alone_us_batch{case.batch}",
        us)
    return us


def http_latency(case, add):
    try:
        with gpu_http.Server(case.torch, case.name, case.module) as server:
            reply = case.torch.frombuffer(bytearray(server.ask(case.body())),
                                          dtype=case.torch.float32)
            took = server.latency(case.body(), REQUESTS[case.name] // 4, 20)
    except OSError as error:
        raise Failed(f"{case.name}: aiohttp: {error}") from error
    if (reply - case.expected.flatten()).abs().max() > TOLERANCE * case.expected.abs().max():
        raise Failed(f"{case.name}: aiohttp differs from eager PyTorch")
    add(f"http_{case.name}_p50_us", percentile(took, 50))
    add(f"http_{case.name}_p99_us", percentile(took, 99))


def measure(lib, name, cases, quick, add):
    """One repetition of one model."""
    loop, *peers = (latency(lib, cases[1], server, add) for server in (LOOP, GATHERED, COPIED))
    if not quick:
        plain = latency(lib, cases[1], PLAIN, add)
        if name == "superres":
            add("superres_speedup", plain / loop)
        if gpu_http.why_not() is None:
            http_latency(cases[1], add)
    by_itself, peer = alone(lib, cases[1], add), min(peers)
    add(f"strongest_peer_{name}_p50_us", peer)
    # Below a hundredth of a microsecond it is the clock that is measured.
    add(f"overhead_ratio_{name}", (loop - by_itself) / max(peer - by_itself, 0.01))
    if name == "mlp":
        add("mlp_speedup_b1", peer / loop)
    for batch in sorted(cases)[1:]:
        loop, *peers = (throughput(lib, cases[batch], server, add)
                        for server in (LOOP, GATHERED, COPIED, PIPELINED))
        if not quick:
            throughput(lib, cases[batch], PLAIN, add)
        add(f"{name}_rps_batch{batch}_over_strongest", loop / max(peers))
        alone(lib, cases[batch], add)


# --- the report, as report.c writes it -----------------------------------------------------------

def percentile(values, percent):
    values = sorted(values)
    at = (len(values) - 1) * percent / 100
    below = int(at)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (at - below)


def rounded(value):
    return round(value, 3 if abs(value) < 10 else 1)


def report(series, options, runs):
    return {"bench": "gpu-models", "commit": options.commit, "machine": options.machine,
            "pages": "4 KiB pages", "runs": runs,
            "metrics": {name: rounded(statistics.median(v)) for name, v in series.items()},
            "spread": {name: [rounded(percentile(v, 10)), rounded(percentile(v, 90))]
                       for name, v in series.items()}}


def write(series, options, runs):
    """After every run: a bench that is cut short leaves what it has."""
    if options.json is not None:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report(series, options, runs), file, indent=2)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--machine", default="unknown")
    parser.add_argument("--only", metavar="MODEL,...", help=", ".join(MODELS))
    parser.add_argument("--quick", action="store_true", help="without eager PyTorch and aiohttp")
    options = parser.parse_args()
    options.models = list(MODELS) if options.only is None else options.only.split(",")
    unknown = set(options.models) - set(MODELS)
    if unknown or options.runs < 1:
        parser.error(f"--only takes {', '.join(MODELS)}; --runs at least 1")
    return options


def main():
    options = parse()
    try:
        import torch
        import torchvision
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    if not torch.cuda.is_available():
        print("skipped: no GPU")
        return 77
    if gpu_http.why_not() is not None:
        print(f"without the server over HTTP: {gpu_http.why_not()}", file=sys.stderr)
    torch.manual_seed(1)
    lib, series, all_cases = load_library(), {}, {}
    failed = False
    for name in options.models:
        module, row = MODELS[name](torch, torchvision)
        module = module.eval().cuda()
        try:
            all_cases[name] = {batch: Case(torch, name, module, row, batch)
                               for batch in (1,) + BATCHES}
        except doorbell_agent.Error as error:
            print(f"gpu_models.py: {name}: {error}; it is left out", file=sys.stderr)
            failed = True
    for run in range(options.runs):
        for name, cases in list(all_cases.items()):
            print(f"run {run + 1} of {options.runs}: {name}", file=sys.stderr, flush=True)
            try:
                measure(lib, name, cases, options.quick, lambda k, v: series.setdefault(k, []).append(v))
            except Failed as error:
                print(f"gpu_models.py: {error}; it is left out", file=sys.stderr)
                del all_cases[name]
                for metric in [metric for metric in series if name in metric]:
                    del series[metric]
                failed = True
        write(series, options, run + 1)
    print(f"gpu-models: medians (p10, p90) of {options.runs} runs on "
          f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    for name, values in series.items():
        print(f"{name:44} {statistics.median(values):10.2f}  "
              f"({percentile(values, 10):.2f}, {percentile(values, 90):.2f})")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
