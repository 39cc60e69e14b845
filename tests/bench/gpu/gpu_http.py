#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A model behind aiohttp, served by eager PyTorch, and a client that asks one request at a time.

gpu_models.py runs it as a process of its own, on loopback: gpu_http.py MODEL WEIGHTS.
"""
import asyncio
import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import time

HOST = "127.0.0.1"


def why_not():
    """Why there is no such server here, or None."""
    return None if importlib.util.find_spec("aiohttp") else "no aiohttp"


# --- the server ----------------------------------------------------------------------------------

def infer(torch, module, shape, body):
    """As people write it first: into a tensor, to the GPU, run, back."""
    batch = torch.frombuffer(bytearray(body), dtype=torch.float32).view(shape)
    with torch.no_grad():
        return module(batch.cuda()).cpu().numpy().tobytes()


async def serve(torch, module, shape):
    from aiohttp import web

    async def answer(request):
        return web.Response(body=infer(torch, module, shape, await request.read()))

    app = web.Application(client_max_size=64 << 20)
    app.router.add_post("/", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    # Until the parent closes our input, also by its death.
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


def main():
    import torch
    import torchvision
    from gpu_models import MODELS

    module, row = MODELS[sys.argv[1]](torch, torchvision)
    module.load_state_dict(torch.load(sys.argv[2], weights_only=True))
    asyncio.run(serve(torch, module.eval().cuda(), (1, *row)))


# --- the client ----------------------------------------------------------------------------------

class Server:
    """The server of one module, and a connection to it."""

    def __init__(self, torch, name, module):
        with tempfile.NamedTemporaryFile(suffix=".pt") as weights:
            torch.save(module.state_dict(), weights.name)
            self.process = subprocess.Popen(
                [sys.executable, os.path.abspath(__file__), name, weights.name],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            port = self.process.stdout.readline()
        if not port:
            raise OSError(f"the server of {name} ended with {self.process.wait()}")
        self.socket = socket.create_connection((HOST, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.process.stdin.close()
        self.process.wait()

    def ask(self, body):
        head = f"POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.socket.sendall(head.encode() + body)
        got = b""
        while b"\r\n\r\n" not in got:
            got += self.receive()
        head, reply = got.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        if " 200 " not in lines[0]:
            raise OSError(f"the server says: {lines[0]}")
        fields = dict(line.lower().split(": ", 1) for line in lines[1:])
        parts, left = [reply], int(fields["content-length"]) - len(reply)
        while left > 0:
            parts.append(self.receive())
            left -= len(parts[-1])
        return b"".join(parts)

    def receive(self):
        got = self.socket.recv(1 << 20)
        if not got:
            raise OSError("the server has closed the connection")
        return got

    def latency(self, body, n, warm):
        """Microseconds of <n> requests, after <warm> others."""
        took = []
        for i in range(warm + n):
            start = time.perf_counter_ns()
            self.ask(body)
            took.append((time.perf_counter_ns() - start) / 1e3)
        return took[warm:]


if __name__ == "__main__":
    main()
