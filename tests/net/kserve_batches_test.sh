#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Batches by KServe's protocol: rows of one request are answered as if each had been sent alone, in JSON and in binary,
# by gRPC raw and typed; metadata and configuration say how many there may be. Sequences stay with their workers.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

/usr/bin/python3 -c 'import grpc, grpc_tools, google.protobuf' 2>/dev/null || skip "no python3-grpcio"
topology_up "story$$" 2
topology_config "
  - {name: digits, protocol: tcp, framing: kserve, address: $vip, port: 8501, model: mlp, max_request: 72, max_reply: 52}
  - {name: sessions, protocol: tcp, framing: kserve, address: $vip, port: 8502, model: mlp, max_request: 72, max_reply: 52,
     policy: round-robin, affinity: sticky, sticky_load_percent: 0}"
start_lb
/usr/bin/python3 -m grpc_tools.protoc -I "$root/tests/net/grpc" --python_out="$dir" inference.proto || fail "protoc"
start_agents 2 mlp --max-batch 16 --model-args "weights=$root/gpu-agent/models/digits/digits.safetensors"

# step NAME: a step of kserve/batches.py
step() {
    ip netns exec "$tag-client" /usr/bin/python3 "$root/tests/net/kserve/batches.py" "$dir" "$vip" "$1" >"$dir/$1.log" 2>&1 ||
        fail "$1: $(tail -n 30 "$dir/$1.log")"
}
step describe
step json
step binary
step calls
step errors
# Both workers had rows.
expect "workers without a request" "$(cli --json workers list | jq '[.workers[] | select(.requests == 0)] | length')" -eq 0
# A sequence stays with one worker, by HTTP and gRPC, whichever connections it comes by; many use both.
requests() {
    cli --json workers list | jq -c '[.workers[] | .requests]'
}
before=$(requests)
step sequence
expect "workers that a sequence used" "$(jq -n --argjson a "$before" --argjson b "$(requests)" \
    '[range($a | length) | select($a[.] != $b[.])] | length')" -eq 1
before=$(requests)
step sequences
expect "workers that many sequences used" "$(jq -n --argjson a "$before" --argjson b "$(requests)" \
    '[range($a | length) | select($a[.] != $b[.])] | length')" -eq 2
# Workers that do not answer for now: time runs out for all rows, and then their queue pairs are given up.
kill -STOP "$pid_w1" "$pid_w2"
step late
kill -CONT "$pid_w1" "$pid_w2"
all_free() {
    [ "$(cli --json workers list | jq '[.workers[].outstanding] | add')" -eq 0 ]
}
wait_for "the workers to have no request" all_free
step json
echo "up to 16 rows in one request, as many answers in one, by HTTP and gRPC"
