#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Puts figures of several runs into one file, by name, and says which are missing.

    figures.py INTO FILE... [--ratio NAME=METRIC:OVER:UNDER]... [--as NAME=METRIC:FILE]... [--want NAME]...

FILE, OVER and UNDER are results of the benches (--json). All must be of one commit. A ratio is that of two medians; its
spread goes from the least over the highest to the highest over the least. A name that two files have is an error. With
--want, what is missing then is named, and the exit status is 1. A name that ends in * stands for any end.

    figures.py gpu-h200.json gpu.json measures.json e2e-latency.json \\
        --ratio two_gpus_over_one=e2e_rps_1kib:e2e-2.json:e2e-1.json --want two_gpus_over_one
"""
import argparse
import json
import sys


def read(path):
    with open(path) as file:
        return json.load(file)


def named(text):
    name, _, rest = text.partition("=")
    parts = rest.split(":")
    if not name or not all(parts):
        sys.exit(f"figures: '{text}' is not NAME=METRIC:FILE...")
    return name, parts


def spread(figures, metric):
    return figures.get("spread", {}).get(metric) or [figures["metrics"][metric]] * 2


class Figures:
    def __init__(self):
        self.commit, self.out = None, {"bench": "gpu", "metrics": {}, "spread": {}, "from": {}}

    def take(self, path):
        """The results in <path>, which must be of the same commit as all before."""
        figures = read(path)
        commit = figures.get("commit", "unknown")
        if self.commit not in (None, commit):
            sys.exit(f"figures: {path} is of {commit}, and others are of {self.commit}")
        self.commit = commit
        self.out["from"][path.rsplit("/", 1)[-1]] = {key: figures.get(key) for key in ("machine", "runs", "pages")}
        return figures

    def put(self, name, value, ends, path):
        if name in self.out["metrics"]:
            sys.exit(f"figures: {path} has {name}, and so has another file")
        self.out["metrics"][name], self.out["spread"][name] = value, list(ends)


def arguments():
    parser = argparse.ArgumentParser(prog="figures.py", usage=__doc__)
    parser.add_argument("into")
    parser.add_argument("files", nargs="+")
    for option in ("--ratio", "--as", "--want"):
        parser.add_argument(option, action="append", default=[], dest=option[2:] + "s")
    return parser.parse_args()


def main():
    asked, all_of = arguments(), Figures()
    for path in asked.files:
        figures = all_of.take(path)
        for name, value in figures["metrics"].items():
            all_of.put(name, value, spread(figures, name), path)
    for text in vars(asked)["ass"]:
        name, (metric, path) = named(text)
        figures = all_of.take(path)
        all_of.put(name, figures["metrics"][metric], spread(figures, metric), path)
    for text in asked.ratios:
        name, (metric, *paths) = named(text)
        over, under = (all_of.take(path) for path in paths)
        above, below = spread(over, metric), spread(under, metric)
        all_of.put(name, over["metrics"][metric] / under["metrics"][metric],
                   [above[0] / below[1], above[1] / below[0]], text)
    all_of.out["commit"] = all_of.commit
    missing = [name for name in asked.wants if not any(
        have == name or name.endswith("*") and have.startswith(name[:-1]) for have in all_of.out["metrics"])]
    with open(asked.into, "w") as file:
        json.dump(all_of.out, file, indent=1)
        file.write("\n")
    for name in missing:
        print("missing:", name)
    print(f"{asked.into}: {len(all_of.out['metrics'])} figures of {all_of.commit}")
    return 1 if missing else 0


sys.exit(main())
