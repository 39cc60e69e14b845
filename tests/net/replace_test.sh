#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A model is replaced under load: a new worker that is started beside the old one takes its place. Nothing is
# lost, and the old one answers nothing after the switch. A new one whose model does not work never gets there.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin}"
start_lb
start_agent 1 echo --model-args delay_us=200
wait_for "w1 to be active" worker_is w1 active

load_start run echo --to "$vip:8500" --sockets 32 --duration-s 3600 --rate 1500
wait_for "requests on w1" requests_above w1 500

# A successor that does not come changes nothing.
code=0
cli workers replace w1 w2 --timeout 1 >"$dir/out" 2>&1 || code=$?
expect "exit status without a successor" "$code" -eq 1
grep -q "worker 'w2' is not registered; 'w1' goes on" "$dir/out" || fail "it says $(cat "$dir/out")"
worker_is w1 active || fail "w1 is $(worker w1 state)"

# Nor does one whose model hangs: its process ends before it registers, though the model cannot be closed either.
start_agent 2 "$build/tests/net/faulty/faulty.so" --model-args mute --hang-ms 500
wait_for "the agent with the mute model to end" eval '! is_running "$pid_w2"'
grep -q "canary: model 'faulty' does not serve: it has not answered within 500 ms" "$dir/w2.log" || fail "no reason in w2.log"

cli workers replace w1 w2 --timeout 60 >"$dir/out" 2>&1 &
replacing=$!
start_agent 2 echo --model-args delay_us=100
wait "$replacing" || fail "workers replace: $(cat "$dir/out")"
expect "its output" "$(cat "$dir/out")" = "worker w1: drained"
expect "outstanding requests of w1" "$(worker w1 outstanding)" -eq 0
before=$(worker w1 replies)
wait_for "requests on w2" requests_above w2 $(($(worker w2 requests) + 2000))
expect "replies of w1 after the switch" "$(worker w1 replies)" -eq "$before"
stop "$pid_w1" TERM

load_end run
expect_none_lost run
expect "requests in flight on the old worker" "$(drops worker_lost)" -eq 0
echo "$(figure run answered) requests answered over the switch, none lost"
