#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The access log: a line of JSON for each request by HTTP and gRPC, with what the client saw and where the time went;
# errors, clients that go, timeouts; a sample; SIGHUP after the file was renamed; a disk that is full costs lines only.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

command -v curl >/dev/null || skip "no curl"
/usr/bin/python3 -c 'import grpc, grpc_tools, google.protobuf' 2>/dev/null || skip "no python3-grpcio"
topology_up "story$$" 2
log=$dir/access.log
services="
  - {name: digits, protocol: tcp, framing: kserve, address: $vip, port: 8501, model: mlp, max_request: 72, max_reply: 52}
  - {name: echo, protocol: tcp, framing: kserve, address: $vip, port: 8501, model: echo, max_request: 64KiB, max_reply: 64KiB,
     request_timeout_ms: 2000}"
topology_config "$services" "log: {access: $log}"
start_lb
/usr/bin/python3 -m grpc_tools.protoc -I "$root/tests/net/grpc" --python_out="$dir" inference.proto || fail "protoc"
url=http://$vip:8501/v2

# ask ARGUMENTS...: curl's status in $status
ask() {
    status=$(ip netns exec "$tag-client" curl --silent --max-time 20 --output "$dir/answer" --write-out '%{http_code}' "$@") ||
        fail "curl ended with $?: $*"
}
# lines JQ: how many lines of the log it holds for
lines() {
    jq -s "[.[] | select($1)] | length" "$log"
}
lines_are() {
    [ "$(lines "$1")" -eq "$2" ]
}
# expect_line JQ: within the wait one line more than so far is as JQ says
expect_line() {
    wait_for "a line with $1" lines_are "$1" 1 || fail "no such line: $1; the last ones: $(tail -n 5 "$log")"
}

ask "$url/health/ready"
expect_line '.call == "ready" and .status == 503 and .protocol == "http/1.1" and .service == "digits" and .model == null
    and .client == "10.200.0.2" and .port > 1023 and .bytes_in == 0 and .bytes_out == 15 and .id == null
    and .queue_us == null and .worker_us == null and (.time | test("^20[0-9-]+T[0-9:]+[.][0-9]{6}Z$"))'
start_agent 1 mlp --model-args "weights=$root/gpu-agent/models/digits/digits.safetensors"
start_agent 2 echo --model-args max_request=65536
wait_for "w1 to be active" worker_is w1 active
wait_for "w2 to be active" worker_is w2 active

# --- what the client saw
echo '{"id":"a\"b","inputs":[{"name":"input0","shape":[3],"datatype":"UINT8","data":[1,2,3]}]}' >"$dir/json"
ask --data-binary "@$dir/json" "$url/models/echo/infer"
expect "status" "$status" -eq 200
expect_line ".id == \"a\\\"b\" and .call == \"infer\" and .status == 200 and .service == \"echo\" and .model == \"echo\"
    and .bytes_in == $(stat -c %s "$dir/json") and .bytes_out == $(stat -c %s "$dir/answer")
    and .queue_us >= 0 and .worker_us > 0 and .total_us >= .queue_us + .worker_us"
head -c 50000 /dev/urandom >"$dir/large"
ask --data-binary "@$dir/large" -H "Inference-Header-Content-Length: 0" -H "Transfer-Encoding: chunked" "$url/models/echo/infer"
expect "status" "$status" -eq 200
expect_line ".bytes_in == 50000 and .bytes_out == $(stat -c %s "$dir/answer") and .worker_us > 0 and .status == 200"
pixels=$(printf '7,%.0s' {1..192})
ask -d '{"id":"rows","inputs":[{"name":"id","shape":[3,1],"datatype":"UINT64","data":[1,2,3]},
    {"name":"pixels","shape":[3,64],"datatype":"UINT8","data":['"${pixels%,}"']}]}' "$url/models/mlp/infer"
expect "status of a batch: $(cat "$dir/answer")" "$status" -eq 200
expect_line '.id == "rows" and .model == "mlp" and .queue_us >= 0 and .worker_us > 0 and .total_us >= .queue_us + .worker_us'
ask -d '{"id":"bad","inputs":[{"name":"x","shape":[1],"datatype":"UINT8","data":[1]}]}' "$url/models/echo/infer"
expect "status" "$status" -eq 400
expect_line '.id == "bad" and .status == 400 and .model == "echo" and .worker_us == null'
ask --head "$url/health/live"
expect_line '.call == "live" and .status == 200 and .bytes_out == 0'
ask --head "$url/models/x"
expect_line '.call == "model" and .status == 404 and .bytes_out == 0 and .model == null'
ask -d '{}' "$url/models/other/infer"
expect_line '.call == "infer" and .status == 404 and .model == null and .service == "digits"'
ask "http://$vip:8501/nowhere"
expect_line '.call == null and .status == 404'
ask -d '{}' "$url/models/echo/generate"
expect_line '.call == "generate" and .status == 501 and .model == "echo"'

# --- gRPC, messages of a stream, calls that are cancelled; and the same names and sizes as the client's
ip netns exec "$tag-client" /usr/bin/python3 "$root/tests/net/kserve/access_grpc.py" "$dir" "$vip:8501" >"$dir/grpc.log" 2>&1 ||
    fail "$(tail -n 20 "$dir/grpc.log")"
read -r in out < <(cat "$dir/sizes")
expect_line ".call == \"ModelInfer\" and .protocol == \"grpc\" and .status == 0 and .id == \"unary\" and .model == \"echo\"
    and .bytes_in == $in and .bytes_out == $out and .worker_us > 0"
wait_for "lines of a stream" lines_are '.call == "ModelStreamInfer" and .status == 0 and .worker_us > 0' 3
expect_line '.call == "ModelStreamInfer" and .status == 3 and .id == "wrong"'
expect_line '.call == "ModelInfer" and .status == 5 and .model == null'
expect_line '.call == "ServerLive" and .status == 0 and .bytes_out == 2'
expect_line '.call == null and .protocol == "grpc" and .status == 12'

# --- a worker that does not answer: the time is over; the client goes; the call is cancelled
kill -STOP "$pid_w2"
ask -d '{"id":"late","inputs":[{"name":"input0","shape":[1],"datatype":"UINT8","data":[1]}]}' "$url/models/echo/infer"
expect "status" "$status" -eq 504
expect_line '.id == "late" and .status == 504 and .worker_us >= 2000000 and .total_us >= .worker_us'
ip netns exec "$tag-client" /usr/bin/python3 "$root/tests/net/kserve/access_gone.py" "$dir" "$vip" 8501 >"$dir/gone.log" 2>&1 ||
    fail "$(tail -n 20 "$dir/gone.log")"
expect_line '.id == "gone" and .status == 499 and .call == "infer" and .client == "10.200.0.2"'
expect_line '.id == "reset" and .status == 1 and .call == "ModelInfer"'
kill -CONT "$pid_w2"
wait_for "w2 to be active" worker_is w2 active

# --- the file is renamed, as logrotate does
mv "$log" "$log.1"
kill -HUP "$pid_lb"
wait_for "a new file" test -f "$log"
ask "$url/health/live"
expect_line '.call == "live"'
jq -es 'length > 10' "$log.1" >/dev/null || fail "the old file is not whole: $(tail -n 2 "$log.1")"

# --- one of ten, without a restart
topology_config "$services" "log: {access: $log, access_one_in: 10}"
cli config apply >"$dir/applied" || fail "config apply: $(cat "$dir/applied")"
cli --json stats --all | jq '[.lcores[].access_lines] | add' >"$dir/before"
ip netns exec "$tag-client" curl --silent --max-time 20 --output /dev/null "$url/health/live?[1-1000]" ||
    fail "curl ended with $?"
given=$(($(cli --json stats --all | jq '[.lcores[].access_lines] | add') - $(cat "$dir/before")))
# 1000 requests: 100 lines, and a standard deviation of 9.5
expect "lines of 1000 requests" "$given" -gt 40
expect "lines of 1000 requests" "$given" -lt 160
expect "lines that were dropped" "$(cli --json stats --all | jq '[.lcores[].access_dropped] | add')" -eq 0

# --- a disk that is full, which is /dev/full here: the load balancer goes on
stop "$pid_lb"
topology_config "$services" "log: {access: /dev/full}"
start_lb
ask "$url/health/live"
expect "status" "$status" -eq 200
expect_log lb "access log not written: path=/dev/full"
stop "$pid_lb"
topology_config "$services" "log: {access: $dir/fresh.log}"
expect_check 0 "good"
expect "files that --check made" "$(find "$dir" -name fresh.log | wc -l)" -eq 0
topology_config "$services" "log: {access: $dir/none/access.log}"
expect_check 1 "log.access: cannot open $dir/none/access.log: No such file"
status=0
"$build/doorbell-lb" --config "$dir/lb.yaml" >"$dir/refused" 2>&1 || status=$?
expect "exit status without a folder" "$status" -eq 1
grep -q "log.access: cannot open $dir/none/access.log: No such file" "$dir/refused" || fail "$(cat "$dir/refused")"
echo "a line per request by HTTP and gRPC, renamed files, samples, and a full disk"
