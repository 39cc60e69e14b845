#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Check a text against the OpenMetrics text format, version 1.0.0, and Prometheus' conventions of names.

usage: openmetrics_lint.py FILE     ("-": standard input)
       openmetrics_lint.py --self-test

Where the reference parser (python3-prometheus-client) is installed, it has to agree.
"""
import math
import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{LABEL}(?:,(?!\}})|(?=\}})))*)\}})? (\S+)$")
SUFFIXES = {"counter": ["_total"], "gauge": [""], "info": ["_info"], "stateset": [""],
            "histogram": ["_bucket", "_sum", "_count"]}
# Units that a name may not hold: all but the base ones.
FOREIGN = re.compile(r"_(milliseconds|microseconds|ms|us|kilobytes|megabytes|bits|percent|minutes)(_|$)")


class Lint:
    def __init__(self):
        self.faults, self.families, self.family = [], {}, None
        self.seen, self.histogram = set(), None

    def fault(self, number, text):
        self.faults.append(f"line {number}: {text}")

    def meta(self, number, line):
        match = re.fullmatch(rf"# (TYPE|UNIT|HELP) ({NAME}) (.+)", line)
        if not match:
            self.fault(number, f"neither TYPE, UNIT nor HELP of a family: {line}")
            return
        word, name, value = match.groups()
        if not self.family or self.family["name"] != name:
            self.close(number)
            if name in self.families:
                self.fault(number, f"{name} comes twice: a family stays together")
            self.family = self.families[name] = {"name": name, "samples": 0}
        if word in self.family or self.family["samples"]:
            self.fault(number, f"{word} of {name} is out of place")
        self.family[word] = value
        if word == "TYPE" and value not in SUFFIXES:
            self.fault(number, f"{name}: type {value}")
        if word == "TYPE" and name.endswith(("_total", "_info", "_bucket", "_sum", "_count")):
            self.fault(number, f"{name}: ends like a sample of a family")
        if word == "UNIT" and not name.endswith("_" + value):
            self.fault(number, f"{name}: does not end with its unit {value}")

    def close(self, number):
        family = self.family
        self.close_histogram(number)
        if not family:
            return
        for word in ("TYPE", "HELP"):
            if word not in family:
                self.fault(number, f"{family['name']}: no {word}")
        for unit in ("seconds", "bytes", "ratio"):
            if family["name"].endswith("_" + unit) and family.get("UNIT") != unit:
                self.fault(number, f"{family['name']}: no UNIT {unit}")
        if FOREIGN.search(family["name"]):
            self.fault(number, f"{family['name']}: not a base unit")

    def sample(self, number, line):
        match = SAMPLE.match(line)
        if not match:
            self.fault(number, f"no sample: {line}")
            return
        name, labels, value = match.group(1), match.group(2) or "", match.group(5)
        labels = re.findall(LABEL, labels)
        keys = [key for key, _ in labels]
        family = self.family
        if not family or name not in [family["name"] + s for s in SUFFIXES.get(family.get("TYPE"), [])]:
            self.fault(number, f"{name}: not a sample of the family above")
            return
        family["samples"] += 1
        if len(set(keys)) != len(keys):
            self.fault(number, f"{name}: a label twice")
        try:
            value = float(value)
        except ValueError:
            self.fault(number, f"{name}: {value} is no number")
            return
        key = (name, tuple(sorted(labels)))
        if key in self.seen:
            self.fault(number, f"{name}: the same labels twice")
        self.seen.add(key)
        kind = family["TYPE"]
        if kind == "counter" and (value < 0 or math.isnan(value)):
            self.fault(number, f"{name}: a counter of {value}")
        if kind == "info" and value != 1:
            self.fault(number, f"{name}: an info of {value}")
        if kind == "stateset" and (value not in (0, 1) or family["name"] not in keys):
            self.fault(number, f"{name}: a state is 0 or 1 and has the family's name as label")
        if kind == "histogram":
            self.bucket(number, name[len(family["name"]):], dict(labels), value)

    def bucket(self, number, suffix, labels, value):
        bound = labels.pop("le", None)
        key = (self.family["name"], tuple(sorted(labels.items())))
        if not self.histogram or self.histogram["key"] != key:
            self.close_histogram(number)
            self.histogram = {"key": key, "bound": -math.inf, "below": 0}
        h = self.histogram
        if suffix == "_bucket":
            if bound is None:
                self.fault(number, "a bucket without le")
                return
            if float(bound) <= h["bound"] or value < h["below"]:
                self.fault(number, f"{key[0]}: bounds or counts go back at le={bound}")
            h["bound"], h["below"] = float(bound), value
        else:
            h[suffix] = value
            if bound is not None:
                self.fault(number, f"{key[0]}{suffix} with le")

    def close_histogram(self, number):
        h, self.histogram = self.histogram, None
        if h and (h["bound"] != math.inf or h.get("_count") != h["below"] or "_sum" not in h):
            self.fault(number, f"{h['key'][0]}: no +Inf, no sum, or a count that is not the last bucket's")

    def run(self, text):
        lines = text.split("\n")
        if lines[-2:] != ["# EOF", ""]:
            self.fault(len(lines), "does not end with '# EOF' and a newline")
        for number, line in enumerate(lines[:-2] if lines[-2:-1] == ["# EOF"] else lines[:-1], 1):
            (self.meta if line.startswith("#") else self.sample)(number, line)
        self.close(len(lines))
        return self.faults


def reference(text):
    """The reference parser's fault, if it is installed and finds one."""
    try:
        from prometheus_client.openmetrics import parser
    except ImportError:
        return []
    try:
        list(parser.text_string_to_metric_families(text))
    except ValueError as error:
        return [f"prometheus_client: {error}"]
    return []


GOOD = """# TYPE a_seconds histogram
# UNIT a_seconds seconds
# HELP a_seconds Text.
a_seconds_bucket{x="1",le="0.1"} 1
a_seconds_bucket{x="1",le="+Inf"} 2
a_seconds_sum{x="1"} 0.5
a_seconds_count{x="1"} 2
# TYPE b counter
# HELP b Text.
b_total{x="q\\"\\\\\\n"} 3
# TYPE s stateset
# HELP s Text.
s{s="on"} 1
s{s="off"} 0
# EOF
"""

# Each replaces a part of the good text and makes a fault of it.
BAD = [("# EOF\n", ""), ("# HELP b Text.\n", ""), ("# TYPE b counter", "# TYPE b_total counter"),
       ("b_total{", "b{"), ("b_total", "c_total"), ("# UNIT a_seconds seconds\n", ""),
       ("# UNIT a_seconds seconds", "# UNIT a_seconds bytes"), ("a_seconds", "a_ms"),
       ('le="0.1"} 1', 'le="0.1"} 3'), ('le="+Inf"', 'le="7"'), ("count{x=\"1\"} 2", "count{x=\"1\"} 1"),
       ("a_seconds_sum{x=\"1\"} 0.5\n", ""), ("} 3\n", "} -3\n"), ("} 3\n", "} three\n"),
       ('x="q\\"', 'x="q"'), ("s{s=\"on\"} 1", "s{s=\"on\"} 2"), ("s{s=\"off\"}", "s{s=\"on\"}"),
       ("b_total{", "b_total {"), ("b_total{x=", "b_total{9=") , ("# TYPE s stateset", "# TYPE s states"),
       ('x="1",le="0.1"', 'x="1",x="1",le="0.1"'), ("# EOF", "b_total 4\n# EOF"),
       ("# TYPE s stateset", "\n# TYPE s stateset")]


def self_test():
    faults = Lint().run(GOOD) + reference(GOOD)
    for old, new in BAD:
        text = GOOD.replace(old, new)
        if text == GOOD or not Lint().run(text):
            faults.append(f"not found: {old!r} as {new!r}")
    return faults


def main():
    if sys.argv[1:] == ["--self-test"]:
        faults = self_test()
    else:
        text = (sys.stdin if sys.argv[1] == "-" else open(sys.argv[1], encoding="utf-8", newline="")).read()
        lint = Lint()
        faults = lint.run(text) + reference(text)
        print(f"{len(lint.families)} families, {len(lint.seen)} samples")
    for fault in faults[:20]:
        print(fault)
    sys.exit(1 if faults else 0)


main()
