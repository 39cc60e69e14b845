#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The load balancer ends, in order or killed, and starts again: it takes over the socket it left behind,
# and agents register again by themselves, within 2 s. First without TLS, then with it.
#
# Runs beside another: it waits, and its limit is many times what is usual.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
all=()

# restarts NAME AGENT-OPTIONS...: ends it both ways, and prints how long agents took each time
restarts() {
    local name=$1 signal start_ms took_ms
    shift
    start_lb
    start_agents 2 echo "$@"
    load "$name" echo --to "$vip:8500" --sockets 8 --requests 200 || true
    expect_all "$name" 1600
    for signal in TERM KILL; do
        stop "$pid_lb" $signal
        [ $signal = KILL ] || expect "exit status after SIGTERM" "$status" -eq 0
        [ $signal = KILL ] || expect "control socket left behind" "$(ls "$dir/control.sock" 2>&1)" = \
            "ls: cannot access '$dir/control.sock': No such file or directory"
        # A restart by hand takes some seconds, after which the agents' tries are as far apart as they get.
        sleep 2
        start_lb
        watch_delays
        start_ms=$(date +%s%3N)
        wait_for "w1 to be active again" worker_is w1 active
        wait_for "w2 to be active again" worker_is w2 active
        took_ms=$(($(date +%s%3N) - start_ms))
        all+=("$took_ms")
        expect_ms "$name: until both were active after SIG$signal" "$took_ms" 2000
        load "$name-$signal" echo --to "$vip:8500" --sockets 8 --requests 200 || true
        expect_all "$name-$signal" 1600
    done
    expect_log w1 "registering again"
    stop "$pid_w1"
    stop "$pid_w2"
    stop "$pid_lb"
}

restarts plain
command -v openssl >/dev/null || skip "needs the openssl program for its second half"
{
    "$root/deploy/make-ca.sh" "$dir/ca" lb 10.201.0.254
    "$root/deploy/make-ca.sh" "$dir/ca" agent host
} >"$dir/make-ca.log"
sed -i "s|^control: {|&tls: {certificate: $dir/ca/lb.pem, key: $dir/ca/lb.key, ca: $dir/ca/ca.pem}, |" "$dir/lb.yaml"
# The names that an agent gives to the workers of one host's GPUs.
start_agent() {
    local i=$1 model=$2
    shift 2
    start "w$i" "w$i" "$build/gpu-agent/doorbell-agent" --lb 10.201.0.254:4790 \
        --name "host-gpu$i" --device "net_af_packet0,iface=w0" --address "10.201.0.$((10 + i))/24" \
        --model "$model" --no-hugepages "$@"
}
worker_is() {
    [ "$(worker "host-gpu${1#w}" state)" = "$2" ]
}
restarts tls --tls-ca "$dir/ca/ca.pem" --tls-certificate "$dir/ca/host.pem" --tls-key "$dir/ca/host.key"
echo "agents were serving again ${all[*]} ms after the load balancer (SIGTERM, SIGKILL, plain and TLS)"
