#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The libraries for clients against a real load balancer, over UDP and TCP: what `meson install` puts there is enough to
# build and run the examples of the client guide; every request ends as it should when datagrams are lost, doubled and
# late, when there is no worker, when a deadline cannot be kept, and across a restart.
#
# Runs beside another: no limit of it is a time.
. "$(dirname "$0")/story.sh"

for program in cc pkg-config meson; do
    command -v $program >/dev/null || skip "no $program"
done
topology_up "story$$" 2
topology_config "
  - {name: digits, address: $vip, port: 8501, model: mlp, framing: tagged, max_request: 72}
  - {name: tagged, address: $vip, port: 8502, model: echo, framing: tagged, queue_timeout_ms: 10000}
  - {name: plain, address: $vip, port: 8503, model: echo, queue_timeout_ms: 10000}
  - {name: stream, protocol: tcp, framing: tagged, address: $vip, port: 8504, model: echo, max_request: 1400, max_reply: 1400}
  - {name: length, protocol: tcp, address: $vip, port: 8505, model: echo, max_request: 1400, max_reply: 1400}"

# Built with what is installed, and with nothing of the tree.
meson install -C "$build" --no-rebuild --destdir "$dir/stage" >"$dir/install.log" 2>&1 ||
    fail "meson install: $(tail -n 3 "$dir/install.log")"
libraries=$(dirname "$(find "$dir/stage" -name libdoorbell-client.so)")
module=$(dirname "$(find "$dir/stage" -name doorbell_client.py)")
pc() {
    PKG_CONFIG_PATH=$libraries/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dir/stage pkg-config "$@" doorbell-client
}
# shellcheck disable=SC2046
cc -std=c11 -Wall -Wextra -Werror -o "$dir/infer" "$root/deploy/docs/examples/infer.c" $(pc --cflags --libs) ||
    fail "the example does not compile"
# shellcheck disable=SC2046
cc -Wall -Wextra -Werror -D_GNU_SOURCE -o "$dir/ask" "$root/tests/client/ask.c" $(pc --cflags) \
    "$libraries/libdoorbell-client.a" || fail "the static library does not link"
expect "names that the library shows and should not" \
    "$(nm -D --defined-only "$libraries/libdoorbell-client.so" | grep -cv ' doorbell_client_')" -eq 0

in_client() {
    ip netns exec "$tag-client" env LD_LIBRARY_PATH="$libraries" PYTHONPATH="$module" "$@"
}

# example COMMAND...: runs it; its output in $said, its exit status in $status
example() {
    status=0
    said=$(in_client "$@" 2>&1) || status=$?
}

start_lb
for command in "$dir/infer" "python3 $root/deploy/docs/examples/infer.py"; do
    # shellcheck disable=SC2086
    example $command "$vip:8501"
    expect "${command##*/} without a worker: exit status" "$status" -eq 1
    grep -q "^no reply: busy" <<<"$said" || fail "${command##*/} without a worker: $said"
done

start_agent 1 mlp --model-args "weights=$root/gpu-agent/models/digits/digits.safetensors"
start_agent 2 echo
wait_for "w1 to be active" worker_is w1 active
wait_for "w2 to be active" worker_is w2 active
for command in "$dir/infer" "python3 $root/deploy/docs/examples/infer.py"; do
    # shellcheck disable=SC2086
    example $command "$vip:8501"
    expect "${command##*/}: exit status" "$status" -eq 0
    expect "${command##*/}" "$said" = "this picture shows a 0"
done

# echoes NAME ADDRESS FRAMING COUNT OPTION...: client-ask gets each request back; by TCP if $protocol says so
echoes() {
    local name=$1 address=$2 framing=$3 texts
    texts=$(seq -f 'request number %g' 1 "$4")
    shift 4
    mapfile -t texts <<<"$texts"
    in_client "$dir/ask" "$address" "${protocol:-udp}" "$framing" "$@" -- "${texts[@]}" >"$dir/$name.said"
    expect "$name: right replies" \
        "$(paste -d'|' "$dir/$name.said" <(printf '%s\n' "${texts[@]}") | grep -cE '^ok [0-9]+ (.*)\|\1$')" \
        -eq ${#texts[@]}
}
echoes tagged "$vip:8502" tagged 1000
echoes plain "$vip:8503" datagram 200
expect "tries" "$(awk '{ n += $2 } END { print n }' "$dir/tagged.said" "$dir/plain.said")" -eq 1200
protocol=tcp echoes tcp-tagged "$vip:8504" tagged 1000
protocol=tcp echoes tcp-length "$vip:8505" length 1000

# The same over a wire that loses a seventh each way, and doubles and delays others.
for port in 8502 8503; do
    start "wire-$port" client python3 "$root/tests/client/bad_wire.py" $port "$vip:$port" "${SEED:-1}"
    expect_log "wire-$port" ready
done
bad="deadline_ms=120000 retries=1000 idempotent=1 try_ms=200"
# shellcheck disable=SC2086
echoes bad-tagged 127.0.0.1:8502 tagged 500 $bad
# shellcheck disable=SC2086
echoes bad-plain 127.0.0.1:8503 datagram 50 $bad
again=$(awk '{ n += $2 - 1 } END { print n }' "$dir/bad-tagged.said" "$dir/bad-plain.said")
expect "requests sent again over the bad wire" "$again" -gt 50

# One at a time of 100 ms: five of ten are cancelled, and the load balancer says so of each.
stop "$pid_w2"
start_agent 2 echo --model-args batch_us=100000,sleep=1 --max-batch 1 --slots 2
wait_for "w2 to be active again" worker_is w2 active
in_client python3 "$here/client_library.py" "$vip:8502" cancel >"$dir/cancel.json" 2>"$dir/cancel.log" ||
    fail "cancel: $(tail -n 3 "$dir/cancel.log")"
expect "notices to cancelled requests" "$(figure cancel result)" -eq 5
in_client "$dir/ask" "$vip:8502" udp tagged deadline_ms=10 -- one >"$dir/deadline.said"
grep -qE '^(deadline|expired|no answer) 1 $' "$dir/deadline.said" || fail "deadline: $(cat "$dir/deadline.said")"
# A client with plain datagrams, at a service whose framing is tagged.
in_client "$dir/ask" "$vip:8502" udp datagram -- "not a tagged request" >"$dir/malformed.said"
expect "the wrong framing" "$(cat "$dir/malformed.said")" = "malformed 1 "

# Requests go on while the load balancer ends and starts again.
stop "$pid_w2"
start_agent 2 echo
wait_for "w2 to be active once more" worker_is w2 active
start asks client env PYTHONPATH="$module" python3 "$here/client_library.py" "$vip:8502" restart
expect_log asks asking
wait_for "requests" requests_above w2 100
stop "$pid_lb"
expect "exit status of the load balancer" "$status" -eq 0
start_lb
wait_for "w2 to be active after the restart" worker_is w2 active
wait_for "requests after the restart" requests_above w2 100
stop "$pid_asks"
expect "exit status of the client" "$status" -eq 0
figures=$(tail -n 1 "$dir/asks.log")
expect "requests without their reply" "$(jq '.result - .replies' <<<"$figures")" -eq 0
expect "requests sent again" "$(jq .retries <<<"$figures")" -gt 0

echo "1200 replies in C; 550 over a bad wire, $again of them sent again; $(jq .result <<<"$figures") from Python across" \
    "a restart, $(jq .retries <<<"$figures") sent again"
