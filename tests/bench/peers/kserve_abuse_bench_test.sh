#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The bench kserve-abuse in small: each attack goes on beside the clients, and none of their requests is lost.
set -euo pipefail

build=${DOORBELL_BUILD:-$(realpath "$(dirname "$0")/../../../build")}
result=$(mktemp)
trap 'rm -f "$result"' EXIT
BUILD=$build "$(dirname "$0")/kserve_abuse.sh" --rounds 1 --seconds 1 --rate 500 --only "heads bombs pings unread shut" --json "$result"
jq -e '.metrics.p99_ratio_worst > 0 and ([.metrics | to_entries[] | select(.key | startswith("lost_")) | .value] | length == 5 and add == 0)' \
    "$result" >/dev/null || { echo "clients lost requests: $(cat "$result")" && exit 1; }
jq -e '([.attackers[].failed] | add) == 0' "$result" >/dev/null || { echo "attacks failed: $(jq -c .attackers "$result")" && exit 1; }
jq -e '.drops | .http2_fault > 0 and .tcp_slow > 0' "$result" >/dev/null ||
    { echo "attackers were not ended: $(jq -c .drops "$result")" && exit 1; }
