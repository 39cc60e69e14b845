#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Replies in pieces over a fabric that loses, repeats, damages and reorders packets, for clients of UDP and TCP: every
# reply comes whole, piece by piece. Where the way to the client loses datagrams, the client is told that a reply is not
# whole, and over a bad wire TCP repairs it. A worker that is killed in the middle of replies ends them, and its successor
# serves. The same with a ConnectX's stand-in, whose queues the loop rings, in place of the software RNIC.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"
. "$here/stream/wire.sh"

topology_up "story$$" 1
wire_up
topology_config "
  - {name: datagrams, address: $vip, port: 8500, model: words, framing: tagged, queue_timeout_ms: 60000}
  - {name: stream, protocol: tcp, framing: tagged, address: $vip, port: 8501, model: words, queue_timeout_ms: 60000,
     max_request: 4KiB, max_reply: 4KiB}" "fabric: {ack_timeout: 16}"
fault_wire w1 --drop 0.01 --duplicate 0.005 --reorder 0.005 --corrupt 0.002 --seed "${SEED:-1}"
wire_start --delay-us 0
start_lb

# soft ARGUMENTS: the worker with the software RNIC, whose model has these arguments, too
soft() {
    start_agent 1 words --gpu none --model-args "max_request=4096,max_reply=1024$1"
}
# direct ARGUMENTS: the worker on the stand-in
direct() {
    start w1 w1 env LD_PRELOAD="$standin" STANDIN_PORT="net_af_packet0,iface=w0$device_frames" STANDIN_ADDRESS=10.201.0.11/24 \
        "$build/gpu-agent/doorbell-agent" --lb 10.201.0.254:4790 --name w1 --engine verbs --device standin0 \
        --address 10.201.0.11/24 --model words --gpu none --no-hugepages \
        --model-args "max_request=4096,max_reply=1024$1"
}

# step PROTOCOL STEP [COUNT]
step() {
    local port=8500
    [ "$1" = udp ] || port=8501
    ip netns exec "$tag-client" env PYTHONPATH="$root/control/client" /usr/bin/python3 "$here/pieces.py" \
        "$vip:$port" "$@" >"$dir/$1-$2.log" 2>&1 || fail "$*: $(tail -n 20 "$dir/$1-$2.log")"
    tail -n 1 "$dir/$1-$2.log"
}
all_free() {
    [ "$(worker w1 outstanding)" -eq 0 ]
}

# serve KIND: all that a worker has to do
serve() {
    "$1" ""
    wait_for "w1 to be active" worker_is w1 active
    step udp whole 400
    step tcp whole 400
    expect "packets sent again by the load balancer" "$(worker w1 resent)" -gt 0
    expect "errors of w1" "$(worker w1 errors)" -eq 0
    wait_for "the worker to have no request" all_free
    # It is told to end in the middle of replies, and finishes them; it is killed there, and comes back.
    for protocol in udp tcp; do
        stop "$pid_w1"
        "$1" ,delay_us=20000
        wait_for "w1 to be active" worker_is w1 active
        WORKER=$pid_w1 step $protocol stopped
        wait_for "w1 to end" eval '! is_running $pid_w1'
        stop "$pid_w1"
        expect "exit status of w1" "$status" -eq 0
        "$1" ,delay_us=20000
        wait_for "w1 to be active again" worker_is w1 active
        WORKER=$pid_w1 step $protocol lost
        stop "$pid_w1" KILL
        "$1" ""
        wait_for "w1 to be back" worker_is w1 active
        step $protocol whole 40
    done
    wait_for "the worker to have no request" all_free
}

serve soft
step udp lossy 240
wait_for "the worker to have no request" all_free
wire_stop
wire_start --lose 2 --reorder 10 --copy 1 --corrupt 0.5 --delay-us 2000 --jitter-us 4000 --seed 1
step tcp whole 200
wire_stop
wire_start --delay-us 0
stop "$pid_w1"

standin=$build/tests/rdma/standin/libstandin-verbs.so
if [ -f "$standin" ] && ! ldd "$build/gpu-agent/doorbell-agent" | grep -q libasan; then
    serve direct
    expect_log w1 "post=direct"
    stop "$pid_w1"
    counted=$(grep '^standin: ' "$dir/w1.log") || fail "the stand-in was not closed"
    for what in overruns wrong objects shared; do
        [[ $counted =~ \ $what=0\  ]] || fail "$counted"
    done
    [[ $counted =~ posts=0 ]] || fail "the proxy has posted: $counted"
    echo "and on a ConnectX's stand-in:${counted#standin:}"
fi
echo "words by UDP and TCP over a fabric that loses packets; lost, cut and killed in the middle, and never wrong"
