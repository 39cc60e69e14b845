#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The bench conntrack-scale in small: every byte checked, nothing lost, every new flow inserted and
# ended by its timer. Its figures mean nothing here.
set -euo pipefail

program=${DOORBELL_BUILD:-$(dirname "$0")/../../../build}/tests/bench/bench-conntrack-scale
if [ ! -x "$program" ]; then
    echo "bench-conntrack-scale is not built: DPDK has no net_memif driver here"
    exit 77
fi
lcores=1 steps=1
[ "$(nproc)" -lt 2 ] || lcores=2 steps=1,2
"$program" --smoke --no-huge --lcores-list $steps --only 64b
"$program" --smoke --no-huge --lcores-list $lcores --only new
