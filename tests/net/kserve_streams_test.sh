#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Replies in pieces: a model of text says a word at a time. By HTTP they are events of generate_stream, or one object
# of generate; by gRPC messages of ModelStreamInfer. Silence is filled, time runs out, clients leave, the model fails,
# the load balancer is killed. Where there is a GPU the model runs there.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

/usr/bin/python3 -c 'import grpc, grpc_tools, google.protobuf' 2>/dev/null || skip "no python3-grpcio"
command -v curl >/dev/null || skip "no curl"
topology_up "story$$" 1
topology_config "
  - {name: text, protocol: tcp, framing: kserve, address: $vip, port: 8501, model: words, max_request: 256KiB, max_reply: 256KiB}
  - {name: echo, protocol: tcp, framing: kserve, address: $vip, port: 8502, model: echo, max_request: 64KiB, max_reply: 64KiB}" \
    "tcp: {stream_heartbeat_ms: 150}"
start_lb
/usr/bin/python3 -m grpc_tools.protoc -I "$root/tests/net/grpc" --python_out="$dir" inference.proto || fail "protoc"

# step NAME: a step of kserve/streams.py
step() {
    ip netns exec "$tag-client" /usr/bin/python3 "$root/tests/net/kserve/streams.py" "$dir" "$vip" "$1" >"$dir/$1.log" 2>&1 ||
        fail "$1: $(tail -n 30 "$dir/$1.log")"
}
# serve ARGUMENTS: a worker whose model has these, in place of the one before
serve() {
    [ -z "${pid_w1:-}" ] || stop "$pid_w1"
    start_agent 1 words --model-args "max_request=262144${1:+,$1}"
    wait_for "w1 to be active" worker_is w1 active
}
all_free() {
    [ "$(cli --json workers list | jq '.workers[] | select(.name == "w1").outstanding')" -eq 0 ]
}

serve
loop=$(grep -om1 'loop=[a-z]*' "$dir/w1.log")
step words
step errors
step calls

# curl, as it is: the events and the end of the answer.
events=$(ip netns exec "$tag-client" curl --silent --show-error --no-buffer --max-time 20 --dump-header "$dir/head" \
    -d '{"text_input":"to be or not"}' "http://$vip:8501/v2/models/words/generate_stream") || fail "curl ended with $?"
tr -d '\r' <"$dir/head" | grep -qix "Content-Type: text/event-stream" || fail "head: $(cat "$dir/head")"
expect "words by curl" "$(grep '^data: ' <<<"$events" | cut -c 7- | jq -j .text_output)" = "to be or not"
expect "events by curl" "$(grep -c '^data: ' <<<"$events")" -eq 4

# A word each 50 ms: they come one by one; time runs out; the client goes away in the middle.
serve delay_us=50000
step one_by_one
step deadline
before=$(drops cancelled)
step leaves
cancelled() {
    [ "$(drops cancelled)" -ge $((before + 2)) ]
}
wait_for "the requests of clients that left to be cancelled" cancelled
wait_for "the worker to have no request" all_free

# A word each 700 ms: comments fill the silence.
serve delay_us=700000
step silence

# The model fails in the middle, and at once; it has more pieces than it said.
serve fail_after=2
step fails
serve fail_after=0
step fails_at_once
serve max_pieces=3
step too_many_pieces
wait_for "the worker to have no request" all_free
# The load balancer is killed in the middle of streams; its successor gets the same worker, all of whose rows are free.
serve delay_us=50000
BALANCER=$pid_lb step balancer_lost
stop "$pid_lb" KILL
start_lb
wait_for "w1 to be active" worker_is w1 active
step one_by_one
wait_for "the worker to have no request" all_free
# The worker goes in the middle of a stream.
WORKER=$pid_w1 step worker_lost
echo "a word at a time by SSE and gRPC: in time, silent, late, cancelled, failed; $loop"
