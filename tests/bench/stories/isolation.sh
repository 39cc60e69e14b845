#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What eight saturated services cost a ninth, by the net story isolation: medians of its figures over
# the runs, and the spread.
#
#   isolation.sh [--runs N] [--json FILE] [--commit TEXT] [--machine TEXT]
#
# BUILD is the build directory. Root, for namespaces.
set -euo pipefail

# shellcheck source=tests/bench/stories/story_bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/story_bench.sh"
runs=5
story_bench_begin "$@"

export ISOLATION_SECONDS=${ISOLATION_SECONDS:-10}
for ((i = 1; i <= runs; i++)); do
    "$root/tests/net/isolation_test.sh" 2>/dev/null | tail -n 1
done
medians | story_bench_end isolation
