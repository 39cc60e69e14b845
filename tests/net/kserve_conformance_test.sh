#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What of KServe's protocol v2 is answered how, row by row: endpoints, errors, datatypes and parameters, by HTTP and by gRPC, as
# deploy/docs/kserve.md has it.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

/usr/bin/python3 -c 'import grpc, grpc_tools, google.protobuf' 2>/dev/null || skip "no python3-grpcio"
command -v curl >/dev/null || skip "no curl"
topology_up "story$$" 5
kserve="protocol: tcp, framing: kserve, address: $vip, port: 8501"
sizes="max_request: 64KiB, max_reply: 64KiB"
# A halted worker stays one, however long its clients take: where it is lost before a request's time is over the answer is 503.
topology_config "
  - {name: types, model: types, $kserve, $sizes}
  - {name: typed, model: typed, $kserve, $sizes}
  - {name: words, model: words, $kserve, $sizes}
  - {name: echo, model: echo, request_timeout_ms: 2500, $kserve, $sizes}
  - {name: digits, model: mlp, $kserve, max_request: 72, max_reply: 52}" "
workers: {timeout_ms: 600000, suspect_ms: 0}
fabric: {ack_timeout: 21}"
start_lb
/usr/bin/python3 -m grpc_tools.protoc -I "$root/tests/net/grpc" --python_out="$dir" inference.proto || fail "protoc"

# step NAME: a step of conformance.py, whose last line is in $said
step() {
    WORKER=${pid_w3:-} ip netns exec "$tag-client" /usr/bin/python3 "$root/tests/net/kserve/conformance.py" "$dir" "$vip" 8501 \
        "$1" >"$dir/$1.log" 2>&1 || fail "$1: $(tail -n 60 "$dir/$1.log")"
    said=$(tail -n 1 "$dir/$1.log")
}

step empty
start_agent 1 "$build/tests/net/kserve/types.so"
start_agent 2 "$build/tests/net/kserve/typed.so"
start_agent 3 echo --model-args max_request=65536
start_agent 5 "$build/tests/net/kserve/words.so"
start_agent 4 mlp --model-args "weights=$root/gpu-agent/models/digits/digits.safetensors"
for w in w1 w2 w3 w4 w5; do
    wait_for "$w to be active" worker_is $w active
done
step all
all=$said
kill -STOP "$pid_w3"
step late
kill -CONT "$pid_w3"
echo "$all; without a worker and late: as they say, too"
