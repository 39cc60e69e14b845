#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Models describe their tensors: operators see them, agents that disagree are refused by the name of the
# tensor, and agents and load balancers that know nothing of descriptions serve beside those that do.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 3
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo, max_request: 64, max_reply: 64}
  - {name: digits, address: $vip, port: 8501, model: mlp, max_request: 72, max_reply: 52}"
start_lb

# models FILTER: prints what jq makes of the rows of doorbell models list
models() {
    cli --json models list | jq -rc "$1"
}
# model NAME FILTER: the same of doorbell models show NAME
model() {
    cli --json models show "$1" | jq -rc ".model | $2"
}
expect "models of the services" "$(models '[.models[].name]')" = '["echo","mlp"]'
expect "workers of a model without any" "$(model echo '[.workers, .inputs]')" = '[0,null]'

start_agent 1 echo --model-args max_request=64
wait_for "w1 to be active" worker_is w1 active
expect "inputs" "$(model echo .inputs)" = '[{"name":"input0","datatype":"UINT8","shape":[-1],"bytes":null}]'
expect "the version" "$(cli --json workers show w1 | jq -r .worker.model_version)" = 1

# Two agents that disagree: the second is refused, and the first serves.
start_agent 2 echo --model-args max_request=64,datatype=FP32
reason="description.inputs[0].datatype: input 'input0' is FP32, and UINT8 in worker 'w1' of the same model"
expect_log w2 "$reason"
told() {
    cli --json workers refused | jq -e --arg why "$reason" '.refused[] | select(.worker == "w2").reason | startswith($why)'
}
told >/dev/null || fail "workers refused: $(cli workers refused)"
expect "workers of echo" "$(model echo '[.workers, .active]')" = '[1,1]'
stop "$pid_w2"

# An agent whose plug-in is of ABI 2 is undescribed, and serves beside it.
: >"$dir/w2.log"
start_agent 2 "$build/tests/unit/plugin_abi2.so"
wait_for "w2 to be active" worker_is w2 active
expect "workers of echo" "$(model echo '[.workers, .active, .undescribed, .versions]')" = '[2,2,1,["1"]]'
load run echo --to "$vip:8500" --sockets 4 --max-size 64 --requests 100 || true
expect_all run 400
for w in w1 w2; do
    expect "requests of $w" "$(cli --json workers show "$w" | jq .worker.requests)" -gt 0
done

# Other tensors for a model have to wait until its last worker with the old ones is gone.
start_agent 3 echo --model-args max_request=64,datatype=FP32
expect_log w3 "$reason"
stop "$pid_w1"
wait_for "w3 to be active" worker_is w3 active
expect "inputs afterwards" "$(model echo '.inputs[0].datatype')" = FP32
: >"$dir/w1.log"
start_agent 1 echo --model-args max_request=64
expect_log w1 "description.inputs[0].datatype: input 'input0' is UINT8, and FP32 in worker 'w3' of the same model"
stop "$pid_w1"
stop "$pid_w3"
expect "inputs without a described worker" "$(model echo '[.workers, .undescribed, .inputs]')" = '[1,1,null]'
stop "$pid_w2"

# An agent of before there were descriptions gives none.
answer=$(ip netns exec "$tag-w2" /usr/bin/python3 "$here/register.py" 10.201.0.254 4790 max_request=64 max_reply=64)
expect "answer to a registration without description" "$answer" = registered

# The sizes and tensors of a real model.
: >"$dir/w1.log"
start_agent 1 mlp --model-args "weights=$root/gpu-agent/models/digits/digits.safetensors"
wait_for "w1 to be active" worker_is w1 active
expect "tensors" "$(model mlp '[.batch, (.inputs + .outputs | map("\(.name) \(.datatype) \(.shape) \(.bytes)"))]')" = \
    '[true,["id UINT64 [-1,1] 8","pixels UINT8 [-1,64] 64","id UINT64 [-1,1] 8","class UINT32 [-1,1] 4","scores FP32 [-1,10] 40"]]'
expect "bytes" "$(model mlp '[.request_bytes, .reply_bytes, .services, .members[0].name]')" = '[72,52,["digits"],"w1"]'
cli models list | grep -q "^mlp  *1 of 1  *digits  *1  *id:UINT64\[-1,1\],pixels:UINT8\[-1,64\]  *id:" ||
    fail "models list: $(cli models list)"
stop "$pid_w1"

# A model that describes itself wrongly does not get to the load balancer.
: >"$dir/w1.log"
start_agent 1 echo --model-args datatype=FP8
stop "$pid_w1" CONT
expect "exit status of an agent with a wrong description" "$status" -eq 1
expect_log w1 "model 'echo': its description: inputs[0].datatype: unknown; use BOOL"

# A load balancer of before, which says nothing of descriptions in its hello, is given none.
start old_lb lb /usr/bin/python3 "$here/old_lb.py" 10.201.0.254 4791
wait_for "the old load balancer" grep -q listening "$dir/old_lb.log"
start_agent 2 echo --model-args max_request=64 --lb 10.201.0.254:4791
expect_log old_lb "agent.register: unknown []"
echo "two agents that disagree, a plug-in, an agent and a load balancer without descriptions"
