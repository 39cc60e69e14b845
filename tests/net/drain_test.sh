#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A worker is drained under load, by the operator and by SIGTERM to its agent: nothing is lost. The
# operator's drain stays until it is resumed, also for a new agent of that name; the other agent ends by
# itself, and started again under the same name it gets traffic again.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
# Round-robin: the shares do not depend on the workers' speeds.
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin}"
start_lb
start_agents 2 echo --model-args delay_us=50

load_start run echo --to "$vip:8500" --sockets 32 --duration-s 3600 --rate 1500
wait_for "requests on w1" requests_above w1 500
expect "state after doorbell workers drain" "$(cli --json workers drain w1 | jq -r .worker.state)" = drained
expect_log w1 drained
is_running "$pid_w1" || fail "the agent of a drained worker ended"
before=$(worker w1 requests)
wait_for "requests on w2" requests_above w2 $(($(worker w2 requests) + 1000))
expect "requests of w1 while it was drained" "$(worker w1 requests)" -eq "$before"
cli workers resume w1 >/dev/null
wait_for "requests on w1 again" requests_above w1 $((before + 500))

stop "$pid_w2" TERM
expect "exit status of the agent of w2" "$status" -eq 0
expect_log w2 drained
start_agent 2 echo
wait_for "requests on w2 again" requests_above w2 500

load_end run
expect_none_lost run
expect "requests in flight on drained workers" "$(drops worker_lost)" -eq 0
echo "$(figure run answered) requests answered over two drains, none lost"
