#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A request that cannot be served gets a notice at once: no worker, queue full, waited too long. Each
# notice is counted under its reason, and no request ends in silence.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
topology_config "
  - {name: roomy, address: $vip, port: 8500, model: echo, queue: 1000, queue_timeout_ms: 50}
  - {name: tight, address: $vip, port: 8501, model: echo, queue: 4, queue_timeout_ms: 60000}
  - {name: other, address: $vip, port: 8502, model: other}"
start_lb

# account NAME REASON...: each request was answered, or refused for one of the reasons
account() {
    local name=$1 reason counted=0 total=0
    shift
    for reason in "$@"; do
        total=$((total + $(drops "$reason")))
    done
    counted=$((total - accounted))
    accounted=$total
    expect "$name: busy notices" "$(figure "$name" 'notices_by_code.busy // 0')" -eq $counted
    expect "$name: refused" "$(figure "$name" refused)" -eq $counted
    expect "$name: lost or wrong" "$(figure "$name" '| .lost + .wrong')" -eq 0
    expect "$name: answered" "$(figure "$name" answered)" -eq \
        $(($(figure "$name" requests) - counted))
}
accounted=0

load none echo --to "$vip:8500" --sockets 8 --requests 50 || true
account none no_worker
expect "refused without any worker" "$(figure none refused)" -eq 400

# Two slots, and one request at a time, 10 ms each.
start_agents 1 echo --slots 2 --max-batch 1 --model-args delay_us=10000
load full echo --to "$vip:8501" --sockets 16 --window 2 --requests 10 || true
account full no_worker queue_full
expect "queue_full" "$(drops queue_full)" -gt 0
expect "answered beside a full queue" "$(figure full answered)" -gt 0

load late echo --to "$vip:8500" --sockets 16 --window 1 --requests 10 || true
account late no_worker queue_full queue_timeout
expect "queue_timeout" "$(drops queue_timeout)" -gt 0
expect "answered beside a slow queue" "$(figure late answered)" -gt 0

load wrong_model echo --to "$vip:8502" --sockets 2 --requests 10 || true
account wrong_model no_worker queue_full queue_timeout
expect "refused without a worker of the model" "$(figure wrong_model refused)" -eq 20

expect "notices in all" "$(cli --json stats | jq '.lcores[0].notices')" -eq "$accounted"
echo "$accounted busy notices: $(drops no_worker) no_worker, $(drops queue_full) queue_full," \
    "$(drops queue_timeout) queue_timeout"
