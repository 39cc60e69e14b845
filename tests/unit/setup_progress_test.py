#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""deploy/setup.sh says how far a build is, and nothing else, also when the build ends while it looks."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

if shutil.which("dpkg-query") is None:
    print("skipped: deploy/setup.sh is for Debian")
    sys.exit(77)
root = pathlib.Path(sys.argv[1])
GREP = shutil.which("grep")


def program(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    for made in ("deploy", "build", "bin"):
        (folder / made).mkdir()
    shutil.copy(root / "deploy/setup.sh", folder / "deploy")
    # The package manager's own is there in any case.
    (folder / "deploy/packages.txt").write_text("build dpkg\n")
    (folder / "build/build.ninja").touch()
    program(folder / "bin", "ninja", "echo '[1/2] one'; sleep 1.4; echo '[2/2] two'")
    # The look at the log that begins after a second is not over when the build is.
    program(folder / "bin", "grep", f'[ "$1" != -oE ] || sleep 1; exec {GREP} "$@"')
    environment = dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}")
    with open(folder / "said", "w+", encoding="utf-8") as said:
        status = subprocess.run(["bash", folder / "deploy/setup.sh"], stdout=said, stderr=said, env=environment,
                                stdin=subprocess.DEVNULL, timeout=60, check=False).returncode
        time.sleep(2)
        said.seek(0)
        text = said.read()
    lines = text.splitlines()
    expected = ["packages: all there", "build: compiling into build/ (the first time two minutes on two cores)",
                "build: [2/2] two"]
    if status != 0 or lines != expected:
        sys.exit(f"status {status}, and it said:\n{text}")
