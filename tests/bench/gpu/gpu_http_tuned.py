#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A model behind aiohttp, as fast as we can make it; gpu_tcp.py starts it.

    gpu_http_tuned.py ADDRESS PORT MODEL BATCH
    gpu_http_tuned.py ADDRESS PORT echo REQUEST-BYTES:REPLY-BYTES     without a GPU

uvloop; aiohttp's low-level server without routes and log; bodies go from the socket's chunks straight into
pinned memory. A thread takes what waits, at most BATCH requests, copies neighbours at once, replays the
CUDA graph of the smallest batch that holds them, and copies the replies back at once. Several processes may share the port; each has a
model then.
"""
import asyncio
import gc
import os
import queue
import signal
import socket
import sys
import threading

SLOTS = 256
READ_BYTES = 1 << 20


# --- models --------------------------------------------------------------------------------------

class Graphs:
    """A PyTorch module as CUDA graphs of several batches, with pinned memory for requests."""

    def __init__(self, name, batch):
        from gpu_tcp_serve import captures, load

        self.torch, module, row = load(name)
        self.batch = int(batch)
        self.captured = captures(self.torch, module, row, self.batch)
        self.requests = self.torch.empty(SLOTS, *row).pin_memory()
        self.replies = self.torch.empty_like(self.captured[-1].outputs, device="cpu").pin_memory()
        self.rows = self.replies.view(self.batch, -1).numpy()
        self.stream = self.torch.cuda.Stream()
        flat = self.requests.view(SLOTS, -1).numpy().view("uint8")
        self.places = [memoryview(flat[i]) for i in range(SLOTS)]
        for _ in range(3):
            for captured in self.captured:
                self.run(list(range(captured.inputs.shape[0])))

    def copy_requests(self, slots, inputs):
        """Neighbours in one copy."""
        begin = 0
        for i in range(1, len(slots) + 1):
            if i == len(slots) or slots[i] != slots[i - 1] + 1:
                inputs[begin:i].copy_(self.requests[slots[begin]:slots[i - 1] + 1], non_blocking=True)
                begin = i

    def run(self, slots):
        n = len(slots)
        captured = next(c for c in self.captured if c.inputs.shape[0] >= n)
        with self.torch.cuda.stream(self.stream):
            self.copy_requests(slots, captured.inputs)
            captured.graph.replay()
            self.replies[:n].copy_(captured.outputs[:n], non_blocking=True)
        self.stream.synchronize()
        return [self.rows[i].tobytes() for i in range(n)]


class Sizes:
    """What tcp_sizes.c does."""

    def __init__(self, sizes):
        request, self.reply = map(int, sizes.split(":"))
        self.batch = 8
        self.places = [memoryview(bytearray(request)) for _ in range(SLOTS)]

    def run(self, slots):
        return [(bytes(self.places[s]) * -(-self.reply // len(self.places[s])))[:self.reply] for s in slots]


# --- batches -------------------------------------------------------------------------------------

class Batcher(threading.Thread):
    """Runs the model with what waits, and gives its replies to the event loop."""

    def __init__(self, model, loop):
        super().__init__(daemon=True)
        self.model, self.loop = model, loop
        self.waiting = queue.SimpleQueue()

    def take(self):
        got = [self.waiting.get()]
        while len(got) < self.model.batch:
            try:
                got.append(self.waiting.get_nowait())
            except queue.Empty:
                break
        return sorted(got, key=lambda one: one[0])

    def run(self):
        while True:
            got = self.take()
            try:
                replies = self.model.run([slot for slot, _ in got])
                self.loop.call_soon_threadsafe(self.deliver, got, replies)
            except Exception as error:  # the requests must hear of it
                self.loop.call_soon_threadsafe(self.fail, got, error)

    @staticmethod
    def deliver(got, replies):
        for (_, future), reply in zip(got, replies):
            if not future.done():
                future.set_result(reply)

    @staticmethod
    def fail(got, error):
        for _, future in got:
            if not future.done():
                future.set_exception(error)


# --- the server ----------------------------------------------------------------------------------

class Handler:
    def __init__(self, web, model, loop):
        self.web, self.model, self.loop = web, model, loop
        self.batcher = Batcher(model, loop)
        self.batcher.start()
        # The lowest first: neighbours are copied at once.
        self.free = list(range(SLOTS - 1, -1, -1))
        self.more = asyncio.Semaphore(SLOTS)

    async def receive(self, request, place):
        at = 0
        async for chunk in request.content.iter_any():
            end = at + len(chunk)
            if end > len(place):
                raise self.web.HTTPRequestEntityTooLarge(len(place), end)
            place[at:end] = chunk
            at = end
        if at != len(place):
            raise self.web.HTTPBadRequest(text=f"a request has {len(place)} bytes")

    async def answer(self, request):
        async with self.more:
            slot = self.free.pop()
            try:
                await self.receive(request, self.model.places[slot])
                future = self.loop.create_future()
                self.batcher.waiting.put((slot, future))
                return self.web.Response(body=await future)
            finally:
                self.free.append(slot)


async def serve(address, port, model):
    from aiohttp import web

    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    handler = Handler(web, model, loop)
    server = web.Server(handler.answer, access_log=None, read_bufsize=READ_BYTES)
    listening = socket.create_server((address, int(port)), backlog=1024, reuse_port=True)
    await loop.create_server(server, sock=listening)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    gc.collect()
    gc.freeze()
    print("ready", flush=True)
    await stop.wait()


def main():
    import uvloop

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    address, port, name, size = sys.argv[1:]
    model = Sizes(size) if name == "echo" else Graphs(name, size)
    uvloop.install()
    asyncio.run(serve(address, port, model))
    # Threads of PyTorch and ours need no farewell.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
