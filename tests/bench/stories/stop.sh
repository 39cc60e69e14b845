#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# How many requests end in silence when the load balancer is told to stop with full slots and a full
# queue, by the net story stop.
#
#   stop.sh [--runs N] [--json FILE] [--commit TEXT] [--machine TEXT]
#
# BUILD is the build directory. Root, for namespaces.
set -euo pipefail

# shellcheck source=tests/bench/stories/story_bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/story_bench.sh"
runs=20
story_bench_begin "$@"

STOP_ROUNDS=$runs "$root/tests/net/stop_test.sh" 2>/dev/null | tail -n 1
jq -Rn '{metrics: ([inputs | split(" ") | {key: .[0], value: (.[1] | tonumber)}] | from_entries)}' \
    <"$STORY_FIGURES" | story_bench_end stop
