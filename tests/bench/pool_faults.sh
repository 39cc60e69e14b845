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

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
runs=3 json='' commit=unknown machine=$(uname -n)

while [ $# -gt 0 ]; do
    case $1 in
    --runs) runs=$2 && shift ;;
    --json) json=$2 && shift ;;
    --commit) commit=$2 && shift ;;
    --machine) machine=$2 && shift ;;
    -h | --help) sed -n '4,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *) echo "pool_faults.sh: no option '$1'; see --help" >&2 && exit 2 ;;
    esac
    shift
done

[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root for network namespaces" && exit 77; }

STORY_FIGURES=$(mktemp)
trap 'rm -f "$STORY_FIGURES"' EXIT
export STORY_FIGURES DOORBELL_BUILD=${BUILD:-$root/build-bench} CHURN_EVENTS=100
for ((i = 1; i <= runs; i++)); do
    for story in replay_tail replay churn overload; do
        "$root/tests/net/${story}_test.sh" 2>/dev/null | tail -n 3
    done
done

result=$(jq -Rn '
    [inputs | split(" ") | {key: .[0], value: (.[1] | tonumber)}] | group_by(.key) |
    map({key: .[0].key, value: (map(.value) | sort)}) |
    {metrics: (map({key, value: .value[(.value | length) / 2 | floor]}) | from_entries),
     spread: (map({key, value: [.value[0], .value[-1]]}) | from_entries)} |
    .metrics as $m | ("kill9", "halt", "cut" | select($m[. + "_affected"])) as $fault |
    [., $fault]' <"$STORY_FIGURES" |
    jq -s '
    max_by(.[0].metrics[.[1] + "_over_undisturbed"]) as [$all, $worst] |
    ("affected", "affected_max_ms", "affected_p99_ms", "undisturbed_p99_ms", "detection_ms",
     "over_undisturbed") as $key | [$all, $worst, $key]' |
    jq -s --arg commit "$commit" --arg machine "$machine" --argjson runs "$runs" '
    reduce .[] as [$all, $worst, $key] (.[0][0];
        .metrics[$key] = $all.metrics[$worst + "_" + $key] |
        .spread[$key] = $all.spread[$worst + "_" + $key]) |
    {bench: "pool-faults", commit: $commit, machine: $machine, runs: $runs} + .')
[ -z "$json" ] || echo "$result" >"$json"
jq -r '.metrics as $m | .spread as $s | $m | keys[] | "\(.) \($m[.]) (\($s[.][0]), \($s[.][1]))"' <<<"$result"
