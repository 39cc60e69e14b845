#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A worker whose RNIC is an RDMA device: the agent in a machine with rdma_rxe, the load balancer with
# its own endpoint here, and a wire between them that loses packets. All digits, and 10,000 requests
# (REQUESTS=100000: more) are answered; none runs twice.
#
# Runs beside another: it waits about as long as it computes.
. "$(dirname "$0")/../net/story.sh"
. "$root/tests/rdma/vm/vm.sh"

models=$build/gpu-agent/models
digits=$root/gpu-agent/models/digits
requests=${REQUESTS:-10000}
# Replies are compared to the byte, so the model must add in the same order on both CPUs.
export OPENBLAS_CORETYPE=Prescott

topology_up "story$$" 0
mapfile -t drivers < <(vm_dpdk_drivers)
vm_build w1 "$build/gpu-agent/doorbell-agent" "$models/echo.so" "$models/mlp.so" \
    "$digits/digits.safetensors" "${drivers[@]}"
vm_start w1 --memory 320 --nic fabric:w1=10.201.0.11/24
fault_wire w1 --drop 0.001 --seed "${SEED:-1}"
topology_config "
  - {name: digits, address: $vip, port: 8500, model: mlp, max_request: 72}
  - {name: echo, address: $vip, port: 8501, model: echo}" \
    "workers: {timeout_ms: 5000, suspect_ms: 1000}
fabric: {ack_timeout: 15}"
start_lb

# agent MODEL [OPTIONS]: starts the agent
agent() {
    vm_background w1 "$1" "busybox env OPENBLAS_CORETYPE=$OPENBLAS_CORETYPE \
        $build/gpu-agent/doorbell-agent --lb 10.201.0.254:4790 --name $1 --engine verbs \
        --device rxe0 --address 10.201.0.11/24 --model $models/$1.so ${*:2}"
}

agent mlp --model-args "weights=$digits/digits.safetensors"
agent echo
for i in mlp echo; do
    wait_for "$i to be active" worker_is $i active
    expect_log $i "rdma_device=rxe0 port=1 gid_index=1 gid_type=rocev2 gid=10.201.0.11"
done

load digits digits --to "$vip:8500" --data "$digits/digits.bin" --model "$models/mlp.so" \
    --weights "$digits/digits.safetensors" --timeout-ms 10000 || true
expect_all digits 1797
load echo echo --to "$vip:8501" --sockets 50 --requests $((requests / 50)) --window 4 \
    --max-size 400 --timeout-ms 10000 || true
expect_all echo $requests
resent=$(worker echo resent)
expect "packets sent again by the load balancer" "$resent" -gt 0
expect "payloads copied" "$(cli --json stats | jq '.lcores[0].payload_copies')" -eq 0
for i in mlp echo; do
    p=pid_$i
    stop "${!p}"
done
expect_log mlp "ran requests=1797 "
expect_log echo "ran requests=$requests "
stop "$pid_wire_w1"
echo "1,797 digits at $(figure digits rps | cut -d. -f1)/s, $requests echoes at" \
    "$(figure echo rps | cut -d. -f1)/s from a worker on rdma_rxe; $resent packets sent again;" \
    "$(tail -n 1 "$dir/wire-w1.log")"
