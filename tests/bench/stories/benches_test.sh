#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The benches that have no story of their own, each in small: they start, check what they check at
# full size, and end well. Their figures mean nothing here.
# Runs beside another
set -euo pipefail

benches=${DOORBELL_BUILD:-$(dirname "$0")/../../../build}/tests/bench

# small NAME OPTION...
small() {
    local begin=$SECONDS log
    if [ ! -x "$benches/bench-$1" ]; then
        echo "bench-$1 is not built"
        exit 77
    fi
    log=$("$benches/bench-$1" "${@:2}" 2>&1) || {
        printf 'bench-%s failed:\n%s\n' "$*" "$log"
        exit 1
    }
    took+="$1 $((SECONDS - begin)) s, "
}

took=
small walk --runs 1 --no-huge
small tcp --runs 1 --no-huge --only 16k
small conntrack --runs 1 --no-huge --only 64k
small conntrack-traffic --smoke --runs 1 --no-huge
small pool --runs 1
small flows --flows 100000
echo "${took%, }"
