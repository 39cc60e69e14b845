#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# An agent's control connection is cut, while its requests go on: no TCP packet comes through, in
# neither direction. When its lease ends the worker is marked, and goes on serving, as its loop's heartbeats
# come over
# the fabric. When the network works again the agent goes on with the same registration, before either side
# has found the old connection dead. The same when the connection is reset; and when the agent is killed
# the worker gets no more requests at once.
#
# Runs beside another: it waits for leases most of the time.
. "$(dirname "$0")/story.sh"

command -v openssl >/dev/null || skip "needs the openssl program"
topology_up "story$$" 2
"$root/deploy/make-ca.sh" "$dir/ca" token >"$dir/make-ca.log"
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin}" \
    "workers: {lease_ms: 2000, timeout_ms: 5000, suspect_ms: 2000}"
sed -i "s|^control: {|&token_file: $dir/ca/token, |" "$dir/lb.yaml"
start_lb
start_agents 2 echo --token-file "$dir/ca/token"
number=$(worker w1 number)

# cut and mend the control connection of w1: packets for the kernel's addresses have no route
cut_control() {
    ip -n "$tag-w1" route add blackhole 10.201.0.254/32
}
mend_control() {
    ip -n "$tag-w1" route del blackhole 10.201.0.254/32
}

load_start run echo --to "$vip:8500" --sockets 8 --duration-s 3600 --rate 2000 --window 32
wait_for "requests on w1" requests_above w1 500
generation=$(worker w1 generation)
cut_control
wait_for "w1 to be marked" eval '[ "$(worker w1 control_lost_ms)" != null ]'
expect "its state" "$(worker w1 state) $(worker w1 reason)" = "active control connection lost"
expect_log w1 "serving_without_control="
connection() {
    ip netns exec "$tag-lb" ss -Htn state established dst 10.201.0.101 | grep .
}
wait_for "TCP to find the connection dead" eval '! connection'
expect "w1 without its control connection" "$(worker w1 state)" = active
wait_for "requests of w1 meanwhile" requests_above w1 $(($(worker w1 requests) + 1000))
mend_control
watch_delays
start_ms=$(date +%s%3N)
wait_for "w1 to be heard again" eval '[ "$(worker w1 control_lost_ms)" = null ]'
took_ms=$(($(date +%s%3N) - start_ms))
expect_ms "until w1 was heard" "$took_ms" 3000
expect "its registration" "$(worker w1 number) $(worker w1 generation)" = "$number $generation"
expect_log w1 "control is back"

# A cut that is shorter than a lease is not noticed.
before=$(worker w1 requests)
cut_control
sleep 0.3
mend_control
# 1000/s, for longer than a lease.
wait_for "requests of w1 since" requests_above w1 "$((before + 3000))"
expect "state after a short cut" "$(worker w1 state) $(worker w1 control_lost_ms)" = "active null"

# A connection that is reset is replaced by a new one in a moment. ss needs CONFIG_INET_DIAG_DESTROY for it.
if ip netns exec "$tag-lb" ss -K dst 10.201.0.101 sport = :4790 2>/dev/null | grep -q ESTAB; then
    expect_log lb "worker=w1 control=lost closed=1"
    wait_for "w1 to be heard again" eval '[ "$(worker w1 control_lost_ms)" = null ]'
    expect "its registration after a reset" "$(worker w1 number) $(worker w1 generation) $(worker w1 state)" \
        = "$number $generation active"
else
    echo "this kernel destroys no sockets for ss -K: reset connections were not looked at"
fi
load_end run
expect_none_lost run

# A killed agent's connection closes and its loop is silent: the load balancer sees it at once.
load_start last echo --to "$vip:8500" --sockets 8 --duration-s 3600 --rate 2000 --window 32
wait_for "requests on w2" requests_above w2 $(($(worker w2 requests) + 500))
kill -KILL "$pid_w1"
wait_for "w1 to be gone" eval '! worker_known w1'
expect_log lb "worker=w1 number=$number state=suspect reason=\"its agent's connection closed; no heartbeat since\""
expect_log lb "worker=w1 number=$number state=gone reason=\"its agent's connection closed, and its loop is silent\""
# An agent that leaves in order is gone after its last answer, also if its worker was drained before.
stop "$pid_w2" TERM
expect "exit status of w2" "$status" -eq 0
load_end last
start_agent 2 echo --token-file "$dir/ca/token"
wait_for "w2 to be active" worker_is w2 active
cli workers drain w2 >/dev/null
watch_delays
start_ms=$(date +%s%3N)
stop "$pid_w2" TERM
expect_ms "until a drained agent had left" $(($(date +%s%3N) - start_ms)) 3000
expect "its exit status" "$status" -eq 0
echo "w1 served without its control connection, and was heard again $took_ms ms after its network"
