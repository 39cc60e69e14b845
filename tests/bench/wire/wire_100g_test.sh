#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The bench wire-100g in small: two processes, two memif ports, every byte checked, nothing lost.
# Its figures mean nothing here.
set -euo pipefail

program=${DOORBELL_BUILD:-$(dirname "$0")/../../../build}/tests/bench/bench-wire-100g
if [ ! -x "$program" ]; then
    echo "bench-wire-100g is not built: DPDK has no net_memif driver here"
    exit 77
fi
"$program" --smoke --no-huge
# several queues, and more of them than the generator has threads
if [ "$(nproc)" -ge 2 ]; then
    "$program" --smoke --no-huge --lcores 2 --gen-cores 1
fi
