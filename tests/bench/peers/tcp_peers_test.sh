#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The bench tcp-peers in small: a second of each part. Every reply is compared and none may be lost; the
# figures mean nothing here, but each of them is there and above zero.
set -euo pipefail

build=${DOORBELL_BUILD:-$(realpath "$(dirname "$0")/../../../build")}
result=$(mktemp)
trap 'rm -f "$result"' EXIT
BUILD=$build "$(dirname "$0")/tcp_peers.sh" --rounds 1 --seconds 1 --connections 16 --json "$result"
jq -e '.metrics | length == 41 and all(. > 0)' "$result" >/dev/null ||
    { echo "a figure is missing or zero: $(cat "$result")" && exit 1; }
