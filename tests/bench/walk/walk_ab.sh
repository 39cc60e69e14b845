#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two builds of bench-walk in turn: cycles per packet of the second over those of the first, from rounds
# that lie side by side, so that what the machine does meanwhile happens to both.
#
#   walk_ab.sh OLD NEW [--rounds N] [OPTION OF BENCH-WALK...]
#
# OLD and NEW are programs. Each round runs both, every other one NEW first. Printed are the median of the
# rounds' ratios, the lowest and the highest.
set -euo pipefail

[ $# -ge 2 ] || {
    sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit 2
}
old=$1 new=$2 rounds=9
shift 2
if [ "${1:-}" = --rounds ]; then
    rounds=${2:?--rounds needs a number}
    shift 2
fi
dir=$(mktemp -d /tmp/walk-ab.XXXXXX)
trap 'rm -rf "$dir"' EXIT

# run NAME PROGRAM ROUND OPTIONS...
run() {
    "$2" --runs 3 --json "$dir/$1-$3.json" "${@:4}" >/dev/null
}

for ((i = 0; i < rounds; i++)); do
    if ((i % 2)); then
        run new "$new" $i "$@"
        run old "$old" $i "$@"
    else
        run old "$old" $i "$@"
        run new "$new" $i "$@"
    fi
done

for ((i = 0; i < rounds; i++)); do
    jq -c --slurpfile new "$dir/new-$i.json" '[.metrics | to_entries[]
        | select(.key | test("^(request|reply)_cycles_"))
        | select(.value != null and $new[0].metrics[.key] != null)
        | {key, value: ($new[0].metrics[.key] / .value)}] | from_entries' "$dir/old-$i.json"
done | jq -rs '(.[0] | keys[]) as $k | [.[][$k]] | sort
    | "\($k) \(.[length / 2 | floor] * 1000 | round / 1000) (\(.[0] * 1000 | round / 1000), \(.[-1] * 1000 | round / 1000))"'
