#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions per packet of the load balancer's walk, against the budget in walk_budget.json.

    walk_budget.py BENCH               count and compare; exit status 1 if a budget is exceeded
    walk_budget.py BENCH --update      write what was counted into walk_budget.json
    walk_budget.py BENCH --functions   print the functions of each scenario, dearest first
    walk_budget.py BENCH --json FILE   also write the counts to FILE

BENCH is bench-walk-budget. README.md says what is counted."""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUDGET = os.path.join(os.path.dirname(os.path.abspath(__file__)), "walk_budget.json")
# A stage may exceed its budget by the larger of these: the compiler may move instructions between two
# stages although neither changed. The whole walk has less room.
STAGE_TOLERANCE = 0.02
STAGE_LEAST = 2.0  # instructions per packet
TOTAL_TOLERANCE = 0.005
# A budget that exceeds the count by more than this would hide the next growth.
SLACK = 0.03
# Stages with fewer instructions per packet have no row of their own.
SMALL = 1.0
# Functions of lb/walk/loop.c that are not a stage, but call them.
LOOP = {"lb_poll", "loop_walk", "loop_requests", "loop_replies", "loop_charge", "loop_housekeeping",
        "loop_segments", "loop_stream_requests", "loop_resume_connections"}
SKIPPED = 77


def plain(name, object_name):
    """The name of a function without what the compiler appends to clones; of a stripped library, the
    library's."""
    if name.startswith("0x"):
        return re.sub(r"^lib(rte_)?|\.so.*", "", os.path.basename(object_name))
    return name.split(".")[0]


class Profile:
    """One dump of callgrind: instructions by function, alone and with what it calls from the loop."""

    def __init__(self, path):
        self.title = ""
        self.self_cost = collections.Counter()
        self.called = collections.Counter()  # by functions of the loop, inclusive
        self.names = {}
        self.read(path)

    def name(self, kind, text):
        """Names are written once: "(number) name", and later "(number)"."""
        number, _, rest = text.partition(" ")
        if rest:
            self.names[kind, number] = rest
        return self.names[kind, number]

    def read(self, path):
        object_name = function = callee = callee_object = None
        inclusive = False
        with open(path) as lines:
            for line in lines:
                line = line.rstrip("\n")
                key, equals, value = line.partition("=")
                if line.startswith("desc: Trigger: Client Request: "):
                    self.title = line.removeprefix("desc: Trigger: Client Request: ")
                elif equals and key == "ob":
                    object_name = callee_object = self.name("ob", value)
                elif equals and key == "fn":
                    function = plain(self.name("fn", value), object_name)
                    callee_object = object_name
                elif equals and key == "cob":
                    callee_object = self.name("ob", value)
                elif equals and key == "cfn":
                    callee = plain(self.name("fn", value), callee_object)
                    callee_object = object_name
                elif equals and key == "calls":
                    inclusive = True
                elif re.match(r"[0-9+*-]", line):
                    fields = line.split()
                    cost = int(fields[1]) if len(fields) > 1 else 0
                    if not inclusive:
                        self.self_cost[function] += cost
                    elif function in LOOP and callee not in LOOP:
                        self.called[callee] += cost
                    inclusive = False

    def stages(self):
        stages = collections.Counter(self.called)
        stages["loop"] = sum(self.self_cost[f] for f in LOOP)
        return stages


def run(bench, protocol):
    """The profiles of a protocol's scenarios. Each has a process, and so a load balancer, of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "walk")
        command = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no",
                   "--toggle-collect=lb_poll", "--callgrind-out-file=" + out, bench, protocol]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ran.returncode != 0:
            sys.exit(f"{' '.join(command)} ended with status {ran.returncode}:\n{ran.stdout}")
        # Dumps are numbered; the file without a number is what came after the last one.
        return [Profile(f"{out}.{n}") for n in range(1, len(os.listdir(folder)))]


def count(bench):
    """{scenario: (packets, stages, functions)}, both per packet."""
    packets = collections.Counter()
    stages = collections.defaultdict(collections.Counter)
    functions = collections.defaultdict(collections.Counter)
    for p in run(bench, "udp") + run(bench, "tcp"):
        scenario, n = p.title.split()
        packets[scenario] += int(n)
        stages[scenario].update(p.stages())
        functions[scenario].update(p.self_cost)
        missing = sum(p.self_cost.values()) - sum(p.stages().values())
        if missing != 0:
            sys.exit(f"{scenario}: stages and whole differ by {missing} instructions: LOOP of "
                     "walk_budget.py does not name the functions of lb/walk/loop.c")
    if not packets:
        sys.exit("callgrind counted nothing")
    return {s: {"stages": {k: v / packets[s] for k, v in stages[s].items() if v > 0},
                "functions": {k: v / packets[s] for k, v in functions[s].items() if v > 0}}
            for s in packets}


def table(counted):
    """{scenario: {stage: instructions}}, as the file has it: rounded, the whole first."""
    return {s: {"total": round(sum(c["stages"].values()), 1),
                **{k: round(v, 1) for k, v in sorted(c["stages"].items()) if v >= SMALL}}
            for s, c in counted.items()}


def over(stage, now, budget):
    if stage == "total":
        return now > budget * (1 + TOTAL_TOLERANCE)
    return now > budget + max(budget * STAGE_TOLERANCE, STAGE_LEAST)


def compare(counted, budgets):
    """Sentences about what is not within its budget."""
    faults = []
    for scenario in sorted(set(counted) | set(budgets)):
        if scenario not in counted or scenario not in budgets:
            faults.append(f"{scenario}: only in " + ("what was counted" if scenario in counted
                                                      else "walk_budget.json"))
            continue
        now, budget = counted[scenario], budgets[scenario]
        for stage in sorted(set(now) | set(budget), key=lambda s: (s != "total", s)):
            is_now, was = now.get(stage, 0.0), budget.get(stage, 0.0)
            if over(stage, is_now, was):
                faults.append(f"{scenario}: {stage} takes {is_now:.1f} instructions per packet, "
                              f"{is_now - was:+.1f} over its budget of {was:.1f}")
        if now["total"] < budget["total"] * (1 - SLACK):
            faults.append(f"{scenario}: total takes {now['total']:.1f}, {budget['total'] - now['total']:.1f} "
                          f"less than its budget of {budget['total']:.1f}: lower it, or growth goes unseen")
    return faults


def print_table(now, budgets):
    print(f"{'instructions per packet':<40} {'now':>9} {'budget':>9}")
    for scenario, stages in now.items():
        for stage, value in stages.items():
            budget = budgets.get(scenario, {}).get(stage)
            print(f"{scenario if stage == 'total' else '  ' + stage:<40} {value:9.1f} "
                  + (f"{budget:9.1f}" if budget is not None else f"{'-':>9}"))


def print_functions(counted):
    for scenario, c in counted.items():
        print(f"\n{scenario}: each function without those that it calls")
        for function, value in sorted(c["functions"].items(), key=lambda f: -f[1])[:40]:
            print(f"  {value:9.1f} {function}")


def read_budgets():
    try:
        with open(BUDGET) as f:
            return json.load(f)
    except FileNotFoundError:
        return {}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--functions", action="store_true")
    parser.add_argument("--json")
    o = parser.parse_args()

    if shutil.which("valgrind") is None:
        print("valgrind is not installed")
        return SKIPPED
    toolchain = subprocess.run([o.bench, "--toolchain"], check=True, stdout=subprocess.PIPE,
                               text=True).stdout.strip()
    counted = count(o.bench)
    now = table(counted)
    budgets = read_budgets()
    print(toolchain)
    print_table(now, budgets.get(toolchain, {}))
    if o.functions:
        print_functions(counted)
    if o.json:
        with open(o.json, "w") as f:
            json.dump(counted, f, indent="\t", sort_keys=True)
    if o.update:
        budgets[toolchain] = now
        with open(BUDGET, "w") as f:
            json.dump(budgets, f, indent="\t", sort_keys=True)
            f.write("\n")
        return 0
    if toolchain not in budgets:
        print(f"walk_budget.json has no column for {toolchain}, only for {', '.join(sorted(budgets))}")
        return SKIPPED
    faults = compare(now, budgets[toolchain])
    for fault in faults:
        print(fault)
    if faults:
        print("What must be dearer gets its new budget by `tests/bench/run.sh walk-budget --update`; commit "
              "walk_budget.json and say in the message what the instructions buy.\n"
              "`tests/bench/run.sh walk-budget --functions` lists functions, to compare with the parent commit.")
        return 1
    print(f"all {len(now)} scenarios within their budgets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
