#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Clients as they are ask by KServe's protocol: httpx in JSON, in binary, in chunks, with 4 MiB; wrk and h2load over many
# connections; byte streams as Triton's clients send them. Each answer is the model's own.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

/usr/bin/python3 -c 'import httpx' 2>/dev/null || skip "no python3-httpx"
/usr/bin/python3 -c 'import grpc_tools, google.protobuf' 2>/dev/null || skip "no python3-grpc-tools"
for program in wrk h2load; do
    command -v $program >/dev/null || skip "no $program"
done
topology_up "story$$" 2
topology_config "
  - {name: digits, address: $vip, port: 8500, model: mlp, max_request: 72, max_reply: 52}
  - {name: kserve, protocol: tcp, framing: kserve, address: $vip, port: 8501, model: mlp, max_request: 72, max_reply: 52}
  - {name: echo, protocol: tcp, framing: kserve, address: $vip, port: 8502, model: echo, max_request: 4MiB, max_reply: 4MiB}"
start_lb
/usr/bin/python3 -m grpc_tools.protoc -I "$root/tests/net/grpc" --python_out="$dir" inference.proto || fail "protoc"
start_agent 1 mlp --model-args "weights=$root/gpu-agent/models/digits/digits.safetensors"
start_agent 2 echo --model-args max_request=4194304
wait_for "w1 to be active" worker_is w1 active
wait_for "w2 to be active" worker_is w2 active

# in_client NAME COMMAND...: its output in $dir/NAME.log
in_client() {
    local name=$1
    shift
    ip netns exec "$tag-client" timeout 120 "$@" >"$dir/$name.log" 2>&1 || fail "$name: $(tail -n 30 "$dir/$name.log")"
}

in_client own /usr/bin/python3 "$root/tests/net/kserve/own_answer.py" "$dir" "$vip" 8500
in_client httpx /usr/bin/python3 "$root/tests/net/kserve/httpx_client.py" "$dir" "$vip" 8501 8502
in_client triton /usr/bin/python3 "$root/tests/net/kserve/triton_streams.py" "$dir" "$vip" 8501 8502

# --- wrk compares each answer itself
head -c 5000 /dev/urandom >"$dir/body"
in_client wrk wrk --threads 2 --connections 16 --duration 2s --timeout 10s --script "$root/tests/net/kserve/wrk.lua" \
    "http://$vip:8502/v2/models/echo/infer" -- "$dir/body"
read -r _ answers _ wrong < <(tail -n 1 "$dir/wrk.log")
expect "wrong answers to wrk" "$wrong" -eq 0
expect "answers to wrk" "$answers" -gt 100

# --- h2load counts statuses and bytes: as many as the model's own answers have
h2() {
    local name=$1 data=$2
    shift 2
    in_client "$name" h2load --requests 2000 --clients 8 "$@"
    grep -q "status codes: 2000 2xx" "$dir/$name.log" || fail "$name: $(cat "$dir/$name.log")"
    grep -q "2000 succeeded, 0 failed, 0 errored, 0 timeout" "$dir/$name.log" || fail "$name: $(cat "$dir/$name.log")"
    grep -qF "($((2000 * data))) data" "$dir/$name.log" || fail "$name: not 2000 x $data bytes: $(grep traffic "$dir/$name.log")"
}
one=$(ip netns exec "$tag-client" curl --silent --max-time 20 --output /dev/null --write-out '%{size_download}' \
    --data-binary "@$dir/body" -H "Inference-Header-Content-Length: 0" "http://$vip:8502/v2/models/echo/infer")
h2 h2load_http "$one" --h1 --data "$dir/body" --header "Inference-Header-Content-Length: 0" \
    "http://$vip:8502/v2/models/echo/infer"
# A message of gRPC with its prefix; the answer's length, with its own.
one=$(/usr/bin/python3 - "$dir" <<'PYTHON'
import struct, sys
sys.path.insert(0, sys.argv[1])
import inference_pb2 as pb
data = open(sys.argv[1] + "/body", "rb").read()
asked = pb.ModelInferRequest(model_name="echo")
asked.inputs.add(name="input0", datatype="UINT8", shape=[len(data)])
asked.raw_input_contents.append(data)
message = asked.SerializeToString()
open(sys.argv[1] + "/message", "wb").write(b"\0" + struct.pack(">I", len(message)) + message)
answer = pb.ModelInferResponse(model_name="echo", model_version="1")
answer.outputs.add(name="output0", datatype="UINT8", shape=[len(data)])
answer.raw_output_contents.append(data)
print(5 + answer.ByteSize())
PYTHON
)
h2 h2load_grpc "$one" --max-concurrent-streams 10 --data "$dir/message" --header "content-type: application/grpc" \
    --header "te: trailers" "http://$vip:8502/inference.GRPCInferenceService/ModelInfer"
echo "httpx, wrk ($answers answers), h2load by HTTP/1.1 and gRPC, and Triton's clients' bytes: the models' own answers"
