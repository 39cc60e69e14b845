#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# TLS over a wire that loses 2 %, reorders 10 %, copies 1 % and corrupts 0.5 % of the packets: records that come out of
# order and in parts, 16 connections at a time of both versions; each answer is compared. Then with little memory.
#
# Runs beside another: it waits for lost packets.
. "$(dirname "$0")/story.sh"
. "$here/stream/wire.sh"

topology_up "story$$" 1
wire_up
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=service -days 2 -addext "subjectAltName=IP:$vip" \
    -keyout "$dir/service.key" -out "$dir/service.pem" 2>/dev/null
chmod 600 "$dir/service.key"

# run_with MEMORY: all answers are right, and all is given back
run_with() {
    topology_config "
  - {name: echo, protocol: tcp, address: $vip, port: 8500, model: echo, queue_timeout_ms: 60000, max_request: 256KiB, max_reply: 256KiB, tls: {certificate: $dir/service.pem, key: $dir/service.key}}
tcp: {$1}"
    start lb lb "$build/doorbell-lb" --config "$dir/lb.yaml"
    wait_for "the load balancer's control socket" cli version
    start_agents 1 echo --model-args max_request=262144 --payload-mb 64
    wire_start --lose 2 --reorder 10 --copy 1 --corrupt 0.5 --delay-us 2000 --jitter-us 4000 --seed 1
    said=$(ip netns exec "$tag-client" /usr/bin/python3 "$here/tcp_tls.py" many "$vip" 8500 "$dir/service.pem") ||
        { cli stats --all >&2 && fail "tcp_tls.py many with $1"; }
    expect "answers with $1" "$said" = "1280 answers"
    # The ends of connections are on the wire when the client has ended.
    wait_for "all to be given back" at_rest
    wire_stop
    out_of_order=$(cli --json stats | jq '[.lcores[].tcp.out_of_order] | add')
    expect "segments out of order with $1" "$out_of_order" -gt 100
    stop "$pid_w1"
    stop "$pid_lb"
}
at_rest() {
    [ "$(cli --json stats | jq -c '[.lcores[].tcp | .busy, .held_packets, .pieces, .tls.handshakes] | add')" = 0 ]
}

run_with "buffer_mb: 64"
run_with "buffer_mb: 4, client_percent: 100, window: 256KiB"
echo "TLS over a bad wire: 2,560 answers, $out_of_order segments out of order"
