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

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
runs=20 json='' commit=unknown machine=$(uname -n)

while [ $# -gt 0 ]; do
    case $1 in
    --runs) runs=$2 && shift ;;
    --json) json=$2 && shift ;;
    --commit) commit=$2 && shift ;;
    --machine) machine=$2 && shift ;;
    -h | --help) sed -n '4,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 0 ;;
    *) echo "stop.sh: no option '$1'; see --help" >&2 && exit 2 ;;
    esac
    shift
done

[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root for network namespaces" && exit 77; }

STORY_FIGURES=$(mktemp)
trap 'rm -f "$STORY_FIGURES"' EXIT
export STORY_FIGURES DOORBELL_BUILD=${BUILD:-$root/build-bench} STOP_ROUNDS=$runs
"$root/tests/net/stop_test.sh" 2>/dev/null | tail -n 1

result=$(jq -Rn --arg commit "$commit" --arg machine "$machine" --argjson runs "$runs" '
    {bench: "stop", commit: $commit, machine: $machine, runs: $runs,
     metrics: ([inputs | split(" ") | {key: .[0], value: (.[1] | tonumber)}] | from_entries)}' <"$STORY_FIGURES")
[ -z "$json" ] || echo "$result" >"$json"
jq -r '.metrics | to_entries[] | "\(.key) \(.value)"' <<<"$result"
