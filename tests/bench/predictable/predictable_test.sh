#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The bench predictable in small, with models four times as slow: below the capacity both sides answer nearly all in
# time, above it some, and say so of all others. Every reply is compared.
set -euo pipefail

build=${DOORBELL_BUILD:-$(realpath "$(dirname "$0")/../../../build")}
result=$(mktemp)
trap 'rm -f "$result"' EXIT
BUILD=$build "$(dirname "$0")/predictable.sh" --rounds 1 --seconds 2 --loads "50 120" --times "4 12 32" --deadlines "400 400 400" \
    --json "$result"
jq -e '.metrics | .lost_doorbell + .lost_controller + .wrong_doorbell + .wrong_controller + .duplicates_doorbell +
    .duplicates_controller == 0' "$result" >/dev/null || { echo "replies are missing or wrong: $(cat "$result")" && exit 1; }
jq -e '.metrics | .goodput_over_controller_120pct > 0.3 and .goodput_over_controller_50pct > 0.7 and
    .goodput_controller_50pct > 0.7 and .p999_over_controller_50pct > 0 and .controller_bytes_per_request_50pct > 16384 and
    .front_cpu_us_per_request_doorbell_50pct > 0' "$result" >/dev/null ||
    { echo "a figure is missing or far off: $(cat "$result")" && exit 1; }
