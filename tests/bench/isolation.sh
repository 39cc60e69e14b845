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

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
runs=5 json='' commit=unknown machine=$(uname -n)

while [ $# -gt 0 ]; do
    case $1 in
    --runs) runs=$2 && shift ;;
    --json) json=$2 && shift ;;
    --commit) commit=$2 && shift ;;
    --machine) machine=$2 && shift ;;
    -h | --help) sed -n '4,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *) echo "isolation.sh: no option '$1'; see --help" >&2 && exit 2 ;;
    esac
    shift
done

[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root for network namespaces" && exit 77; }

STORY_FIGURES=$(mktemp)
trap 'rm -f "$STORY_FIGURES"' EXIT
export STORY_FIGURES DOORBELL_BUILD=${BUILD:-$root/build-bench} ISOLATION_SECONDS=${ISOLATION_SECONDS:-10}
for ((i = 1; i <= runs; i++)); do
    "$root/tests/net/isolation_test.sh" 2>/dev/null | tail -n 1
done

result=$(jq -Rn --arg commit "$commit" --arg machine "$machine" --argjson runs "$runs" '
    [inputs | split(" ") | {key: .[0], value: (.[1] | tonumber)}] | group_by(.key) |
    map({key: .[0].key, value: (map(.value) | sort)}) |
    {bench: "isolation", commit: $commit, machine: $machine, runs: $runs,
     metrics: (map({key, value: .value[(.value | length) / 2 | floor]}) | from_entries),
     spread: (map({key, value: [.value[0], .value[-1]]}) | from_entries)}' <"$STORY_FIGURES")
[ -z "$json" ] || echo "$result" >"$json"
jq -r '.metrics as $m | .spread as $s | $m | keys[] | "\(.) \($m[.]) (\($s[.][0]), \($s[.][1]))"' <<<"$result"
