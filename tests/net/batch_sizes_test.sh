#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A model with batches of several sizes: requests that come alone run in batches of one row, a crowd in full
# ones; operators see which sizes ran, and a deadline that only a batch of one row meets is met. With
# --no-batch-sizes all run in the largest size.
#
# Runs beside another: its limits are far from what it measures.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}" "workers: {lease_ms: 1500, timeout_ms: 5000, suspect_ms: 0}"
start_lb
# Each row of a batch takes 10 ms, used or not.
start_agent 1 echo --model-args buckets=1,delay_us=10000,sleep=1 --max-batch 8
wait_for "w1 to be active" worker_is w1 active

# ran ROWS [WORKER]: batches of so many rows that the worker has reported
ran() {
    cli --json workers show "${2:-w1}" | jq -r ".worker.batches.\"$1\" // 0"
}
ran_above() {
    [ "$(ran "$1" "${3:-w1}")" -gt "$2" ]
}

watch_delays
load alone echo --to "$vip:8500" --sockets 1 --window 1 --requests 20 || true
expect_all alone 20
wait_for "20 batches of one row" ran_above 1 19
expect "larger batches of requests that came alone" "$(($(ran 2) + $(ran 4) + $(ran 8)))" -eq 0
us=$(cli --json workers show w1 | jq '.worker.batch_run_us."1"')
expect "mean run of a batch of one row, us" "$us" -ge 10000
# Eight rows take 80 ms.
expect_ms "mean run of a batch of one row" $((us / 1000)) 40

load crowd echo --to "$vip:8500" --sockets 32 --requests 20 || true
expect_all crowd 640
wait_for "full batches" ran_above 8 40
us=$(cli --json workers show w1 | jq '.worker.batch_run_us."8"')
expect "mean run of a full batch, us" "$us" -ge 80000
cli workers show w1 | grep -q '^batches by size .*8=' || fail "no sizes: $(cli workers show w1)"

alone=$(ran 1) crowd=$(ran 8)
start_agent 2 echo --model-args buckets=1,delay_us=10000,sleep=1 --max-batch 8 --no-batch-sizes
wait_for "w2 to be active" worker_is w2 active
cli workers drain w1 >/dev/null
wait_for "w1 to be drained" worker_is w1 drained
load one echo --to "$vip:8500" --sockets 1 --window 1 --requests 20 || true
expect_all one 20
wait_for "20 batches of the largest size" ran_above 8 19 w2
expect "smaller batches of a worker with one size" "$(($(ran 1 w2) + $(ran 2 w2) + $(ran 4 w2)))" -eq 0

echo "alone: $alone batches of one row; a crowd: $crowd of eight; with one size: $(ran 8 w2) of eight"
