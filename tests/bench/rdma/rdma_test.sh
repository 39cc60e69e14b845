#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The bench rdma in small: WRITEs over memif to the software RNIC, every byte checked, nothing lost;
# streams over links that lose packets. Its figures mean nothing here.
set -euo pipefail

program=${DOORBELL_BUILD:-$(dirname "$0")/../../../build}/tests/bench/bench-rdma
if [ ! -x "$program" ]; then
    echo "bench-rdma is not built: DPDK has no net_memif driver here"
    exit 77
fi
"$program" --smoke --no-huge
