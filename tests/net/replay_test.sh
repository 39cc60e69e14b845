#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Four workers at 70 % load, replay allowed. One is killed, another stops answering without going
# away: no client sees an error, a wrong byte or a reply twice, and what was in their hands comes
# from the others soon.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 4
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, replay: 2}"
start_lb
# 4 ms for one request at a time, as a device would: 250/s each.
model=(echo --model-args batch_us=4000,sleep=1 --max-batch 1)
start_agents 4 "${model[@]}"

load_start base echo --to "$vip:8500" --sockets 64 --window 64 --rate 700 --duration-s 4
load_wait base
expect_none_lost base

w2_is_gone() {
    ! worker_known w2
}

# added RUN: its 99th percentile less that of the undisturbed run, whole ms
added() {
    jq -n --slurpfile run "$dir/$1.json" --slurpfile base "$dir/base.json" \
        '($run[0].p99_us - $base[0].p99_us) / 1000 | floor'
}

load_start killed echo --to "$vip:8500" --sockets 64 --window 64 --rate 700 --duration-s 4
wait_for "requests on w1" requests_above w1 500
stop "$pid_w1" KILL
load_wait killed
expect_none_lost killed
expect "added to p99 by kill -9, ms" "$(added killed)" -lt 150
again=$(cli --json services list | jq ".services[0].replays")
expect "requests sent again" "$again" -gt 0

# A worker that comes back is a new one.
start_agent 1 "${model[@]}"
wait_for "w1 to be back" worker_is w1 active
load_start stopped echo --to "$vip:8500" --sockets 64 --window 64 --rate 700 --duration-s 4
wait_for "requests on w1" requests_above w1 200
kill -STOP "$pid_w2"
wait_for "w2 to be gone" w2_is_gone
kill -CONT "$pid_w2"
load_wait stopped
expect_none_lost stopped
expect "added to p99 by SIGSTOP, ms" "$(added stopped)" -lt 150
wait_for "w2 to be back" worker_is w2 active

expect "p99.9 around kill -9, us" "$(figure killed p999_us | cut -d. -f1)" -lt 250000
expect "p99.9 around SIGSTOP, us" "$(figure stopped p999_us | cut -d. -f1)" -lt 250000

echo "p99 $(figure base p99_us) us; killed: +$(added killed) ms, $again sent again;" \
    "stopped: +$(added stopped) ms; p99.9 $(figure killed p999_us) and $(figure stopped p999_us) us"
