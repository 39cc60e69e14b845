#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Clients that want to harm others by KServe's protocol, over HTTP/1.1 and as gRPC: what each attack can have is bounded,
# its connections end, what ended them is counted by its name, a client of another address is answered
# beside each, on connections that it had and on new ones, and after the attacker has left, all is as before.
#
# Runs beside another: it asks for answers, not for their time.
. "$(dirname "$0")/story.sh"

patience_s=25
topology_up "story$$" 1
attackers=
for address in 3 11 12 13 14 15; do
    ip -n "$tag-client" addr add "10.200.0.$address/24" dev c0
    [ "$address" -eq 3 ] || attackers+=" 10.200.0.$address"
done
flows=1024 topology_config "
  - {name: echo, protocol: tcp, framing: kserve, address: $vip, port: 8500, model: echo, max_request: 64KiB, max_reply: 64KiB, queue: 2048, queue_timeout_ms: 20000}" "
tcp: {connections: 400, buffer_mb: 32, fin_wait_ms: 1000}
new_flows_per_source: 100000"
start_lb
start_agent 1 echo --model-args max_request=65536
wait_for "w1 to be active" worker_is w1 active

# shellcheck disable=SC2086
tell_client kserve_abuse.py "$vip" 8500 10.200.0.3 $attackers

# attack ANSWER COMMAND...
attack() {
    local expected=$1
    shift
    tell "$@"
    [[ $answer =~ ^$expected$ ]] || fail "$*: $answer"
    attacks=$((attacks + 1))
}
# beside WHAT: another client is answered
beside() {
    tell innocent
    expect "another client beside $1" "$answer" = right
    tell fresh
    expect "new connections of another client beside $1" "$answer" = right
}
more_drops() {
    [ "$(drops "$1")" -gt "$2" ]
}
# All that is in use.
in_use() {
    cli --json stats | jq -c '.lcores[0] | [.memory, .flows.live, (.tcp |
        {connections, half_open, busy, held_packets, requests, large_requests, pieces, clients})]'
}
as_before() {
    [ "$(in_use)" = "$before" ]
}
# over WHAT: the attacker leaves, and all is as before
over() {
    tell leave
    wait_for "the end of $1" as_before || fail "$1: in use: $(in_use), before: $before"
}
# counted REASON N: at least so many more than before
counted() {
    expect "drops for $1" $(($(drops "$1") - was)) -ge "$2"
}

attacks=0
beside nothing
# Only the two connections are left, and their last packets are acknowledged.
quiet() {
    [ "$(cli --json stats | jq -c '.lcores[0] | [.tcp.connections, .memory.packets]')" = "[2,0]" ]
}
wait_for "the end of the fresh connections" quiet
before=$(in_use)

# --- HTTP/1.1
attack "refused [0-9]+" malformed
beside "malformed heads"
over "malformed heads"
attack "refused [0-9]+" json
beside "malformed JSON"
over "malformed JSON"
attack "answered 8" answers 8 2
beside "long answers in JSON"
over "long answers in JSON"
attack "refused 5000" small 5000
beside "small requests"
over "small requests"

# One client has a share of what reads heads; many lose theirs soon.
was=$(drops tcp_slow)
attack begun heads 60
beside "halves of heads of one client"
over "halves of heads of one client"
attack begun heads 200 5
beside "halves of heads of five clients"
wait_for "the end of halves" more_drops tcp_slow "$was"
over "halves of heads"

# --- HTTP/2
was=$(drops http2_fault)
attack "ended ([0-9]+)" frames
ended=${BASH_REMATCH[1]}
counted http2_fault "$ended"
beside "frames that are not valid"
over "frames that are not valid"
attack "refused [0-9]+" calls
beside "calls that are none"
over "calls that are none"
nothing="pings settings acks empty padding long_padding priorities updates late_updates unknown"
for name in bombs rapid provoked continuations entries windows unread $nothing; do
    was=$(drops http2_fault)
    attack ended flood $name
    counted http2_fault 1
    beside "a flood of $name"
    over "a flood of $name"
done
was=$(drops http2_fault)
for name in $nothing; do
    attack lives some $name
    beside "some $name"
    over "some $name"
done
expect "drops for what is no flood" "$(drops http2_fault)" = "$was"
was=$(drops http2_full)
attack "ended 8" sessions 40
counted http2_full 8
beside "as many sessions as a client may have"
over "sessions"

was=$(drops tcp_slow)
attack sent messages 30
beside "halves of messages"
wait_for "the end of halves" more_drops tcp_slow "$was"
over "halves of messages"

# Answers that nobody takes: one client has a share of what is remembered of requests; five are reset.
attack sent shut 12
beside "shut windows of one client"
over "shut windows of one client"
was=$(drops tcp_reader)
attack sent shut 60 5
beside "shut windows of five clients"
wait_for "the end of some" more_drops tcp_reader "$was"
beside "those that are left"
over "shut windows"
echo "$attacks attacks: bounded, ended, counted, and another client was answered beside each"
