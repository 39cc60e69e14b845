#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The bench kserve-json in small: a second of each part. Answers before and after each load are compared; the figures
# mean nothing here, but each of them is there and above zero.
set -euo pipefail

build=${DOORBELL_BUILD:-$(realpath "$(dirname "$0")/../../../build")}
result=$(mktemp)
trap 'rm -f "$result"' EXIT
BUILD=$build "$(dirname "$0")/kserve_json.sh" --rounds 1 --seconds 1 --connections 16 --json "$result"
jq -e '.metrics | length == 20 and all(. > 0)' "$result" >/dev/null ||
    { echo "a figure is missing or zero: $(cat "$result")" && exit 1; }
