#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# An agent is told to end while its load balancer is gone. It ends at once when it has nothing in hand, else after
# its batch; and while the network is cut, where the load balancer may still be there, it waits for it.
#
# Runs beside another: its limits are far from what is usual.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
# A queue pair of these notices after minutes that nobody acknowledges: it tells the agent nothing.
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin}" "fabric: {ack_timeout: 23}
workers: {timeout_ms: 5000, suspect_ms: 0}"
patience_s=25

# leaves WHAT LIMIT-MS: asks the agent to end, and expects it to within the limit
leaves() {
    local began_ms took_ms
    watch_delays
    began_ms=$(date +%s%3N)
    kill -TERM "$pid_w1"
    wait_for "the agent to end" eval '! is_running "$pid_w1"'
    took_ms=$(($(date +%s%3N) - began_ms))
    expect_ms "$1: until the agent had ended" "$took_ms" "$2"
    report+="$1 $took_ms ms, "
    stop "$pid_w1"
    expect "$1: its exit status" "$status" -eq 0
}

# begin OPTIONS...: both daemons, connected
begin() {
    start_lb
    start_agent 1 echo "$@"
    wait_for "w1 to be active" worker_is w1 active
}

report=
begin
kill -KILL "$pid_lb"
leaves "at once" 1000
expect_log w1 "its load balancer is gone, and nothing is in hand"

# When it has found out already, and waits for its next try.
begin
stop "$pid_lb" KILL
expect_log w1 "Connection refused"
leaves "between two tries" 1000

# A batch is answered first, though nobody reads the answer.
begin --model-args delay_us=2000000 --max-run-ms 4000
load_start last echo --to "$vip:8500" --sockets 1 --requests 1
wait_for "a request on w1" requests_above w1 0
stop "$pid_lb" KILL
: >"$dir/w1.log"
leaves "in a batch" 4000
expect_log w1 "ran requests=1"
load_wait last || true

# A network that is cut says nothing: the load balancer takes its worker back, and it leaves in order.
begin
ip -n "$tag-fabric" link set lb down
expect_log w1 "has not answered for the time of a lease"
kill -TERM "$pid_w1"
sleep 0.5
is_running "$pid_w1" || fail "it did not wait for a load balancer that may be there"
ip -n "$tag-fabric" link set lb up
wait_for "the agent to end" eval '! is_running "$pid_w1"'
echo "agents without a load balancer ended: ${report%, }"
