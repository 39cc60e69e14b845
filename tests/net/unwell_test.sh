#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A worker whose model refuses the probe request never serves. One that fails most of its requests
# while others do not is ejected for a while, and again for longer; an only worker never is.
#
# Runs beside another: no limit of it is a time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 3
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin}" \
    "workers: {eject_ms: 500, timeout_ms: 5000, suspect_ms: 0}"
start_lb
start_agents 1 echo --model-args fail_every=1

load_start alone echo --to "$vip:8500" --sockets 8 --window 4 --rate 400 --duration-s 2
load_wait alone || true
expect "alone: refused" "$(figure alone refused)" -eq "$(figure alone requests)"
expect "alone: state" "$(cli --json workers show w1 | jq -r .worker.state)" = active

start_agent 2 echo
wait_for "w2 to be active" worker_is w2 active
load_start both echo --to "$vip:8500" --sockets 8 --window 4 --rate 400 --duration-s 5
wait_for "w1 to rest" worker_is w1 suspect
expect_log w1 "requests failed within a second"
load_wait both || true
expect "both: lost" "$(figure both lost)" -eq 0
expect "both: refused" "$(figure both refused)" -gt 0
# Without the rest every other request would be refused.
expect "both: refused, of 2000" "$(figure both refused)" -lt 800
wait_for "w1 to be back" worker_is w1 active

stop "$pid_lb"
sed -i 's/policy: round-robin/policy: round-robin, probe_bytes: 100/' "$dir/lb.yaml"
start_lb
wait_for "w2 to be active again" worker_is w2 active
expect_log w1 "its model refused the probe request"
wait_for "w1 to be gone" eval "! worker_is w1 active"
load after echo --to "$vip:8500" --sockets 8 --requests 100
expect_all after 800

echo "of $(figure both requests) requests $(figure both refused) failed before and between rests;" \
    "with a probe none of $(figure after requests)"
