#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Google's client of gRPC asks by KServe's protocol, on the port that speaks HTTP/1.1 too: raw and typed contents, errors,
# deadlines, cancelled calls, 4 MiB, many calls at once over a connection, streams; two services with one address; TLS.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

/usr/bin/python3 -c 'import grpc, grpc_tools, google.protobuf' 2>/dev/null || skip "no python3-grpcio"
command -v curl >/dev/null || skip "no curl"
topology_up "story$$" 2
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=service -addext "subjectAltName=IP:$vip" -days 2 -keyout "$dir/key.pem" \
    -out "$dir/service.pem" 2>/dev/null
chmod 600 "$dir/key.pem"
tls="tls: {certificate: $dir/service.pem, key: $dir/key.pem}"
topology_config "
  - {name: digits, address: $vip, port: 8500, model: mlp, max_request: 72, max_reply: 52}
  - {name: kserve, protocol: tcp, framing: kserve, address: $vip, port: 8501, model: mlp, max_request: 72, max_reply: 52}
  - {name: echo, protocol: tcp, framing: kserve, address: $vip, port: 8502, model: echo, max_request: 4MiB, max_reply: 4MiB}
  - {name: small, protocol: tcp, framing: kserve, address: $vip, port: 8503, model: mlp, max_request: 72, max_reply: 52}
  - {name: wide, protocol: tcp, framing: kserve, address: $vip, port: 8503, model: echo, max_request: 4MiB, max_reply: 4MiB}
  - {name: secured, protocol: tcp, framing: kserve, address: $vip, port: 8504, model: echo, max_request: 4MiB, max_reply: 4MiB, $tls}" "
# Those that flood with frames are waited for so long.
tcp: {fin_wait_ms: 1000}"
start_lb
/usr/bin/python3 -m grpc_tools.protoc -I "$root/tests/net/grpc" --python_out="$dir" inference.proto || fail "protoc"

# step NAME: a step of grpc/client.py
step() {
    ip netns exec "$tag-client" /usr/bin/python3 "$root/tests/net/grpc/client.py" "$dir" "$vip" "$1" >"$dir/$1.log" 2>&1 ||
        fail "$1: $(tail -n 30 "$dir/$1.log")"
}
# begin_step NAME: the same in the background; has_said NAME LINES; end_step NAME: it has ended
begin_step() {
    ip netns exec "$tag-client" /usr/bin/python3 "$root/tests/net/grpc/client.py" "$dir" "$vip" "$1" >"$dir/$1.log" 2>&1 &
    background=$!
}
has_said() {
    [ "$(wc -l <"$dir/$1.log")" -ge "$2" ]
}
end_step() {
    wait "$background" || fail "$1: $(tail -n 30 "$dir/$1.log")"
}
copies() {
    cli --json stats --all | jq '[.lcores[].payload_copies // 0] | add'
}

step empty
begin_step watch
wait_for "all to be watched" has_said watch 3
start_agent 1 mlp --model-args "weights=$root/gpu-agent/models/digits/digits.safetensors"
start_agent 2 echo --model-args max_request=4194304
wait_for "w1 to be active" worker_is w1 active
wait_for "w2 to be active" worker_is w2 active
end_step watch

# The model's own answer, to a datagram.
ip netns exec "$tag-client" /usr/bin/python3 - "$dir" "$vip" <<'PYTHON'
import socket, struct, sys
rows = "005d910000dfaf5003f20b8004c008800580098004b01c7002e5ac00006da000"
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(10)
sock.connect((sys.argv[2], 8500))
sock.send(struct.pack("<Q", 18446744073709551615) + bytes(int(pixel, 17) for pixel in rows))
open(sys.argv[1] + "/reply", "wb").write(sock.recv(2048))
PYTHON
step infer
step errors
before=$(copies)
step large
expect "copies of payload" "$(copies)" = "$before"
step typed
step frames
step many
step stream
step models
step secured

# A worker that does not answer for now: deadlines pass, and a call is cancelled.
kill -STOP "$pid_w2"
cancelled=$(drops cancelled) deadline=$(drops deadline)
WORKER=$pid_w2 step deadline
# The one that the client gave up; the one whose time it took is given up, too, or ends for its deadline here, whichever
# comes first; and the one that ends for its deadline while its client waits.
cancelled=$(($(drops cancelled) - cancelled)) deadline=$(($(drops deadline) - deadline))
expect "cancelled requests" "$cancelled" -ge 1
expect "requests that ended for their deadline" "$deadline" -ge 1
expect "requests given up, or at their deadline" $((cancelled + deadline)) -eq 3
step after

# Frames for their own sake end their connection, and nobody else's.
ip netns exec "$tag-client" /usr/bin/python3 "$root/tests/net/grpc/floods.py" "$vip" 8501 >"$dir/floods.log" 2>&1 ||
    fail "floods: $(tail -n 30 "$dir/floods.log")"

# The port speaks HTTP/1.1 as before.
ready=$(ip netns exec "$tag-client" curl --silent --max-time 20 "http://$vip:8501/v2/health/ready")
expect "ready by HTTP/1.1" "$ready" = '{"ready":true}'
begin_step watch_end
wait_for "all to be watched again" has_said watch_end 3
# Told to stop, it finishes what it has, and says so: a call that is under way is answered.
kill -STOP "$pid_w2"
WORKER=$pid_w2 LB=$pid_lb step drain
ended() {
    ! is_running "$pid_lb"
}
wait_for "the load balancer to end" ended
end_step watch_end
echo "gRPC: raw and typed tensors, 4 MiB in place, errors, deadlines, cancelled calls, streams, watches, two models, TLS"
