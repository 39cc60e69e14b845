#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The bench tcp-loss in small: two seconds of each part. Every byte is compared; the ratios mean nothing here,
# but goodput is above zero.
set -euo pipefail

build=${DOORBELL_BUILD:-$(realpath "$(dirname "$0")/../../../build")}
result=$(mktemp)
trap 'rm -f "$result"' EXIT
BUILD=$build "$(dirname "$0")/tcp_loss.sh" --rounds 1 --seconds 2 --json "$result"
jq -e '.metrics | .wrong == 0 and .lost == 0 and .goodput_up_over_kernel_1pct > 0 and .goodput_down_over_kernel_1pct > 0' \
    "$result" >/dev/null || { echo "a figure is wrong: $(cat "$result")" && exit 1; }
