#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# curl asks the model of digits by KServe's protocol over HTTP/1.1, in JSON and in binary: each answer is what
# the model says to a datagram. Errors have a JSON, endpoints answer, connections are kept.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

command -v curl >/dev/null || skip "no curl"
topology_up "story$$" 2
both="
  - {name: small, protocol: tcp, framing: kserve, address: $vip, port: 8503, model: mlp, max_request: 72, max_reply: 52}"
second="
  - {name: wide, protocol: tcp, framing: kserve, address: $vip, port: 8503, model: echo, max_request: 256KiB, max_reply: 256KiB}"
services="
  - {name: digits, address: $vip, port: 8500, model: mlp, max_request: 72, max_reply: 52}
  - {name: kserve, protocol: tcp, framing: kserve, address: $vip, port: 8501, model: mlp, max_request: 72, max_reply: 52}
  - {name: echo, protocol: tcp, framing: kserve, address: $vip, port: 8502, model: echo, max_request: 256KiB, max_reply: 256KiB}$both"
topology_config "$services$second"
start_lb
url=http://$vip:8501/v2

# ask NAME ARGUMENTS...: curl's answer in $dir/NAME, its head in $dir/NAME.head, the status in $status
ask() {
    local name=$1
    shift
    status=$(ip netns exec "$tag-client" curl --silent --show-error --max-time 20 --output "$dir/$name" \
        --dump-header "$dir/$name.head" --write-out '%{http_code}' "$@") || fail "$name: curl ended with $?"
}
# expect_status NAME STATUS JQ: the answer's status, and that JQ holds for its JSON
expect_status() {
    expect "$1: status" "$status" -eq "$2"
    [ -z "${3:-}" ] || jq -e "$3" "$dir/$1" >/dev/null || fail "$1: $(cat "$dir/$1"), expected $3"
}
# head_has NAME FIELD: a field of the answer's head
head_has() {
    tr -d '\r' <"$dir/$1.head" | grep -qix "$2" || fail "$1: no $2 in: $(cat "$dir/$1.head")"
}

# --- without a worker
ask live "$url/health/live"
expect_status live 200 '.live'
ask ready "$url/health/ready"
expect_status ready 503 '.ready == false'
head_has ready "Retry-After: 1"
ask none -d '{"inputs":[]}' "$url/models/mlp/infer"
expect_status none 503 '.error == "the model '"'mlp'"' has no workers"'

start_agent 1 mlp --model-args "weights=$root/gpu-agent/models/digits/digits.safetensors"
start_agent 2 echo --model-args max_request=262144
wait_for "w1 to be active" worker_is w1 active
wait_for "w2 to be active" worker_is w2 active

# --- a picture: its JSON, its bytes, and what the model says of them to a datagram
/usr/bin/python3 - "$dir" <<'PYTHON'
import json, struct, sys
rows = "005d910000dfaf5003f20b8004c008800580098004b01c7002e5ac00006da000"
pixels = [int(pixel, 17) for pixel in rows]
at = sys.argv[1] + "/"
tensors = [{"name": "id", "shape": [1, 1], "datatype": "UINT64"}, {"name": "pixels", "shape": [1, 64], "datatype": "UINT8"}]
values = [[18446744073709551615], [pixels]]
body = struct.pack("<Q", 18446744073709551615) + bytes(pixels)
write = lambda name, data: open(at + name, "wb").write(data)
write("request", body)
asked = {"id": "seven", "inputs": [dict(t, data=v) for t, v in zip(tensors, values)]}
write("json", json.dumps(asked).encode())
write("sorted", json.dumps(dict(asked, inputs=asked["inputs"][::-1]), sort_keys=True).encode())
head = {"inputs": [dict(t, parameters={"binary_data_size": n}) for t, n in zip(tensors, (8, 64))],
        "parameters": {"binary_data_output": True}}
text = json.dumps(head).encode()
write("binary", text + body)
write("length", str(len(text)).encode())
head["inputs"].reverse()
head["outputs"] = [{"name": "scores", "parameters": {"binary_data": True}}, {"name": "class", "parameters": {"binary_data": False}}]
text = json.dumps(head).encode()
write("mixed", text + body[8:] + body[:8])
write("mixed_length", str(len(text)).encode())
PYTHON
ip netns exec "$tag-client" /usr/bin/python3 - "$dir" "$vip" <<'PYTHON'
import json, socket, struct, sys
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(10)
sock.connect((sys.argv[2], 8500))
sock.send(open(sys.argv[1] + "/request", "rb").read())
reply = sock.recv(2048)
open(sys.argv[1] + "/reply", "wb").write(reply)
number, digit, *scores = struct.unpack("<QI10f", reply)
json.dump([digit, scores], open(sys.argv[1] + "/own.json", "w"))
PYTHON

# check NAME: the JSON has the model's own class and scores, each float to its last bit
check() {
    /usr/bin/python3 - "$dir/$1" "$dir/own.json" <<'PYTHON' || fail "$1: $(cat "$dir/$1")"
import json, struct, sys
answer, (digit, scores) = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))
outputs = {o["name"]: (o["datatype"], o["shape"], o["data"]) for o in answer["outputs"]}
assert answer["model_name"] == "mlp" and answer["id"] == "seven", answer
assert outputs["id"] == ("UINT64", [1, 1], [18446744073709551615]), outputs
assert outputs["class"] == ("UINT32", [1, 1], [digit]), outputs
assert outputs["scores"][:2] == ("FP32", [1, 10]), outputs
assert [struct.pack("<f", s) for s in outputs["scores"][2]] == [struct.pack("<f", s) for s in scores], outputs
PYTHON
}
ask in_json --data-binary "@$dir/json" -H "Content-Type: application/json" "$url/models/mlp/infer"
expect_status in_json 200
head_has in_json "Content-Type: application/json"
check in_json
ask in_sorted --data-binary "@$dir/sorted" "$url/models/mlp/infer"
expect_status in_sorted 200
check in_sorted
ask of_version --data-binary "@$dir/json" "$url/models/mlp/versions/1/infer"
expect_status of_version 200
check of_version

# --- binary tensors: the bytes behind the JSON are the model's
ask in_binary --data-binary "@$dir/binary" -H "Inference-Header-Content-Length: $(cat "$dir/length")" "$url/models/mlp/infer"
expect_status in_binary 200
tail -c 52 "$dir/in_binary" | cmp - "$dir/reply" || fail "in_binary: other bytes than by UDP"
head_has in_binary "Inference-Header-Content-Length: $(($(stat -c %s "$dir/in_binary") - 52))"
head -c -52 "$dir/in_binary" | jq -e '[.outputs[].parameters.binary_data_size] == [8, 4, 40]' >/dev/null ||
    fail "in_binary: $(head -c -52 "$dir/in_binary")"

# Inputs in another order, one output in binary, one in JSON.
ask mixed_up --data-binary "@$dir/mixed" -H "Inference-Header-Content-Length: $(cat "$dir/mixed_length")" "$url/models/mlp/infer"
expect_status mixed_up 200
tail -c 40 "$dir/mixed_up" | cmp - <(tail -c 40 "$dir/reply") || fail "mixed_up: other scores than by UDP"
head -c -40 "$dir/mixed_up" | jq -e --slurpfile own "$dir/own.json" \
    '.outputs[0].name == "scores" and .outputs[1].data == [$own[0][0]] and (.outputs | length) == 2' >/dev/null ||
    fail "mixed_up: $(head -c -40 "$dir/mixed_up")"

# --- 200 KiB: raw, with 100-continue, placed without a copy; the same in JSON comes back in JSON
head -c 200000 /dev/urandom >"$dir/large"
copies() {
    cli --json stats --all | jq '[.lcores[].payload_copies // 0] | add'
}
before=$(copies)
ask large_raw --data-binary "@$dir/large" -H "Expect: 100-continue" -H "Inference-Header-Content-Length: 0" \
    "http://$vip:8502/v2/models/echo/infer"
expect_status large_raw 200
head_has large_raw "HTTP/1.1 100 Continue"
tail -c 200000 "$dir/large_raw" | cmp - "$dir/large" || fail "large_raw: other bytes than were sent"
expect "copies of payload" "$(copies)" = "$before"
/usr/bin/python3 -c 'import json, sys
data = list(open(sys.argv[1], "rb").read())
print(json.dumps({"inputs": [{"name": "input0", "shape": [len(data)], "datatype": "UINT8", "data": data}]}))' \
    "$dir/large" >"$dir/large_json"
ask large_text --data-binary "@$dir/large_json" "http://$vip:8502/v2/models/echo/infer"
expect_status large_text 200
/usr/bin/python3 -c 'import json, sys
answer = json.load(open(sys.argv[1]))["outputs"][0]
assert bytes(answer["data"]) == open(sys.argv[2], "rb").read() and answer["shape"] == [200000]' \
    "$dir/large_text" "$dir/large" || fail "large_text: $(head -c 300 "$dir/large_text")"
/usr/bin/python3 -c 'print("0" * 262145, end="")' >"$dir/too_long"
ask too_large --data-binary "@$dir/too_long" -H "Inference-Header-Content-Length: 0" "http://$vip:8502/v2/models/echo/infer"
expect_status too_large 413 '.error'

# --- the same bodies in chunks, as curl cuts them, and as an HTTP library of a programming language sends a generator
ask chunked -H "Transfer-Encoding: chunked" --data-binary "@$dir/json" "$url/models/mlp/infer"
expect_status chunked 200
check chunked
ask chunked_binary -H "Transfer-Encoding: chunked" --data-binary "@$dir/binary" \
    -H "Inference-Header-Content-Length: $(cat "$dir/length")" "$url/models/mlp/infer"
expect_status chunked_binary 200
cmp "$dir/chunked_binary" "$dir/in_binary" || fail "chunked_binary: another answer than with Content-Length"
before=$(copies)
ask chunked_raw -H "Transfer-Encoding: chunked" --data-binary "@$dir/large" -H "Inference-Header-Content-Length: 0" \
    "http://$vip:8502/v2/models/echo/infer"
expect_status chunked_raw 200
cmp "$dir/chunked_raw" "$dir/large_raw" || fail "chunked_raw: another answer than with Content-Length"
expect "copies of payload, chunked" "$(copies)" = "$before"
ask chunked_too_large -H "Transfer-Encoding: chunked" --data-binary "@$dir/too_long" -H "Inference-Header-Content-Length: 0" \
    "http://$vip:8502/v2/models/echo/infer"
expect_status chunked_too_large 413 '.error'
ip netns exec "$tag-client" /usr/bin/python3 - "$dir" "$vip" <<'PYTHON' || fail "bodies of generators"
import http.client, sys
read = lambda name: open(sys.argv[1] + "/" + name, "rb").read()
large = read("large")
tensor = b'{"inputs":[{"name":"input0","shape":[200000],"datatype":"UINT8","parameters":{"binary_data_size":200000}}]' \
    b',"parameters":{"binary_data_output":true}}'
connection = http.client.HTTPConnection(sys.argv[2], 8502, timeout=20)
for body, json, ending in ((large, 0, large), (large[:700], 0, large[:700]), (tensor + large, len(tensor), large),
                           (read("large_json"), None, b"]}]}")):
    for size in (13, 1000, 65536):
        pieces = (body[i:i + size] for i in range(0, len(body), size))
        head = {} if json is None else {"Inference-Header-Content-Length": str(json)}
        connection.request("POST", "/v2/models/echo/infer", pieces, head)
        answer = connection.getresponse()
        bytes = answer.read()
        assert answer.status == 200 and bytes.endswith(ending), (answer.status, size, bytes[:300])
# A model that is not there: the body is read all the same, and the connection lives.
connection.request("POST", "/v2/models/other/infer", (large[i:i + 999] for i in range(0, 200000, 999)))
assert connection.getresponse().read().startswith(b'{"error":')
connection.auto_open = 0
connection.request("GET", "/v2")
assert connection.getresponse().status == 200
PYTHON

# --- several requests on one connection
requests=()
for n in 1 2 3 4 5; do
    requests+=(--next --silent --max-time 20 --data-binary "@$dir/json" --output "$dir/kept$n" --write-out "%{num_connects}"
        "$url/models/mlp/infer")
done
connects=$(ip netns exec "$tag-client" curl "${requests[@]:1}") || fail "five requests: curl ended with $?"
expect "connections that five requests made" "$connects" = 10000
for n in 1 2 3 4 5; do
    check "kept$n"
done

# The client guide's example.
said=$(ip netns exec "$tag-client" sh "$root/deploy/docs/examples/infer_http.sh" "$vip:8501")
expect "the example of the client guide" "$said" = \
    '{"model_name":"mlp","model_version":"1","outputs":[{"name":"class","datatype":"UINT32","shape":[1,1],"data":[0]}]}'

# --- errors
ask elsewhere --data-binary "@$dir/json" "$url/models/resnet/infer"
expect_status elsewhere 404 '.error | contains("resnet")'
ask nowhere "http://$vip:8501/"
expect_status nowhere 404 '.error'
ask no_json --data-binary '{"inputs":[}' "$url/models/mlp/infer"
expect_status no_json 400 '.error'
ask no_rows -d '{"inputs":[{"name":"id","shape":[0,1],"datatype":"UINT64","data":[]}]}' "$url/models/mlp/infer"
expect_status no_rows 400 '.error | contains("0 rows, the model takes 1 to 32")'
ask get_infer "$url/models/mlp/infer"
expect_status get_infer 405 '.error'
head_has get_infer "Allow: POST"
ask generate -d '{}' "$url/models/mlp/generate"
expect_status generate 501 '.error'

# --- two services of one address: the model's name in the path says which is asked
two=http://$vip:8503/v2
ask index -d '{}' -H "Transfer-Encoding: chunked" "$two/repository/index"
expect_status index 200 '. == [{"name":"mlp","version":"1","state":"READY","reason":""},
    {"name":"echo","version":"1","state":"READY","reason":""}]'
answers=$(ip netns exec "$tag-client" curl --silent --max-time 20 --write-out '%{num_connects}' \
    --data-binary "@$dir/json" --output "$dir/two_json" "$two/models/mlp/infer" \
    --next --silent --max-time 20 --write-out '%{num_connects}' --data-binary "@$dir/large" \
    -H "Inference-Header-Content-Length: 0" --output "$dir/two_large" "$two/models/echo/infer") ||
    fail "two models: curl ended with $?"
expect "connections to two models" "$answers" = 10
check two_json
tail -c 200000 "$dir/two_large" | cmp - "$dir/large" || fail "two_large: other bytes than were sent"
ask two_ready "$two/models/echo/ready"
expect_status two_ready 200 '.ready'
ask statistics "$two/models/mlp/stats"
expect_status statistics 200 '.model_stats | length == 1 and (.[0] | .name == "mlp" and .version == "1"
    and .inference_count == 1 and .inference_stats.success.count == 1 and .inference_stats.success.ns > 1000
    and .inference_stats.compute_infer.ns > 0 and .last_inference > 1700000000000)'
ask all_statistics "$two/models/stats"
expect_status all_statistics 200 '[.model_stats[].name] == ["mlp", "echo"]'
expect "requests by service" "$(cli --json services list | jq -c '[.services[] | select(.port == 8503) | [.name, .requests]]')" = \
    '[["small",1],["wide",1]]'
topology_config "$services"
cli config apply >"$dir/applied" || fail "config apply: $(cat "$dir/applied")"
grep -q "services\[wide\]" "$dir/applied" || fail "config apply says: $(cat "$dir/applied")"
ask removed -d '{"inputs":[]}' "$two/models/echo/infer"
expect_status removed 404 '.error'
ask still --data-binary "@$dir/json" "$two/models/mlp/infer"
expect_status still 200
check still

# --- endpoints
ask ready "$url/health/ready"
expect_status ready 200 '.ready'
ask model "$url/models/mlp"
expect_status model 200 '.name == "mlp" and .inputs[1] == {"name":"pixels","datatype":"UINT8","shape":[-1,64]}'
ask model_ready "$url/models/mlp/ready"
expect_status model_ready 200
ask server "$url"
expect_status server 200 '.extensions | index("binary_tensor_data")'
ask only_head --head "$url/health/live"
expect_status only_head 200
expect "body of HEAD" "$(grep -c live "$dir/only_head")" -eq 0
echo "the model's own answers in JSON and in binary; errors and endpoints as in KServe"
