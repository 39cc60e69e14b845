#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""doorbell_agent.serve() where a GPU and PyTorch are: that it gets as far as the load balancer,
which is not there, and what it says of modules that it cannot serve. Each in a
process, as it serves once.

DOORBELL_LIBRARY says where libdoorbell-agent.so is, unless it is beside doorbell_agent.py.
"""
import os
import signal
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../gpu-agent/python")]
# No process listens there.
OPTIONS = {"lb": "127.0.0.1:1", "device": "net_ring0", "address": "10.201.0.11/24",
           "model": "test", "max_batch": 4, "no_hugepages": True}


def linear(torch):
    return torch.nn.Linear(16, 4).eval().cuda()


def recording(torch):
    module, event = linear(torch), torch.cuda.Event(external=True)

    def forward(x):
        y = module(x)
        event.record()
        return y
    return forward


def looking(torch):
    module = linear(torch)
    return lambda x: module(x) if x[0, 0].item() < 2 else x


def serve(case):
    import torch
    import doorbell_agent
    try:
        doorbell_agent.serve(globals()[case](torch), torch.rand(1, 16, device="cuda"), **OPTIONS)
    except doorbell_agent.Error as error:
        sys.exit(f"Error: {error}")
    print("returned")


class Serve(unittest.TestCase):
    def child(self, case):
        child = subprocess.Popen([sys.executable, __file__, case], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        return child

    def test_asks_for_the_load_balancer_until_interrupted(self):
        child, said = self.child("linear"), ""
        while "trying again" not in said:
            line = child.stderr.readline()
            self.assertTrue(line, said)
            said += line
        self.assertIn("loop=cuda", said)
        child.send_signal(signal.SIGINT)
        out, rest = child.communicate(timeout=60)
        self.assertEqual((out, child.returncode), ("returned\n", 0), said + rest)

    def test_names_what_a_gpu_cannot_launch(self):
        _, said = self.child("recording").communicate(timeout=300)
        self.assertIn("records an event", said)
        self.assertIn("status 1", said)

    def test_says_that_a_module_cannot_be_captured(self):
        _, said = self.child("looking").communicate(timeout=300)
        self.assertIn("cannot be captured", said)


def main():
    if len(sys.argv) > 1:
        return serve(sys.argv[1])
    try:
        import torch
        gpus = torch.cuda.device_count()
    except ImportError:
        gpus = 0
    if gpus == 0:
        print("skipped: no PyTorch, or no GPU that it sees")
        return 77
    return unittest.main(argv=sys.argv[:1])


if __name__ == "__main__":
    sys.exit(main())
