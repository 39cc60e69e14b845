#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The workers of gpu_tcp.py, each a process of its own; it starts them.

    gpu_tcp_serve.py reference MODEL FOLDER ROWS    requests, and what eager PyTorch answers, as files
    gpu_tcp_serve.py loop MODEL BATCH OPTIONS       doorbell_agent.serve(): the loop on the GPU
    gpu_tcp_serve.py mediated MODEL BATCH OPTIONS   the agent's loop on a CPU thread, which launches graphs
    gpu_tcp_serve.py plugin PATH ARGUMENTS OPTIONS  a plug-in, by the agent's library

OPTIONS are those of doorbell_agent.serve() as JSON.
"""
import ctypes
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../../gpu-agent/python")]
import doorbell_agent  # noqa: E402

SEED = 17
EXPECTED_FROM_BATCHES_OF = 1


def load(name):
    """The module with the same random weights in each process, and the shape of a row."""
    import torch
    import torchvision
    from gpu_models import MODELS

    torch.manual_seed(SEED)
    module, row = MODELS[name](torch, torchvision)
    return torch, module.eval().cuda(), row


def sizes(batch):
    """Batches that servers with several graphs have one for."""
    powers = [2 ** i for i in range(8) if 2 ** i < batch]
    return powers + [batch]


def captures(torch, module, row, batch):
    example = torch.rand(1, *row, device="cuda")
    return [doorbell_agent.capture(module, example, size) for size in sizes(batch)]


def nearest(replies):
    """The smallest difference between replies of two rows, of the largest value: what a mix-up would show."""
    flat = replies.flatten(1).cuda()
    found = float("inf")
    for i, one in enumerate(flat):
        others = ((flat - one).abs().amax(1) / one.abs().max()).tolist()
        found = min([found] + others[:i] + others[i + 1:])
    return found


def reference(name, folder, rows):
    torch, module, row = load(name)
    # Each row has a gain of its own, so that replies of two rows differ by far more than the tolerance.
    gains = torch.linspace(0.1, 2, int(rows)).view(-1, *[1] * len(row))
    requests = torch.rand(int(rows), *row) * gains
    with torch.no_grad():
        replies = torch.cat([module(part.cuda()).cpu() for part in requests.split(EXPECTED_FROM_BATCHES_OF)])
    for file, tensor in (("requests", requests), ("replies", replies)):
        tensor.contiguous().numpy().tofile(os.path.join(folder, file))
    print(json.dumps({"request_bytes": requests[0].numel() * 4, "reply_bytes": replies[0].numel() * 4,
                      "gpu": torch.cuda.get_device_name(), "torch": torch.__version__,
                      "classes": len(set(replies.flatten(1).argmax(1).tolist())),
                      "nearest": nearest(replies), "tf32": torch.backends.cudnn.allow_tf32}))


def loop(name, batch, options):
    torch, module, row = load(name)
    doorbell_agent.serve(module, torch.rand(1, *row, device="cuda"), model=name, max_batch=int(batch),
                         **json.loads(options))


def run_plugin(path, arguments, batch, options):
    words = doorbell_agent.command_line(model=path, max_batch=batch, **json.loads(options))
    # command_line() refuses what serve() chooses itself.
    words += ["--gpu", "none", "--model-args", arguments]
    doorbell_agent.run_until_stopped(doorbell_agent.load_library(), words, None)


def mediated(name, batch, options):
    torch, module, row = load(name)
    captured = captures(torch, module, row, int(batch))
    graphs = (doorbell_agent.Graph * len(captured))(*[c.describe() for c in captured])
    run_plugin(os.environ["CPU_MEDIATED"], f"{ctypes.addressof(graphs):#x}:{len(graphs)}", int(batch), options)


def plugin(path, arguments, options):
    run_plugin(path, arguments, 8, options)


if __name__ == "__main__":
    {"reference": reference, "loop": loop, "mediated": mediated, "plugin": plugin}[sys.argv[1]](*sys.argv[2:])
