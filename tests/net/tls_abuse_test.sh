#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Clients that want to harm others by TLS: what each attack can have is bounded, its connections are answered right or end,
# what ended them is counted by its name, no request comes of what was none, and a client of another address is answered
# beside each, on connections that it had and on new ones, of both tenants, whose certificates are renewed meanwhile.
#
# Runs beside another: it asks for answers, not for their time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
for address in 3 11; do
    ip -n "$tag-client" addr add "10.200.0.$address/24" dev c0
done

for name in first second renewed; do
    certificate "$name"
done

topology_config "
  - {name: first, protocol: tcp, framing: length, address: $vip, port: 8501, model: echo, max_request: 64KiB, max_reply: 64KiB, tls: {certificate: $dir/first.pem, key: $dir/first.key}}
  - {name: second, protocol: tcp, framing: length, address: $vip, port: 8502, model: echo, max_request: 64KiB, max_reply: 64KiB, tls: {certificate: $dir/second.pem, key: $dir/second.key}}" "
tcp: {connections: 400, buffer_mb: 32, handshake_ms: 1500}
new_flows_per_source: 100000"
start_lb
start_agents 1 echo --model-args max_request=65536

tell_client tls_abuse.py "$vip" 8501 8502 "$dir/ca.pem" 10.200.0.3 10.200.0.11

# stats: what was counted of TLS, and requests
stats() {
    cli --json stats | jq -c '[.lcores[] | .tcp.tls + {requests: .requests}] | .[0]'
}
more() {
    jq --argjson before "$before" ".$1 - \$before.$1" <<<"$(stats)"
}
is_more() {
    [ "$(more "$1")" -eq "$2" ]
}
in_use() {
    cli --json stats | jq -c '.lcores[0] | [.memory, (.tcp |
        {connections, half_open, busy, held_packets, requests, large_requests, pieces, clients, handshakes: .tls.handshakes})]'
}
as_at_first() {
    [ "$(in_use)" = "$at_first" ]
}
# attack ANSWER REQUESTS [COUNTER N]... -- COMMAND...: the answer, the requests that came of it and other counts; the
# innocent is answered beside it, and behind it all is given back.
attack() {
    local expected=$1 requests=$2 counts=()
    shift 2
    while [ "$1" != -- ]; do
        counts+=("$1")
        shift
    done
    shift
    before=$(stats)
    tell "$@"
    [ "$answer" = "$expected" ] || fail "$*: $answer, expected $expected"
    expect "requests of $*" "$(more requests)" -eq "$requests"
    set -- "$*" "${counts[@]}"
    while [ $# -gt 2 ]; do
        wait_for "$2 of $1 to be $3" is_more "$2" "$3" || fail "$1: $2 $(more "$2"), expected $3"
        set -- "$1" "${@:4}"
    done
    tell innocent
    expect "another client beside $1" "$answer" = right
    tell fresh
    expect "new connections of another client beside $1" "$answer" = right
    tell leave
    wait_for "all of $1 to be given back" as_at_first || fail "$1: in use: $(in_use), at first: $at_first"
    attacks=$((attacks + 1))
}

attacks=0
tell innocent
expect "a client alone" "$answer" = right
quiet() {
    [ "$(cli --json stats | jq -c '.lcores[0] | [.tcp.connections, .memory.packets]')" = "[4,0]" ]
}
wait_for "the client's last packets" quiet
at_first=$(in_use)

# --- records
attack "ended 2" 0 bad_records 2 -- empty
attack "ended 3" 0 bad_records 2 alerts_in 1 -- warnings
attack "ended 1" 0 bad_records 1 -- updates
attack right 1 -- slow_updates
attack right 2 -- single_bytes
attack "ended 18" 0 bad_records 17 renegotiations 1 -- oversized
attack "ended 4" 0 renegotiations 2 bad_records 2 -- renegotiate
attack "ended 4" 2 -- goodbyes

# --- handshakes
attack "cut 22" 0 -- cuts fin
attack "cut 22" 0 -- cuts reset
attack "cut 22" 0 late 22 -- cuts silence
attack right 2 -- split_hello
attack "ended 1" 0 failed 1 -- endless_hello
attack "resumed 20 of 40" 41 resumed 20 -- tickets
attack "refused 4" 2 -- early

# --- all of them while the certificate of the tenant that is attacked is renewed
subject() {
    ip netns exec "$tag-client" openssl s_client -connect "$vip:$1" </dev/null 2>/dev/null | openssl x509 -noout -subject
}
is_renewed() {
    [ "$(subject 8501)" = "subject=CN = renewed" ]
}
tell storm
cp "$dir/renewed.pem" "$dir/first.pem"
install -m 600 "$dir/renewed.key" "$dir/first.key"
kill -HUP "$pid_lb"
wait_for "the renewed certificate" is_renewed
expect "the certificate of the other tenant" "$(subject 8502)" = "subject=CN = second"
for ((i = 0; i < 5; i++)); do
    tell innocent
    expect "another client in the storm" "$answer" = right
    tell fresh
    expect "new connections of another client in the storm" "$answer" = right
done
tell is_storm
expect "the storm" "$answer" = yes
tell end_storm
tell leave
wait_for "all of the storm to be given back" as_at_first || fail "the storm: in use: $(in_use), at first: $at_first"
echo "$attacks attacks: bounded, answered right or ended, counted, and another client was answered beside each"
