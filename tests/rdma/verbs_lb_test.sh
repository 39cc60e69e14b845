#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A load balancer whose fabric is an RDMA device: doorbell-lb in a machine with rdma_rxe. Its workers:
# one with a software RNIC here, one on rdma_rxe in a machine of its own. All digits, and requests of
# every size, are answered by each. The one on rdma_rxe is killed under load and started again; in the
# end nothing is left on either device.
#
# Runs beside another: it waits about as long as it computes.
. "$(dirname "$0")/../net/story.sh"
. "$root/tests/rdma/vm/vm.sh"

models=$build/gpu-agent/models
digits=$root/gpu-agent/models/digits
# Replies are compared to the byte, so the model must add in the same order on all CPUs.
export OPENBLAS_CORETYPE=Prescott

topology_up "story$$" 1
mapfile -t drivers < <(vm_dpdk_drivers)
vm_build machine "$build/doorbell-lb" "$build/control/doorbell" "$build/gpu-agent/doorbell-agent" \
    "$models/mlp.so" "$models/echo.so" "$digits/digits.safetensors" "$(command -v ethtool)" "${drivers[@]}"
vm_power front --image machine --memory 640 --nic client:c1 --nic fabric:front=10.201.0.1/24
vm_power back --image machine --memory 320 --nic fabric:back=10.201.0.12/24
vm_ready front
vm_ready back
for i in front back; do
    ip -n "$tag-fabric" link set $i master br0
done
ip -n "$tag-client" addr flush dev c0
ip -n "$tag-client" addr add 10.200.0.2/24 dev c1

cat >"$dir/lb.yaml" <<END
ports:
  - {name: clients, device: "net_af_packet0,iface=eth0", roles: [clients]}
  - {name: fabric, device: rxe1, engine: verbs, roles: [fabric], address: 10.201.0.1/24}
services:
  - {name: digits, address: $vip, port: 8500, model: mlp, max_request: 72, policy: round-robin}
  - {name: echo, address: $vip, port: 8501, model: echo, policy: round-robin}
  - {name: stream, protocol: tcp, address: $vip, port: 8502, model: echo, policy: round-robin, queue_timeout_ms: 60000,
     max_request: 256KiB, max_reply: 256KiB}
lcores: [0]
flows: 4096
tcp: {connections: 64, buffer_mb: 16}
memory: {hugepages: false}
workers: $default_workers
fabric: $default_fabric
control: {socket: /root/control.sock, agents: "10.201.0.1:4790", allow_plain: true}
END
vm_put front "$dir/lb.yaml" /root/lb.yaml
# The command line tool runs here, so that it takes no CPU time from the machine that it asks.
vm_socket front /root/control.sock "$dir/control.sock"

# Requests and replies of 256 KiB want memory on both sides: 16 of each are enough here.
echo_options=(--model-args max_request=262144 --payload-mb 8 --slots 16)

# agent NAME MODEL [OPTIONS]: starts an agent; NAME decides where
agent() {
    local command="$build/gpu-agent/doorbell-agent --lb 10.201.0.1:4790 --name $1"
    command+=" --no-hugepages --model $models/$2 ${*:3}"
    if [[ $1 == soft-* ]]; then
        # shellcheck disable=SC2086
        start "$1" w1 $command --device net_af_packet0,iface=w0 --address 10.201.0.11/24
    else
        vm_background back "$1" "busybox env OPENBLAS_CORETYPE=$OPENBLAS_CORETYPE $command \
            --engine verbs --device rxe0 --address 10.201.0.12/24"
    fi
}

# serve MODEL LOAD...: runs the load on both engines, one after the other
serve() {
    local engine options=("${echo_options[@]}")
    [ "$1" = echo ] || options=(--model-args "weights=$digits/digits.safetensors")
    for engine in soft verbs; do
        agent "$engine-$1" "$1.so" "${options[@]}"
        wait_for "$engine-$1 to be active" worker_is "$engine-$1" active
        load "$engine-load" "${@:2}" || true
        expect_none_lost "$engine-load"
        expect "replies of $engine-$1" "$(worker "$engine-$1" replies)" -eq \
            "$(figure "$engine-load" requests)"
        [ "$engine-$1" = verbs-echo ] || leave "$engine-$1"
    done
}

# leave NAME: stops an agent in good order
leave() {
    local p=pid_${1//-/_}
    stop "${!p}"
    wait_for "$1 to be gone" worker_gone "$1"
}

worker_gone() {
    ! worker_known "$1"
}

# kill_agent NAME: kills the agent in the machine; the load balancer sees its connection end
kill_agent() {
    vm_run back "kill -9 \$(busybox pidof doorbell-agent)"
    wait_for "$1 to be gone" worker_gone "$1"
}

# start_again NAME: sets $ms to the time from its RDMA device's opening until it serves
start_again() {
    local up
    agent "$1" echo.so "${echo_options[@]}"
    expect_log "$1" "rdma_device=rxe0"
    up=${EPOCHREALTIME/./}
    wait_for "$1 to be active" worker_is "$1" active
    ms=$(((${EPOCHREALTIME/./} - up) / 1000))
    # A second or so on a quiet machine.
    expect "ms until $1 serves" $ms -lt 5000
}

# crash: verbs-echo dies under load; no request ends in silence; its successor serves
crash() {
    # Where the worker has acknowledged all that it was sent, only its silence for workers.timeout_ms
    # tells of its death: clients must wait for longer than those 5 s.
    load_start crash echo --to "$vip:8501" --sockets 8 --requests 100 --window 2 --max-size 1472
    wait_for "requests on their way" requests_above verbs-echo "$(worker verbs-echo requests)"
    kill_agent verbs-echo
    start_again again
    load_wait crash
    for what in lost wrong duplicates; do
        expect "crash: $what" "$(figure crash $what)" -eq 0
    done
    load again-load echo --to "$vip:8501" --sockets 8 --requests 25 --window 2 --max-size 1472 || true
    expect_none_lost again-load
    leave again
}

# by_tcp NAME: requests and replies of many packets by the fabric's RDMA device, in order and out of it
by_tcp() {
    local before what
    before=$(worker "$1" replies)
    ip netns exec "$tag-client" "$build/tests/net/stream/tcp-stream" ask --address "$vip" --port 8502 --connections 8 --pipeline 4 \
        --requests 400 --max 262144 --mode echo --limit-s 60 >"$dir/tcp.json" 2>"$dir/tcp.log" || true
    [ -s "$dir/tcp.json" ] || fail "the client wrote no figures: $(tail -n 3 "$dir/tcp.log")"
    for what in lost refused wrong; do
        expect "by TCP: $what" "$(figure tcp $what)" -eq 0
    done
    expect "requests by TCP" "$(figure tcp answered)" -eq 400
    expect "replies of $1" "$(($(worker "$1" replies) - before))" -eq 400
}

# resources MACHINE: prints how many queue pairs, completion queues, memory regions ... there are
resources() {
    vm_run "$1" 'rdma resource show'
}

test_resources() {
    [ "$(resources "$1")" = "$2" ]
}

# A worker whose address no host answers for is refused before the load balancer's other work waits for
# long; the kernel alone would take a second for each link.
nobody() {
    local request said took link
    link='{"lcore":0,"qpn":17,"psn":1,"rkey":1,"descriptors":4096,"payloads":8192,"cancels":65536,"stride":1472,"room":0,"entry":64}'
    request='{"jsonrpc":"2.0","id":1,"method":"agent.register","params":{"version":3,"name":"nobody",
        "model":"mlp","instance":"0123456789abcdef","slots":2,"max_request":1472,"max_reply":1472,
        "max_batch":1,"weight":1,"heartbeat_ms":100,"max_run_ms":0,"address":"10.201.0.99",
        "path_mtu":1024,"links":['$link']}}'
    took=${EPOCHREALTIME/./}
    # shellcheck disable=SC2016
    said=$(ip netns exec "$tag-w1" bash -c 'exec 3<>/dev/tcp/10.201.0.1/4790
        tr -d "\n" <<<"$1" >&3; echo >&3; read -r said <&3; echo "$said"' - "$request")
    took=$(((${EPOCHREALTIME/./} - took) / 1000))
    grep -q "cannot reach the worker: Connection timed out" <<<"$said" || fail "nobody: $said"
    expect "ms until nobody was refused" $took -lt 900
}

# doctor MACHINE ARGUMENTS: prints its findings about the RDMA device there
doctor() {
    local said
    said=$(vm_run "$1" "$build/control/doorbell doctor ${*:2}" || true)
    for row in modules device port GID P_Key MTU; do
        grep -q "^ok       RDMA $row " <<<"$said" || fail "doctor on $1: $said"
    done
}
doctor front lb --config /root/lb.yaml
doctor back agent --engine verbs --device rxe0 --address 10.201.0.12/24 --mtu 1500

unused=$(resources back)
# The machine's kernel would join segments, and af_packet cuts off what is longer than its frames.
vm_run front "$(command -v ethtool) -K eth0 gro off"
vm_background front lb "$build/doorbell-lb --config /root/lb.yaml"
wait_for "the load balancer's control socket" cli version
idle=$(resources front)
nobody
expect_log lb "engine=verbs rdma_device=rxe1 port=1"

serve mlp digits --to "$vip:8500" --data "$digits/digits.bin" --model "$models/mlp.so" \
    --weights "$digits/digits.safetensors"
rate=$(figure verbs-load rps | cut -d. -f1)
serve echo echo --to "$vip:8501" --sockets 8 --requests 250 --window 2 --max-size 1472
by_tcp verbs-echo
crash
wait_for "the load balancer to have given back all of a worker's" test_resources front "$idle"
wait_for "the worker to have given back all" test_resources back "$unused"
echo "1,797 digits and 2,000 echoes through an RDMA device to a worker with a software RNIC and to one" \
    "on rdma_rxe ($rate digits/s); killed, it served $ms ms after it was up again"
