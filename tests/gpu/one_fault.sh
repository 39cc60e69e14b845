#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# One GPU's fault is its own, on two GPUs: under load one of two workers' processes is killed, then halted, then
# its model's kernel stores to an address that is none. Each time no request may be lost (what that worker had
# gets notices), the other worker must go on, and the first come back and serve (tests/bench/e2e/e2e.sh --fault).
#
#   tests/gpu/one_fault.sh [--gpus N,M]     from the folder that tests/bench/run.sh bundle makes, if this script lies
#                                           in it, or from the build directory BUILD (default: build)
#
# Exit status 1 if something failed, 77 where there are not two GPUs. Without CUDA: tests/net/supervisor_test.sh.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
gpus=0,1
[ "${1:-}" != --gpus ] || gpus=$2
if [ "$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | wc -l)" -lt 2 ]; then
    echo "skipped: needs two GPUs"
    exit 77
fi
if [ -x "$here/e2e.sh" ]; then
    e2e=$here/e2e.sh trap=$here/models/trap.so
else
    export BUILD=${BUILD:-$here/../../build}
    e2e=$here/../bench/e2e/e2e.sh trap=$BUILD/tests/gpu/trap.so
fi
armed=$(mktemp)
trap 'rm -f "$armed"' EXIT

# try KIND OPTIONS...
try() {
    local kind=$1
    shift
    echo "--- $kind"
    "$e2e" --gpus "$gpus" --requests 3000000 --window 32 --timeout-ms 4000 --fault "$kind" "$@" ||
        { echo "FAILED: $kind" && exit 1; }
}

try kill --agent-args "--hang-ms 2000"
try halt --agent-args "--hang-ms 2000"
try trap --model "$trap" --agent-args "--model-args $armed,20000 --hang-ms 2000"
echo "passed: kill, halt, trap"
