# SPDX-License-Identifier: BSD-3-Clause
"""Serve a PyTorch module from the GPU that it is on. Python takes no part in a request, and with an
RDMA device the CPU does not either.

    import torch, doorbell_agent
    doorbell_agent.serve(module, torch.rand(1, 256, device="cuda"), model="classifier",
                         lb="10.201.0.254:4790", device="mlx5_0", engine="verbs",
                         address="10.201.0.11/24")

A request is the bytes of one row of the module's input, a reply those of one row of its output, as
they lie in memory: at most a datagram of a UDP service, and up to 64 MiB of a TCP service. The module
is captured as a CUDA graph; what it does must be the same for every batch. The agent is
libdoorbell-agent.so, loaded into this process.
"""
import contextlib
import ctypes
import os
import re
import signal
import sys
import threading

BATCH_MAX = 128  # of the loop on a GPU
BUCKETS_MAX = 7  # sizes of batches below the largest
WARM_UPS = 3
MB = 1 << 20
TENSORS_MAX, RANK_MAX, NAME_MAX = 16, 8, 63  # of a description
# PyTorch's types of numbers that have a name in KServe's protocol.
DATATYPES = {"bool": "BOOL", "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32",
             "uint64": "UINT64", "int8": "INT8", "int16": "INT16", "int32": "INT32",
             "int64": "INT64", "float16": "FP16", "float32": "FP32", "float64": "FP64",
             "bfloat16": "BF16"}
LIBRARY = "libdoorbell-agent.so"
LIBRARY_FOLDER = "@libdir@"  # meson writes here where it installs the library


class Error(RuntimeError):
    """The module cannot be served, or the agent ended with an error."""


class TensorSpec(ctypes.Structure):
    """struct agent_model_tensor."""
    _fields_ = [("name", ctypes.c_char_p), ("datatype", ctypes.c_char_p), ("rank", ctypes.c_uint32),
                ("shape", ctypes.c_int64 * RANK_MAX)]


class Description(ctypes.Structure):
    """struct agent_model_description."""
    _fields_ = [("version", ctypes.c_char_p), ("platform", ctypes.c_char_p),
                ("batch", ctypes.c_uint32), ("n_inputs", ctypes.c_uint32),
                ("n_outputs", ctypes.c_uint32), ("input", TensorSpec * TENSORS_MAX),
                ("output", TensorSpec * TENSORS_MAX)]


class Smaller(ctypes.Structure):
    """struct doorbell_smaller."""
    _fields_ = [("graph", ctypes.c_void_p), ("output", ctypes.c_void_p),
                ("batch", ctypes.c_uint32)]


class Graph(ctypes.Structure):
    """struct doorbell_graph."""
    _fields_ = [("graph", ctypes.c_void_p), ("input", ctypes.c_void_p),
                ("output", ctypes.c_void_p), ("request_bytes", ctypes.c_uint32),
                ("reply_bytes", ctypes.c_uint32), ("batch", ctypes.c_uint32),
                ("gpu", ctypes.c_int32), ("description", ctypes.POINTER(Description)),
                ("smaller", ctypes.POINTER(Smaller)), ("n_smaller", ctypes.c_uint32),
                ("sample", ctypes.c_char_p)]


class Captured:
    """A module as a CUDA graph, with the tensors that keep the graph's memory alive. <smaller>: the
    same for smaller batches, in the order of their sizes, each of which is a (graph, outputs)."""

    def __init__(self, graph, inputs, outputs, smaller=(), memory=0, sample=None):
        self.graph, self.inputs, self.outputs, self.smaller = graph, inputs, outputs, smaller
        self.sample = sample  # bytes of a request that the module can answer
        self.memory = memory  # bytes of the GPU that capturing has taken

    def sizes(self):
        """A line that says which batches there are graphs for, and what they have taken."""
        sizes = [outputs.shape[0] for _, outputs in self.smaller] + [self.outputs.shape[0]]
        return (f"graphs for batches of {', '.join(map(str, sizes))}; memory of the GPU: "
                f"{self.memory / 2**20:.0f} MiB")

    def describe(self, description=None):
        """As the agent takes it; what it points to stays as long as the result does."""
        smaller = (Smaller * len(self.smaller))(
            *[Smaller(graph.raw_cuda_graph(), outputs.data_ptr(), outputs.shape[0])
              for graph, outputs in self.smaller])
        return Graph(self.graph.raw_cuda_graph(), self.inputs.data_ptr(), self.outputs.data_ptr(),
                     row_bytes(self.inputs), row_bytes(self.outputs), self.inputs.shape[0],
                     self.inputs.device.index,
                     None if description is None else ctypes.pointer(description),
                     smaller, len(smaller), self.sample)


def row_bytes(tensor):
    return tensor.numel() // tensor.shape[0] * tensor.element_size()


# --- checks -------------------------------------------------------------------------------------

def check_example(example, max_batch):
    if not is_tensor(example) or len(example.shape) == 0 or example.shape[0] == 0:
        raise Error("the example must be one tensor, whose first dimension is the batch")
    if not example.is_cuda:
        raise Error("the example is on the CPU; requests arrive on the GPU: make it there "
                    "(device=\"cuda\")")
    if not 1 <= max_batch <= BATCH_MAX:
        raise Error(f"max_batch={max_batch} is not from 1 to {BATCH_MAX}")


def check_module(module, device):
    """<module> may also be a function, which has no parameters to check."""
    if getattr(module, "training", False):
        raise Error("the module is in training mode; call its eval() first")
    for kind in ("parameters", "buffers"):
        for tensor in getattr(module, kind, list)():
            if tensor.device != device:
                raise Error(f"the module's {kind} are on {tensor.device} and the example is on "
                            f"{device}; nothing is moved here: call module.to(\"{device}\") first")


def check_output(output, rows, device):
    if isinstance(output, (tuple, list, dict)):
        raise Error(f"the module returns a {type(output).__name__} of {len(output)}; a reply is "
                    "one tensor: wrap the module in one that returns one, or torch.cat() them")
    if not is_tensor(output):
        raise Error(f"the module returns {type(output).__name__}, not a tensor")
    if output.device != device:
        raise Error(f"the module's output is on {output.device}, its input on {device}")
    if len(output.shape) == 0 or output.shape[0] != rows:
        raise Error(f"the module makes an output of shape {tuple(output.shape)} of {rows} "
                    "requests; its first dimension must be the batch, too")
    if not output.is_contiguous():
        raise Error("the module's output is not contiguous in memory, and a reply is its bytes: "
                    "end the module with .contiguous()")
    if output.numel() == 0:
        raise Error("the module's output is empty")


def check_buckets(buckets, max_batch):
    """The sizes of batches below max_batch, in their order. None: 1, 2, 4 ..."""
    if buckets is None:
        return [1 << i for i in range(max_batch.bit_length()) if 1 << i < max_batch]
    sizes = sorted(set(buckets) - {max_batch})
    if any(not isinstance(rows, int) or not 1 <= rows < max_batch for rows in sizes):
        raise Error(f"buckets={list(buckets)}: each is a size of batch from 1 to max_batch, "
                    f"{max_batch}")
    if len(sizes) > BUCKETS_MAX:
        raise Error(f"buckets={list(buckets)}: give {BUCKETS_MAX} sizes below max_batch at most")
    return sizes


def is_tensor(thing):
    return all(hasattr(thing, a) for a in ("data_ptr", "is_contiguous", "shape", "device"))


# --- the description ----------------------------------------------------------------------------

def datatype(tensor):
    """KServe's name of its type, or None: there is none for complex numbers and FP8."""
    return DATATYPES.get(str(tensor.dtype).rpartition(".")[2])


def check_names(input_name, output_name, version):
    """What the agent would refuse, before a module has been captured for it."""
    for what, text in (("input_name", input_name), ("output_name", output_name)):
        if not 1 <= len(text) <= NAME_MAX or not all("!" <= c <= "~" for c in text):
            raise Error(f"{what}={text!r}: use 1 to {NAME_MAX} printable ASCII characters without "
                        "spaces")
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,31}", version):
        raise Error(f"version={version!r}: use 1 to 31 letters, digits and ._-")


def tensor_spec(name, tensor):
    shape = (-1, *tensor.shape[1:])
    return TensorSpec(name.encode(), datatype(tensor).encode(), len(shape),
                      (ctypes.c_int64 * RANK_MAX)(*shape))


def description(inputs, outputs, input_name="input0", output_name="output0", version="1"):
    """What clients are told of a module: a batch of rows like those of <inputs> and <outputs>. None
    where KServe's protocol has no word for their type, or too few dimensions."""
    check_names(input_name, output_name, version)
    if any(datatype(tensor) is None or len(tensor.shape) > RANK_MAX for tensor in (inputs, outputs)):
        return None
    d = Description(version.encode(), b"pytorch", batch=1, n_inputs=1, n_outputs=1)
    d.input[0] = tensor_spec(input_name, inputs)
    d.output[0] = tensor_spec(output_name, outputs)
    return d


# --- the graph ----------------------------------------------------------------------------------

def capture_batch(module, inputs, stream, pool=None):
    """(graph, outputs) of <module> for the batch <inputs>."""
    import torch

    with torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            check_output(module(inputs), inputs.shape[0], inputs.device)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    try:
        with torch.cuda.graph(graph, pool=pool, stream=stream):
            outputs = module(inputs)
    except RuntimeError as error:
        raise Error(f"the module cannot be captured as a CUDA graph: {error}") from error
    check_output(outputs, inputs.shape[0], inputs.device)
    torch.cuda.synchronize()
    return graph, outputs


def capture(module, example, max_batch=1, buckets=()):
    """<module> for batches of <max_batch> rows like <example>'s, as a CUDA graph; and for the smaller
    batches that <buckets> names, which share its input and, as one runs at a time, its memory.

    Running the module here loads all its kernels: loading one later would wait for the loop's
    kernel, which never ends.
    """
    import torch

    check_example(example, max_batch)
    check_module(module, example.device)
    sizes = check_buckets(buckets, max_batch)
    with torch.cuda.device(example.device), torch.no_grad():
        before = torch.cuda.memory_reserved()
        repeats = -(-max_batch // example.shape[0])
        inputs = torch.cat([example] * repeats)[:max_batch].contiguous()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        graph, outputs = capture_batch(module, inputs, stream)
        # The largest has made the pool as large as it gets.
        smaller = [capture_batch(module, inputs[:rows], stream, graph.pool())
                   for rows in reversed(sizes)]
        memory = torch.cuda.memory_reserved() - before
        sample = bytes(inputs[0].contiguous().view(-1).view(torch.uint8).cpu().numpy())
    return Captured(graph, inputs, outputs, smaller[::-1], memory, sample)


def reserved(example):
    """Bytes that PyTorch holds on the GPU of <example>, those that it may reuse included."""
    import torch

    return torch.cuda.memory_reserved(example.device)


# --- the agent ----------------------------------------------------------------------------------

def command_line(**options):
    """batch_timeout_us=50 -> --batch-timeout-us 50; True: an option without a value."""
    words = ["doorbell-agent"]
    for name, value in options.items():
        if name == "gpu":
            raise TypeError("gpu: the model runs on the GPU that the module and the example are on")
        if name == "model_args":
            raise TypeError("model_args: they are for plug-ins; the model is the module")
        if value is None or value is False:
            continue
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(str(value))
    return words


def load_library(path=None):
    """<path>, or $DOORBELL_LIBRARY, or the library beside this file, where it was installed, or
    the system's."""
    path = path or os.environ.get("DOORBELL_LIBRARY")
    if path is None:
        folders = (os.path.dirname(os.path.abspath(__file__)), LIBRARY_FOLDER)
        files = [os.path.join(folder, LIBRARY) for folder in folders]
        path = next(filter(os.path.exists, files), LIBRARY)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise Error(f"{error}; DOORBELL_LIBRARY says where {LIBRARY} is") from error
    library.doorbell_agent_run.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Graph)]
    library.doorbell_agent_run.restype = ctypes.c_int
    library.doorbell_agent_stop.argtypes = []
    library.doorbell_agent_stop.restype = None
    return library


def run(library, words, graph):
    """Call doorbell_agent_run(). ctypes releases Python's global lock meanwhile."""
    texts = [ctypes.create_string_buffer(os.fsencode(word)) for word in words]
    argv = (ctypes.c_void_p * (len(texts) + 1))(*map(ctypes.addressof, texts), None)
    status = library.doorbell_agent_run(len(texts), argv, graph)
    if status != 0:
        raise Error(f"the agent ended with status {status}; its reason is on stderr")


@contextlib.contextmanager
def signals_stop(library):
    """Ctrl-C and SIGTERM drain; the second time they end at once. They come to the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(n, lambda *_: library.doorbell_agent_stop()) for n in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before):
            signal.signal(number, handler)


def run_until_stopped(library, words, graph):
    """The agent on a thread, so that this one can take signals."""
    ended, errors = threading.Event(), []

    def agent():
        try:
            run(library, words, graph)
        except BaseException as error:  # raised again in the waiting thread
            errors.append(error)
        finally:
            ended.set()

    with signals_stop(library):
        threading.Thread(target=agent, name="doorbell-agent", daemon=True).start()
        ended.wait()
    if errors:
        raise errors[0]


def budget_left(budget_mb, taken_bytes, gpu):
    """What a budget of <budget_mb> leaves to the agent, in MB, once PyTorch has taken its part."""
    if isinstance(budget_mb, bool) or not isinstance(budget_mb, int) or budget_mb < 1:
        raise Error(f"gpu_memory_mb={budget_mb!r} is no number of MB; give a whole one, from 1")
    taken_mb = -(-taken_bytes // MB)
    if taken_mb >= budget_mb:
        raise Error(f"the module has taken {taken_mb} MB of GPU {gpu}, which leaves nothing of "
                    f"gpu_memory_mb={budget_mb}; give more, a smaller max_batch, or another module")
    return budget_mb - taken_mb


def serve(module, example, *, lb, device, address, name=None, model=None, max_batch=1,
          buckets=None, input_name="input0", output_name="output0", version="1", library=None,
          gpu_memory_mb=None, **options):
    """Serve <module> until Ctrl-C or SIGTERM, or until an operator drains the worker.

    <example> is an input as the module takes it: a batch, on the GPU; its shape behind the first
    dimension and its type are every request's. <model> is what services call it, by default the
    module's class in lower case. <input_name>, <output_name> and <version> describe it to clients,
    with the types and shapes of its tensors. <buckets>: sizes of batches below max_batch that get
    a graph of their own, by default 1, 2, 4 ...; the smallest that has room for the requests in hand
    runs. Libraries may round otherwise in batches of other sizes: buckets=() keeps one size. <lb>, <device>, <address>, <name> and all other options
    are those of doorbell-agent: batch_timeout_us=50, engine="verbs", no_hugepages=True. Once in a
    process. <gpu_memory_mb>: more of the GPU's memory than that neither PyTorch, with this module, nor
    the agent may have taken.
    """
    model = model or getattr(module, "__name__", type(module).__name__).lower()
    words = command_line(lb=lb, device=device, address=address, name=name, model=model,
                         max_batch=max_batch, **options)
    check_names(input_name, output_name, version)
    check_buckets(buckets, max_batch)
    if gpu_memory_mb is not None:
        budget_left(gpu_memory_mb, 0, None)
    agent = load_library(library)
    captured = capture(module, example, max_batch, buckets)
    print(f"doorbell_agent: {captured.sizes()}", file=sys.stderr, flush=True)
    if gpu_memory_mb is not None:
        words += command_line(gpu_memory_mb=budget_left(gpu_memory_mb, reserved(example), example.device.index))[1:]
    graph = captured.describe(description(captured.inputs, captured.outputs, input_name,
                                          output_name, version))
    run_until_stopped(agent, words, ctypes.byref(graph))
