#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A load balancer and a worker that are joined by a memif find each other in any order: whichever of them starts first,
# both at once, and whichever of them ends, in order or killed, and starts again. A request comes back each time. And a
# worker that is killed under load, whose memory both ends read and write, takes nobody with it.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
memif="socket=$dir/memif.sock,socket-abstract=no,rsize=10"
sed -i "s|device: \".*iface=fabric.*\"|device: \"net_memif_fabric,role=server,$memif\"|" "$dir/lb.yaml"
patience_s=20
instance=none

lb() {
    start lb lb "$build/doorbell-lb" --config "$dir/lb.yaml"
}

agent() {
    start w1 w1 "$build/gpu-agent/doorbell-agent" --lb 10.201.0.254:4790 --name w1 \
        --device "net_memif_agent,role=client,$memif" --address 10.201.0.11/24 --model echo --no-hugepages
}

# met WHAT: waits until w1 is active by a registration that is not the last one's, and has answered
is_new() {
    cli --json workers show w1 | jq -e --arg last "$instance" '.worker | .state == "active" and .instance != $last'
}
met() {
    wait_for "the worker to be active: $1" is_new
    instance=$(worker w1 instance)
    load run echo --to "$vip:8500" --sockets 1 --requests 4 || true
    expect_all run 4
    rounds=$((rounds + 1))
}

both_end() {
    stop "$pid_w1" "$1"
    stop "$pid_lb" "$1"
    # Another load balancer counts anew.
    instance=none
}

rounds=0
for signal in TERM KILL; do
    agent
    expect_log w1 canary=passed
    lb
    met "the agent first"
    stop "$pid_w1" "$signal"
    agent
    met "the agent again"
    stop "$pid_lb" "$signal"
    instance=none
    lb
    met "the load balancer again"
    both_end "$signal"
    lb
    agent
    met "both at once"
    both_end "$signal"
    start_lb
    agent
    met "the load balancer first"
    stop "$pid_lb" "$signal"
    sleep 0.2 # so that the agent finds nobody there a few times
    instance=none
    lb
    met "the load balancer later"
    both_end "$signal"
    : >"$dir/w1.log"
done
! grep -q "doorbell-agent: device" "$dir"/w1.log || fail "an agent gave up"

# A lcore that never sleeps is in the middle of the memif's rings most of the time.
sed -i '/^workers:/d' "$dir/lb.yaml"
printf 'idle: poll\nworkers: {timeout_ms: 1000, suspect_ms: 0}\n' >>"$dir/lb.yaml"
start_lb
agent
met "before the load"
load_start busy echo --to "$vip:8500" --sockets 64 --duration-s 3600 --rate 60000
for kills in $(seq 8); do
    wait_for "requests" requests_above w1 1000
    kill -KILL "$pid_w1"
    stop "$pid_w1"
    is_running "$pid_lb" || fail "the load balancer ended with its worker"
    agent
    wait_for "the worker to be active, after $kills kills" is_new
    instance=$(worker w1 instance)
done
kill -KILL "$pid_lb"
stop "$pid_lb"
is_running "$pid_w1" || fail "the worker ended with its load balancer"
echo "$rounds pairs found each other by memif, and $kills workers were killed under load"
