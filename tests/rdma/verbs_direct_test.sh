#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A worker whose RDMA device is a ConnectX's stand-in (tests/rdma/standin), from end to end: clients,
# doorbell-lb, RoCEv2, the stand-in, the agent. The loop rings the device itself and the proxy sleeps;
# requests of every size are answered to the byte, by UDP and TCP, with 8,192 slots, and again after the
# load balancer was killed. Where the device gives no register, or completions of another size, the proxy
# posts, and the log has a line that says why.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/../net/story.sh"

standin=$build/tests/rdma/standin/libstandin-verbs.so
[ -f "$standin" ] || skip "the stand-in is not built: rdma-core was not found"
# A sanitizer's library must be the first.
! ldd "$build/gpu-agent/doorbell-agent" | grep -q libasan || skip "nothing is preloaded before a sanitizer"

topology_up "story$$" 1
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin}
  - {name: stream, protocol: tcp, address: $vip, port: 8502, model: echo, policy: round-robin, queue_timeout_ms: 60000,
     max_request: 256KiB, max_reply: 256KiB}" "tcp: {connections: 64, buffer_mb: 16}"
start_lb

# agent NAME FAULTS [OPTIONS...]: on the stand-in, whose faults are FAULTS
agent() {
    start "$1" w1 env LD_PRELOAD="$standin" STANDIN_PORT="net_af_packet0,iface=w0$device_frames" \
        STANDIN_ADDRESS=10.201.0.11/24 STANDIN_FAULTS="$2" \
        "$build/gpu-agent/doorbell-agent" --lb 10.201.0.254:4790 --name "$1" --engine verbs --device standin0 \
        --address 10.201.0.11/24 --model echo --gpu none --no-hugepages \
        --model-args max_request=262144 --payload-mb 8 "${@:3}"
}

# worker_gone NAME
worker_gone() {
    ! worker_known "$1"
}

# serve NAME: all that a worker has to do
serve() {
    wait_for "$1 to be active" worker_is "$1" active
    load "$1-load" echo --to "$vip:8500" --sockets 16 --requests 200 --window 4 --max-size 1472 || true
    expect_all "$1-load" 3200
    ip netns exec "$tag-client" "$build/tests/net/stream/tcp-stream" ask --address "$vip" --port 8502 --connections 4 \
        --pipeline 4 --requests 200 --max 262144 --mode echo --limit-s 60 >"$dir/$1-tcp.json" 2>"$dir/$1-tcp.log" || true
    [ -s "$dir/$1-tcp.json" ] || fail "the client wrote no figures: $(tail -n 3 "$dir/$1-tcp.log")"
    expect "$1 by TCP: answered" "$(figure "$1-tcp" answered)" -eq 200
    expect "$1 by TCP: wrong" "$(figure "$1-tcp" wrong)" -eq 0
    expect "errors of $1" "$(worker "$1" errors)" -eq 0
}

# leave NAME: stops it, and looks at what the stand-in has counted
leave() {
    local p=pid_$1
    stop "${!p}"
    expect "exit status of $1" "$status" -eq 0
    wait_for "$1 to be gone" worker_gone "$1"
    counted=$(grep '^standin: ' "$dir/$1.log") || fail "the stand-in of $1 was not closed"
    for what in overruns wrong objects shared; do
        [[ $counted =~ \ $what=0\  ]] || fail "$1: $counted"
    done
}

# expect_line NAME TEXT: says it in one line
expect_line() {
    expect_log "$1" "$2"
    expect "lines of $1 with '$2'" "$(grep -cF -- "$2" "$dir/$1.log")" -eq 1
}

agent direct '' --slots 8192
expect_line direct "rdma_device=standin0 port=1 gid_index=0 gid_type=rocev2 gid=10.201.0.11 pkey_index=0 path_mtu=1024 traffic_class=0 post=direct"
serve direct
expect_line direct "links=1 memory=host registered=host"
leave direct
[[ $counted =~ posts=0 ]] || fail "the proxy has posted: $counted"
first=$counted

# Its queue pair fails when the load balancer is gone: it registers again.
agent again ''
wait_for "again to be active" worker_is again active
stop "$pid_lb" KILL
start_lb
serve again
leave again

agent unregistered no_registers
serve unregistered
expect_line unregistered "post=proxy reason=\"the device gives no doorbell register of one's own: Cannot allocate memory\""
leave unregistered
[[ $counted =~ doorbells=0 && ! $counted =~ posts=0 ]] || fail "the loop has rung: $counted"

agent large large_cqes
serve large
expect_line large "post=proxy reason=\"the device's queues have 64 x 64 and 128 x 128 bytes\""
leave large

# Memory that cannot be registered is named.
agent poor regions_1
expect_log poor "the RDMA device does not register"
stop "$pid_poor"

# What makes no sense is refused.
for refused in "--engine soft --memory gpu" "--engine verbs --memory gpu --gpu none"; do
    # shellcheck disable=SC2086
    ! ip netns exec "$tag-w1" "$build/gpu-agent/doorbell-agent" --lb 10.201.0.254:4790 --device standin0 \
        --address 10.201.0.11/24 --model echo --no-hugepages $refused >"$dir/refused.log" 2>&1 ||
        fail "$refused is taken"
    grep -q -- '--memory gpu' "$dir/refused.log" || fail "$refused: $(cat "$dir/refused.log")"
done
echo "four workers on a stand-in's queues; the first:${first#standin:}"
