#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A worker whose RNIC is an RDMA device: the agent in a machine with rdma_rxe, the load balancer with
# its own endpoint here. All digits, and requests of every size, are answered.
. "$(dirname "$0")/../net/story.sh"
. "$root/tests/rdma/vm/vm.sh"

models=$build/gpu-agent/models
digits=$root/gpu-agent/models/digits
topology_up "story$$" 0
vm_build w1 "$build/gpu-agent/doorbell-agent" "$models/echo.so" "$models/mlp.so" \
    "$digits/digits.safetensors" $(vm_dpdk_drivers)
vm_start w1 --memory 320 --nic fabric:w1=10.201.0.11/24
ip -n "$tag-fabric" link set w1 master br0
topology_config "
  - {name: digits, address: $vip, port: 8500, model: mlp, max_request: 72}
  - {name: echo, address: $vip, port: 8501, model: echo}" \
    "workers: {timeout_ms: 5000}"
start_lb

agent() {
    vm_background w1 "$1" "busybox env OPENBLAS_CORETYPE=Prescott $build/gpu-agent/doorbell-agent --lb 10.201.0.254:4790 --name $1 \
        --engine verbs --device rxe0 --address 10.201.0.11/24 --model $models/$2 ${*:3}"
}

agent digits mlp.so --model-args "weights=$digits/digits.safetensors"
agent echo echo.so
for i in digits echo; do
    wait_for "$i to be active" worker_is $i active
    expect_log $i "rdma_device=rxe0 port=1 gid_index=1 gid_type=rocev2 gid=10.201.0.11"
done

# To the byte, so the model must do its sums in the same order on both CPUs.
OPENBLAS_CORETYPE=Prescott load digits digits --to "$vip:8500" --data "$digits/digits.bin" --model "$models/mlp.so" \
    --weights "$digits/digits.safetensors" || true
expect_all digits 1797
load echo echo --to "$vip:8501" --sockets 8 --requests 250 --window 2 --max-size 1472 || true
expect_all echo 2000
expect "payloads copied" "$(cli --json stats | jq '.lcores[0].payload_copies')" -eq 0
expect "errors" "$(worker echo errors)" -eq 0
echo "1,797 digits at $(figure digits rps | cut -d. -f1)/s and 2,000 echoes at" \
    "$(figure echo rps | cut -d. -f1)/s from workers on rdma_rxe"
