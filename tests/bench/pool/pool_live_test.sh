#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs beside another: it measures no time.
#
# The bench pool-live in small: workers that join, leave, die and hang under load, a rolling restart, a
# restarted load balancer. Nothing may be lost; its other figures mean nothing here.
set -euo pipefail

build=${DOORBELL_BUILD:-$(realpath "$(dirname "$0")/../../../build")}
json=$(mktemp /tmp/pool-live.XXXXXX)
trap 'rm -f "$json"' EXIT

BUILD=$build "$(dirname "$0")/pool_live.sh" --workers 32 --events 20 --seconds 6 --rate 500 --json "$json"
jq -e '.metrics | .churn_lost == 0 and .churn_duplicated == 0 and .roll_lost == 0' "$json" >/dev/null || {
    cat "$json"
    exit 1
}
jq -r '.metrics | "registered in \(.register_32_s) s, churn lost \(.churn_lost)"' "$json"
