#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""figures.py puts figures of several runs into one file, and does not mix commits."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench/gpu/figures.py")


class Test(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.write("one", {"rps": 100.0}, {"rps": [90.0, 125.0]})
        self.write("two", {"rps": 195.0}, {"rps": [180.0, 200.0]})
        self.write("gpu", {"turn_us": 7.0, "over_strongest_1kib": 0.8}, {"turn_us": [6.0, 8.0]})

    def path(self, name):
        return os.path.join(self.folder.name, name + ".json")

    def write(self, name, metrics, spread, commit="abc"):
        with open(self.path(name), "w") as file:
            json.dump({"commit": commit, "machine": "m", "runs": 5, "metrics": metrics, "spread": spread}, file)

    def run_it(self, *arguments):
        done = subprocess.run([sys.executable, PROGRAM, self.path("out"), *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def figures(self):
        with open(self.path("out")) as file:
            return json.load(file)

    def test_ratio_and_its_spread(self):
        status, said = self.run_it(self.path("gpu"), "--ratio",
                                   f"two_gpus_over_one=rps:{self.path('two')}:{self.path('one')}")
        self.assertEqual(status, 0, said)
        out = self.figures()
        self.assertEqual(out["metrics"]["two_gpus_over_one"], 1.95)
        self.assertEqual(out["spread"]["two_gpus_over_one"], [180 / 125, 200 / 90])
        self.assertEqual(out["metrics"]["turn_us"], 7)
        self.assertEqual(out["spread"]["over_strongest_1kib"], [0.8, 0.8])
        self.assertEqual(out["commit"], "abc")
        self.assertEqual(out["from"]["two.json"], {"machine": "m", "runs": 5, "pages": None})

    def test_another_name(self):
        status, said = self.run_it(self.path("gpu"), "--as", f"e2e_rps_hogged=rps:{self.path('one')}")
        self.assertEqual(status, 0, said)
        self.assertEqual(self.figures()["metrics"]["e2e_rps_hogged"], 100)

    def test_what_is_missing_is_named(self):
        status, said = self.run_it(self.path("gpu"), "--want", "over_strongest_*", "--want", "joules", "--want", "turn_us")
        self.assertEqual(status, 1)
        self.assertIn("missing: joules\n", said)
        self.assertEqual(said.count("missing"), 1)

    def test_commits_and_names_are_not_mixed(self):
        status, said = self.run_it(self.path("one"), self.path("two"))
        self.assertEqual((status, "two.json has rps, and so has another file" in said), (1, True), said)
        self.write("old", {"joules": 1.0}, {}, commit="older")
        status, said = self.run_it(self.path("gpu"), self.path("old"))
        self.assertEqual((status, "is of older, and others are of abc" in said), (1, True), said)


unittest.main()
