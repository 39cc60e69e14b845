#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions of the longest turn of an lcore, of each kind of text that clients send.

    text_turns.py PROGRAM [WORD ...] [--functions]

PROGRAM is walk-text-turns; with words, only kinds whose names have one of them. Exit status 1 if a turn
has more than the limit. --functions prints what the longest turns over the limit consist of."""
import argparse
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

# 50 us of a core that does 5.2 instructions in a ns; README.md says what cores do.
LIMIT = 260000
SKIPPED = 77


def read(path):
    """(kind, instructions) of a dump of callgrind; None for one that says nothing of a turn."""
    kind, total = None, 0
    with open(path) as lines:
        for line in lines:
            if line.startswith("desc: Trigger: Client Request: "):
                kind = line.removeprefix("desc: Trigger: Client Request: ").rstrip("\n")
            elif line.startswith("totals:"):
                total = int(line.split()[1])
    return kind, total


def functions(path, n):
    """The functions of a dump that take most by themselves."""
    costs, names, function = collections.Counter(), {}, None
    called = False
    with open(path) as lines:
        for line in lines:
            m = re.match(r"c?fn=(\(\d+\))(?: (.*))?", line)
            if m:
                if m.group(2):
                    names[m.group(1)] = m.group(2)
                if line.startswith("fn="):
                    function = names[m.group(1)]
            elif line.startswith("calls="):
                called = True
            elif re.match(r"[0-9+*-]", line):
                fields = line.split()
                if not called and len(fields) > 1:
                    costs[function] += int(fields[1])
                called = False
    return costs.most_common(n)


class Longest:
    """The kind whose turns are counted: their number, instructions of the longest one, its dump."""

    def __init__(self, folder, functions_of):
        self.folder = folder
        self.dump = os.path.join(folder, "longest")
        self.functions_of = functions_of
        self.kind, self.turns, self.most, self.sum = None, 0, -1, 0
        self.kinds = self.over = 0

    def take(self, path):
        kind, total = read(path)
        if kind is not None:
            if kind != self.kind:
                self.report()
                self.kind, self.turns, self.most, self.sum = kind, 0, -1, 0
            self.turns += 1
            self.sum += total
            if total > self.most:
                shutil.copyfile(path, self.dump)
                self.most = total
        os.unlink(path)

    def take_all(self, complete):
        """Those that callgrind has written: all but the youngest, unless it has ended."""
        dumps = sorted(glob.glob(os.path.join(self.folder, "turn.*")), key=lambda p: int(p.rsplit(".", 1)[1]))
        for path in dumps if complete else dumps[:-1]:
            self.take(path)
        if complete:
            self.report()

    def report(self):
        if self.kind is None:
            return
        over = self.most > LIMIT
        print(f"{self.kind:<46} {self.most:8} instructions at most, {self.turns} turns, "
              f"{self.sum / 1e6:.1f} million in all{'  OVER' if over else ''}", flush=True)
        self.kinds += 1
        self.over += over
        if self.functions_of and over:
            for name, cost in functions(self.dump, 25):
                print(f"  {cost:8} {name}")


def count(program, words, longest):
    command = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", "--toggle-collect=lb_poll", "--fair-sched=try",
               "--dump-line=no", "--callgrind-out-file=" + os.path.join(longest.folder, "turn"),
               program, "1", *words]
    with open(os.path.join(longest.folder, "log"), "w+") as log:
        ran = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        while ran.returncode is None:
            try:
                ran.wait(0.2)
            except subprocess.TimeoutExpired:
                longest.take_all(False)
        longest.take_all(True)
        if ran.returncode != 0:
            log.seek(0)
            sys.exit(f"{' '.join(command)} ended with status {ran.returncode}:\n{log.read()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--functions", action="store_true")
    o = parser.parse_intermixed_args()
    if shutil.which("valgrind") is None:
        print("valgrind is not installed")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        longest = Longest(folder, o.functions)
        count(o.program, o.words, longest)
    if longest.kinds == 0:
        sys.exit("callgrind counted nothing")
    print(f"{longest.over} of {longest.kinds} kinds have turns of more than {LIMIT} instructions")
    return 1 if longest.over else 0


if __name__ == "__main__":
    sys.exit(main())
