#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The bench kserve-peers in small: a second of each part. Answers before and after each load are compared, and every
# one of the load's has status 200, or as many bytes as the message; the figures mean nothing here, but each of them
# is there and above zero.
set -euo pipefail

build=${DOORBELL_BUILD:-$(realpath "$(dirname "$0")/../../../build")}
result=$(mktemp)
trap 'rm -f "$result"' EXIT
BUILD=$build "$(dirname "$0")/kserve_peers.sh" --rounds 1 --seconds 1 --connections 16 --grpc_connections 4 --sizes 1024 --json "$result"
jq -e '.metrics | length == 48 and all(. > 0)' "$result" >/dev/null ||
    { echo "a figure is missing or zero: $(cat "$result")" && exit 1; }
