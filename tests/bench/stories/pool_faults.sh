#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What faults cost clients, by the net stories replay_tail, replay, churn and overload: medians of
# their figures over the runs, and the spread. affected_* are of the worst of the three faults.
#
#   pool_faults.sh [--runs N] [--json FILE] [--commit TEXT] [--machine TEXT]
#
# BUILD is the build directory. Root, for namespaces.
set -euo pipefail

# shellcheck source=tests/bench/stories/story_bench.sh
. "$(dirname "${BASH_SOURCE[0]}")/story_bench.sh"
runs=3
story_bench_begin "$@"

export CHURN_EVENTS=100
for ((i = 1; i <= runs; i++)); do
    for story in replay_tail replay churn overload; do
        "$root/tests/net/${story}_test.sh" 2>/dev/null | tail -n 3
    done
done
medians | jq '
    [("kill9", "halt", "cut") as $fault | select(.metrics[$fault + "_affected"]) | $fault] as $faults |
    . as $all | ($faults | max_by($all.metrics[. + "_over_undisturbed"])) as $worst |
    reduce ("affected", "affected_max_ms", "affected_p99_ms", "undisturbed_p99_ms", "detection_ms",
            "over_undisturbed") as $key (.;
        .metrics[$key] = $all.metrics[$worst + "_" + $key] |
        .spread[$key] = $all.spread[$worst + "_" + $key])' | story_bench_end pool-faults
