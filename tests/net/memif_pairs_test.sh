#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A load balancer and a worker that are joined by a memif find each other in any order: whichever of them starts first,
# both at once, and whichever of them ends, in order or killed, and starts again. A request comes back each time.
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
    [ "$(worker w1 state)" = active ] && [ "$(worker w1 instance)" != "$instance" ]
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
for signal in TERM KILL TERM KILL; do
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
echo "$rounds pairs found each other by memif"
