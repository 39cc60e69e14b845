#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The bench tcp-attack in small: each attack from other addresses lasts longer than a dripping request may live.
# No client loses a request, and dripping requests end.
set -euo pipefail

build=${DOORBELL_BUILD:-$(realpath "$(dirname "$0")/../../../build")}
result=$(mktemp)
trap 'rm -f "$result"' EXIT
BUILD=$build "$(dirname "$0")/tcp_attack.sh" --rounds 1 --seconds 1 --only "flood drip readers" --json "$result"
jq -e '.metrics | .lost_flood == 0 and .lost_drip == 0 and .lost_readers == 0 and .goodput_drip > 0.9 and
    .goodput_readers > 0.9 and .goodput_under_synflood > 0.8 and .flood_over_syn_capacity > 0' "$result" >/dev/null ||
    { echo "clients lost requests: $(cat "$result")" && exit 1; }
jq -e '.drops | (.tcp_slow + .queue_timeout) > 100' "$result" >/dev/null ||
    { echo "dripping requests were not ended: $(jq -c .drops "$result")" && exit 1; }
