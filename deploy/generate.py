#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Fill those parts of the man page and of the completion that doorbell's own tables say.

usage: generate.py [--check] DOORBELL FILE...

A part is what lies between a line that ends in "made by generate.py: NAME" and one that ends in
"end"; `doorbell --make NAME` prints it. With --check, files that would change are an error.
"""
import re
import subprocess
import sys

PART = re.compile(r"(^\S*[ \t]*\S*#? ?made by generate\.py: (\S+)\n)(.*?)(^\S*[ \t]*\S* ?end$)",
                  re.MULTILINE | re.DOTALL)


def main():
    check = sys.argv[1] == "--check"
    program, *files = sys.argv[2 if check else 1:]
    stale = 0

    def fill(match):
        made = subprocess.run([program, "--make", match.group(2)], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        return match.group(1) + made + match.group(4)

    for name in files:
        old = open(name, encoding="utf-8").read()
        new, count = PART.subn(fill, old)
        if count == 0:
            sys.exit(f"{name}: has no part that is made")
        if new == old:
            continue
        stale += 1
        if check:
            print(f"{name}: not what the tables say; run deploy/generate.py {program} {name}")
        else:
            open(name, "w", encoding="utf-8").write(new)
    sys.exit(1 if check and stale else 0)


main()
