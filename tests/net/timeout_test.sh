#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A worker that is too slow: the client gets a timeout notice in time, the request is
# cancelled at the worker, and the slots return when the worker releases them.
#
# Runs beside another: it waits for a model most of the time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
topology_config "
  - {name: hasty, address: $vip, port: 8500, model: echo, request_timeout_ms: 100}
  - {name: patient, address: $vip, port: 8501, model: echo, request_timeout_ms: 20000}"
start_lb
start_agents 1 echo --slots 256 --max-batch 1 --max-run-ms 5000 --model-args delay_us=2000000

# The first request occupies the model for longer than any of them may take, and longer than their clients
# wait for a notice. One visit to the slots cannot end all of them.
load hasty echo --to "$vip:8500" --sockets 200 --window 1 --requests 1 --timeout-ms 1500 || true
expect "lost" "$(figure hasty lost)" -eq 0
expect "timeout notices" "$(figure hasty notices_by_code.timeout)" -eq 200
expect "request_timeout" "$(drops request_timeout)" -eq 200
wait_for "the slots to come back" eval '[ "$(worker w1 credits)" -eq 256 ]'
expect "outstanding" "$(worker w1 outstanding)" -eq 0
expect "answers of the worker" "$(worker w1 replies)" -eq 200
expect "of these without running the model" "$(worker w1 errors)" -eq 199

load patient echo --to "$vip:8501" --sockets 2 --window 1 --requests 1 --timeout-ms 9000 || true
expect_all patient 2
echo "200 timeout notices, $(worker w1 errors) requests given up before they ran, all slots back"
