#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A PyTorch module asked by kernel TCP clients: through doorbell-lb to doorbell_agent.serve(), to a CPU thread
that launches the same graphs behind the same load balancer, and to aiohttp; the parts in turn, each reply
compared with what eager PyTorch computed.

    python3 gpu_tcp.py --json gpu-tcp.json                     # beside the programs of `gpu_models.sh bundle`
    python3 gpu_tcp.py --parts loop_b8,mediated_b8,http_1_b8 --open 1,64 --rounds 1
    python3 gpu_tcp.py --model sizes:602112:4000 --build build  # no GPU: a plug-in that computes nothing
    python3 gpu_tcp.py --framing kserve --client python --open 1,8,64   # KServe v2 by HTTP, from http.client

Clients are in a network namespace of their own, behind a veth pair; the servers are in another. Wants root,
and for all but `sizes` PyTorch, torchvision and a GPU.
"""
import argparse
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]
import netlink  # noqa: E402

VIP, HOST, CLIENT, PORT, AGENTS_PORT = "10.200.0.100", "10.200.0.99", "10.200.0.2", 8500, 4790
FABRIC_MTU, FABRIC_MTU_XDP = 4200, 3300  # AF_XDP has a page for a packet
ROWS = 64
PAGE_MB = 2
LB_MB, AGENT_MB = 4096, 512
SKIP = 77


class Failed(Exception):
    """A part cannot be measured; others may."""


# --- where the programs are ----------------------------------------------------------------------

def programs(build):
    """Beside this file (a bundle), or in a build directory."""
    if build is None:
        at = {"lb": "doorbell-lb", "cli": "doorbell", "load": "bench-tcp-load", "sizes": "tcp_sizes.so",
              "mediated": "cpu_mediated.so", "library": "libdoorbell-agent.so"}
        build = HERE
    else:
        at = {"lb": "doorbell-lb", "cli": "control/doorbell", "load": "tests/bench/bench-tcp-load",
              "sizes": "tests/bench/tcp_sizes.so", "mediated": "tests/bench/cpu_mediated.so",
              "library": "gpu-agent/libdoorbell-agent.so"}
    return {name: os.path.join(os.path.abspath(build), path) for name, path in at.items()}


def machine():
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True,
                         text=True, check=False).stdout if shutil.which("nvidia-smi") else ""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "")
    return f"{gpu.splitlines()[0] if gpu else 'no GPU'}, {model}, {os.cpu_count()} CPUs, Linux {os.uname().release}"


# --- processes -----------------------------------------------------------------------------------

class Processes:
    """Those that were started, with a log each."""

    def __init__(self, folder):
        self.folder, self.running = folder, []

    def log(self, name):
        return os.path.join(self.folder, name + ".log")

    def start(self, name, words, cpus=None, namespace=None, **environment):
        def prepare():
            if namespace is not None:
                netlink.enter(namespace)
            if cpus:
                os.sched_setaffinity(0, cpus)

        with open(self.log(name), "wb") as log:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                       preexec_fn=prepare, env={**os.environ, **environment})
        self.running.append((name, process))
        return process

    def said(self, name):
        with open(self.log(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_for(self, what, process, seconds, ready):
        end = time.monotonic() + seconds
        while not ready():
            if process.poll() is not None:
                raise Failed(f"{what}: its process ended with {process.returncode}")
            if time.monotonic() > end:
                raise Failed(f"{what}: not after {seconds} s")
            time.sleep(0.05)

    def stop(self):
        """The last started first."""
        for name, process in reversed(self.running):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                print(f"gpu_tcp.py: {name} did not end in 20 s and was killed", file=sys.stderr)
                process.kill()
                process.wait()
        self.running = []

    def print_logs(self):
        for name, _ in self.running:
            print(f"--- {name}\n{self.said(name)[-3000:]}", file=sys.stderr)


# --- CPUs and pages ------------------------------------------------------------------------------

def choose_cpus(clients):
    """(lb's lcore, clients', all others, do they spin). With too few CPUs, all share all."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < clients + 5:
        return cpus[-1:], None, None, False
    # The first is left to interrupts and control threads.
    lb, load = cpus[1:2], cpus[-clients:]
    return lb, load, [c for c in cpus if c not in lb and c not in load], True


def free_pages():
    with open("/proc/meminfo", encoding="ascii") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("HugePages_Free")), 0)


@contextlib.contextmanager
def hugepages(options):
    """Yields whether load balancer and worker can have them. A small machine keeps its memory."""
    path, pages = "/proc/sys/vm/nr_hugepages", (LB_MB + AGENT_MB + 128) // PAGE_MB
    if not choose_cpus(options.clients)[3]:
        yield False
        return
    with open(path, encoding="ascii") as file:
        before = int(file.read())
    try:
        if free_pages() < pages:
            with contextlib.suppress(OSError), open(path, "w", encoding="ascii") as file:
                file.write(str(before - free_pages() + pages))
        yield free_pages() >= pages
    finally:
        with contextlib.suppress(OSError), open(path, "w", encoding="ascii") as file:
            file.write(str(before))


# --- the network ---------------------------------------------------------------------------------

@contextlib.contextmanager
def cubic_allowed():
    """BBR, the default of some kernels, paces by timers; a namespace may use what the first one allows."""
    path = "net/ipv4/tcp_allowed_congestion_control"
    with open("/proc/sys/" + path, encoding="ascii") as file:
        before = file.read().strip()
    netlink.set_sysctl(path, before if "cubic" in before.split() else before + " cubic")
    first = netlink.open_namespace()
    try:
        yield
    finally:
        netlink.enter(first)
        netlink.set_sysctl(path, before)


def set_up_end(name, address):
    for kind in ("all", "default"):
        netlink.set_sysctl(f"net/ipv6/conf/{kind}/disable_ipv6", "1")
    netlink.set_sysctl("net/ipv4/tcp_congestion_control", "cubic")
    netlink.set_up("lo")
    netlink.add_address(name, address + "/24")
    netlink.set_up(name)


class Network:
    """This process is in the servers' namespace from now on; the clients' is open."""

    def __init__(self, mtu):
        self.clients = netlink.make_namespace()
        netlink.make_namespace()
        netlink.add_veth("clients", mtu, "c0", self.clients)
        set_up_end("clients", HOST)
        with netlink.inside(self.clients):
            set_up_end("c0", CLIENT)

    def offload(self, on):
        """A veth has no hardware for the checksums that local senders leave to it, and Doorbell's port takes
        no segments larger than the MTU."""
        netlink.set_offloads("clients", on)
        with netlink.inside(self.clients):
            netlink.set_offloads("c0", on)


# --- the parts -----------------------------------------------------------------------------------

class Bench:
    def __init__(self, options, folder, huge):
        self.o, self.folder, self.huge = options, folder, huge
        self.at = programs(options.build)
        self.lb_cpus, self.load_cpus, self.other_cpus, self.spin = choose_cpus(options.clients)
        self.fabric_mtu = FABRIC_MTU_XDP if options.xdp else FABRIC_MTU
        self.network = Network(options.mtu)
        self.processes = Processes(folder)
        self.worst, self.other_class, self.answered = 0.0, 0, 0
        if options.model.startswith("sizes:"):
            self.model, self.tolerance = "sizes", 0
            self.up, self.down = map(int, options.model.split(":")[1:])
            self.made = {}
            self.make_rows()
        else:
            self.model, self.tolerance = options.model, options.tolerance
            self.made = self.make_reference()
            self.up, self.down = self.made["request_bytes"], self.made["reply_bytes"]

    # --- requests and replies

    def file(self, name):
        return os.path.join(self.folder, name)

    def make_rows(self):
        with open(self.file("requests"), "wb") as requests, open(self.file("replies"), "wb") as replies:
            for _ in range(8):
                row = os.urandom(self.up)
                requests.write(row)
                replies.write((row * -(-self.down // self.up))[:self.down])

    def make_reference(self):
        process = self.start_python("reference", ["reference", self.model, self.folder, str(ROWS)])
        self.processes.wait_for("the answers of eager PyTorch", process, 150, lambda: process.poll() == 0)
        made = json.loads(self.processes.said("reference").splitlines()[-1])
        self.processes.running = []
        print(f"reference: {made}", flush=True)
        return made

    def start_python(self, name, words):
        return self.processes.start(name, [sys.executable, os.path.join(HERE, "gpu_tcp_serve.py"), *words],
                                    self.other_cpus, DOORBELL_LIBRARY=self.at["library"],
                                    CPU_MEDIATED=self.at["mediated"])

    # --- Doorbell

    def cli(self, *words):
        return subprocess.run([self.at["cli"], "--socket", self.file("control.sock"), *words], capture_output=True,
                              text=True, check=False, timeout=10)

    def write_config(self, model):
        memif = f"socket={self.file('memif.sock')},socket-abstract=no,rsize=12"
        # Room for all that the windows of 64 clients allow: what a ring has no room for is lost.
        device = "kernel0,iface=clients" if self.o.xdp else \
            f"net_af_packet0,iface=clients,framecnt={65536 if self.spin else 8192}"
        with open(self.file("lb.yaml"), "w", encoding="ascii") as file:
            file.write(f"""ports:
  - {{name: clients, device: "{device}", roles: [clients], mtu: {self.o.mtu}, rx_descriptors: 4096}}
  - {{name: fabric, device: "net_memif_fabric,role=server,{memif}", roles: [fabric], mtu: {self.fabric_mtu},
     address: 10.201.0.1/24}}
services:
  - {{name: bench, protocol: tcp, framing: {self.o.framing}, address: {VIP}, port: {PORT}, model: {model},
     max_request: {self.up}, max_reply: {self.down}}}
lcores: [{", ".join(map(str, self.lb_cpus))}]
idle: {"poll" if self.spin else "sleep"}
flows: 65536
memory: {{hugepages: {"true" if self.huge else "false"}, mb: {LB_MB if self.spin else 1536}}}
control: {{socket: "{self.file('control.sock')}", state_file: off, agents: "127.0.0.1:{AGENTS_PORT}", allow_plain: true}}
# A busy machine is not a dead worker, nor a dead queue pair.
workers: {{timeout_ms: 10000, suspect_ms: 0}}
fabric: {{ack_timeout: 17}}
tcp: {{connections: 4096, unfinished: 256, client_percent: 100}}
""")

    def start_doorbell(self, model, worker):
        """<model>: what the worker calls it. <worker>: the words of gpu_tcp_serve.py before the options."""
        self.network.offload(False)
        with contextlib.suppress(FileNotFoundError):
            os.remove(self.file("memif.sock"))
        self.write_config(model)
        lb = self.processes.start("lb", [self.at["lb"], "--config", self.file("lb.yaml")], RUNTIME_DIRECTORY=self.folder)
        self.processes.wait_for("the load balancer", lb, 60, lambda: self.cli("version").returncode == 0)
        options = {"lb": f"127.0.0.1:{AGENTS_PORT}", "name": "w1", "address": "10.201.0.11/24", "mtu": self.fabric_mtu,
                   "device": f"net_memif_agent,role=client,socket={self.file('memif.sock')},socket-abstract=no,rsize=12,"
                             f"bsize={self.fabric_mtu + 64}",
                   "payload_mb": max(64, 80 * self.up >> 20), "slots": 256, "memory_mb": AGENT_MB,
                   "no_hugepages": not self.huge, "busy_poll": self.spin}
        agent = self.start_python("worker", [*worker, json.dumps(options)])
        self.processes.wait_for("the worker", agent, 60, lambda: " active " in self.cli("workers", "list").stdout)

    def start_loop(self, batch):
        self.start_doorbell(self.model, ["loop", self.model, batch])

    def start_mediated(self, batch):
        self.start_doorbell("mediated", ["mediated", self.model, batch])

    def start_plugin(self, _batch):
        self.start_doorbell("sizes", ["plugin", self.at["sizes"], f"request={self.up},reply={self.down}"])

    # --- aiohttp

    def start_http(self, count, batch, offloads):
        self.network.offload(offloads)
        cpus = None if self.other_cpus is None else self.lb_cpus + self.other_cpus
        model = ["echo", f"{self.up}:{self.down}"] if self.model == "sizes" else [self.model, batch]
        for i in range(int(count)):
            self.processes.start(f"http{i}", [sys.executable, os.path.join(HERE, "gpu_http_tuned.py"), HOST, str(PORT),
                                              *model], cpus)
        for i, (name, process) in enumerate(list(self.processes.running)):
            self.processes.wait_for(f"aiohttp {i}", process, 120, lambda n=name: "ready" in self.processes.said(n))

    # --- measuring

    def part(self, name):
        """loop_b8, mediated_b8, plugin_b8, http_2_b8: starts it, and says where it listens."""
        kind, *rest = name.split("_")
        batch = rest[-1][1:]
        if kind in ("http", "httpwire"):
            self.start_http(rest[0], batch, kind == "http")
            return f"{HOST}:{PORT}", ["--post", "/"]
        {"loop": self.start_loop, "mediated": self.start_mediated, "plugin": self.start_plugin}[kind](batch)
        name = {"loop": self.model, "mediated": "mediated", "plugin": "sizes"}[kind]
        return f"{VIP}:{PORT}", ["--post", f"/v2/models/{name}/infer"] if self.o.framing == "kserve" else []

    def client_words(self):
        return [self.at["load"]] if self.o.client == "c" else [sys.executable, os.path.join(HERE, "gpu_http_client.py")]

    def ask(self, where, n_open, rate=0):
        """All clients at once. Returns answers per second and the latencies, sorted, in us."""
        clients = min(self.o.clients, n_open)
        words = [*self.client_words(), "--to", where[0], *where[1], "--requests", self.file("requests"), "--replies",
                 self.file("replies"), "--request-bytes", str(self.up), "--reply-bytes", str(self.down), "--tolerance",
                 str(self.tolerance), "--seconds", str(self.o.seconds), "--warm-up", str(self.o.warm_up)]
        if self.o.client == "c":
            words += ["--rate", str(rate / clients)] + ["--spin"] * self.spin
        started = []
        for i in range(clients):
            share = n_open // clients + (i < n_open % clients)
            cpus = None if self.load_cpus is None else [self.load_cpus[i]]
            started.append(self.processes.start(f"load{i}", [*words, "--open", str(share), "--seed", str(i + 1),
                                                             "--latencies", self.file(f"latencies{i}")],
                                                cpus, self.network.clients))
        return self.collect(started)

    def collect(self, started):
        limit = time.monotonic() + self.o.seconds + self.o.warm_up + 30
        try:
            codes = [process.wait(max(0.1, limit - time.monotonic())) for process in started]
        except subprocess.TimeoutExpired as error:
            raise Failed("a client did not end") from error
        if any(codes):
            raise Failed(f"clients ended with {codes}: {self.processes.said('load0')[-500:]}")
        self.processes.running = self.processes.running[:-len(started)]
        said = [json.loads(self.processes.said(f"load{i}").splitlines()[-1]) for i in range(len(started))]
        self.worst = max([self.worst] + [s["worst"] for s in said])
        self.other_class += sum(s["other_class"] for s in said)
        self.answered += sum(s["answered"] for s in said)
        latencies = []
        for i in range(len(started)):
            with open(self.file(f"latencies{i}"), "rb") as file:
                latencies += memoryview(file.read()).cast("I").tolist()
        if not latencies:
            raise Failed("no request was begun and answered within the measured time")
        return sum(s["measured"] for s in said) / self.o.seconds, sorted(latencies)

    def measure(self, name, rate, add):
        """One part, once."""
        began = time.monotonic()
        where = self.part(name)
        started = time.monotonic() - began
        for n_open in self.o.open:
            rps, latencies = self.ask(where, n_open)
            add(f"{name}_open{n_open}", rps, latencies)
        if rate and self.o.client == "c":
            rps, latencies = self.ask(where, max(self.o.open), rate)
            add(f"{name}_at_rate", rps, latencies)
        if self.o.stats and not name.startswith("http"):
            with open(self.o.stats + "." + name, "w", encoding="utf-8") as file:
                file.write(self.cli("--json", "stats", "--all").stdout + self.cli("workers", "list").stdout)
        print(f"{name}: started in {started:.1f} s, measured in {time.monotonic() - began - started:.1f} s", flush=True)


# --- the report ----------------------------------------------------------------------------------

def at_percent(ordered, percent):
    """Nearest rank."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


class Report:
    def __init__(self, options):
        self.o, self.series, self.failures, self.rate, self.rounds = options, {}, [], options.rate, 0

    def add(self, name, rps, latencies):
        figures = {"rps": round(rps, 1), "p50_us": at_percent(latencies, 50), "p99_us": at_percent(latencies, 99)}
        for figure, value in figures.items():
            self.series.setdefault(f"{name}_{figure}", []).append(value)
        print(f"{name}: {figures['rps']} requests/s, p50 {figures['p50_us']} us, p99 {figures['p99_us']} us, "
              f"{len(latencies)} latencies", flush=True)

    def choose_rate(self, parts):
        """Half of what the weakest part can do at most."""
        best = [max(values for name, all_values in self.series.items()
                    for values in all_values if name.startswith(part + "_open") and name.endswith("_rps"))
                for part in parts if any(name.startswith(part + "_open") for name in self.series)]
        self.rate = self.rate or (round(min(best) / 2, 1) if best else 0)

    def write(self, bench):
        result = {"bench": "gpu-tcp", "commit": self.o.commit, "machine": machine(), "runs": self.rounds,
                  "command": " ".join(sys.argv), "reference": bench.made, "model": bench.model,
                  "framing": self.o.framing, "client": self.o.client,
                  "request_bytes": bench.up, "reply_bytes": bench.down, "xdp": self.o.xdp, "mtu": self.o.mtu,
                  "hugepages": bench.huge, "spin": bench.spin, "answered": bench.answered, "worst": bench.worst,
                  "other_class": bench.other_class, "rate": self.rate, "failures": self.failures,
                  "metrics": {name: statistics.median(v) for name, v in self.series.items()},
                  "spread": {name: [min(v), max(v)] for name, v in self.series.items()}}
        with open(self.o.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


def run_rounds(bench, report, options):
    began, longest = time.monotonic(), 0
    for number in range(options.rounds):
        if number and time.monotonic() - began + 1.1 * longest > options.budget:
            print(f"no time for round {number + 1}", flush=True)
            return
        start = time.monotonic()
        for name in options.parts:
            try:
                bench.measure(name, report.rate, report.add)
            except (Failed, OSError, ValueError, subprocess.SubprocessError) as error:
                report.failures.append(f"round {number + 1}: {name}: {error}")
                print(f"FAILED {report.failures[-1]}", file=sys.stderr)
                bench.processes.print_logs()
            finally:
                bench.processes.stop()
            report.write(bench)
        report.choose_rate(options.parts)
        longest, report.rounds = max(longest, time.monotonic() - start), number + 1
        report.write(bench)


def listed(kind):
    return lambda text: [kind(word) for word in text.split(",")]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet50", help="resnet50, superres, squeezenet, mlp, or sizes:REQUEST:REPLY")
    parser.add_argument("--parts", type=listed(str), help="KIND_bBATCH: loop, mediated, plugin, http_PROCESSES and httpwire_PROCESSES (without offloads, so that the frames are Doorbell's)")
    parser.add_argument("--framing", choices=("length", "kserve"), default="length", help="of Doorbell; the others have HTTP")
    parser.add_argument("--client", choices=("c", "python"), default="c", help="python: http.client, threads; wants HTTP")
    parser.add_argument("--open", type=listed(int), default=[1, 8, 32, 64], help="requests without a reply")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement")
    parser.add_argument("--warm-up", type=float, default=0.5)
    parser.add_argument("--rate", type=float, default=0, help="[half of the weakest part's highest in the first round]")
    parser.add_argument("--clients", type=int, default=4, help="processes")
    parser.add_argument("--xdp", action="store_true", help="clients over AF_XDP, where the build has it, not af_packet")
    parser.add_argument("--mtu", type=int, default=1500, help="of the clients' veth pair; DPDK's af_packet takes no more")
    parser.add_argument("--tolerance", type=float, default=1e-3, help="of a reply's largest value")
    parser.add_argument("--budget", type=float, default=540, help="seconds; no round begins that would take longer")
    parser.add_argument("--build", help="a build directory [the programs are beside this file]")
    parser.add_argument("--json", default="gpu-tcp.json")
    parser.add_argument("--logs", help="a folder for the logs at the end")
    parser.add_argument("--stats", help="prefix of files for the load balancer's counters, one for each part")
    parser.add_argument("--commit")
    options = parser.parse_args()
    if options.client == "python" and options.framing != "kserve":
        parser.error("--client python wants --framing kserve")
    if options.parts is None:
        options.parts = ["plugin_b8", "http_1_b8"] if options.model.startswith("sizes:") else \
            ["loop_b1", "loop_b8", "mediated_b8", "http_1_b8", "http_4_b8", "httpwire_4_b8"]
    if options.commit is None:
        with contextlib.suppress(OSError), open(os.path.join(HERE, "commit"), encoding="ascii") as file:
            options.commit = file.read().strip()
    return options


def main():
    options = parse()
    if os.geteuid() != 0:
        print("skipped: needs root for network namespaces")
        return SKIP
    folder = tempfile.mkdtemp(prefix="doorbell-gpu-tcp.")
    # All that was started is stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        with hugepages(options) as huge, cubic_allowed():
            bench = Bench(options, folder, huge)
            report = Report(options)
            try:
                run_rounds(bench, report, options)
            finally:
                bench.processes.stop()
                report.write(bench)
                if options.logs:
                    os.makedirs(options.logs, exist_ok=True)
                    for name in os.listdir(folder):
                        if name.endswith((".log", ".yaml")):
                            shutil.copy(os.path.join(folder, name), options.logs)
        print(f"answered {bench.answered}, worst {bench.worst:.2e}, other class {bench.other_class}, rate {report.rate}, "
              f"failures {len(report.failures)}")
        return 1 if report.failures else 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
