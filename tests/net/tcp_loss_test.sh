#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# TCP over a wire that loses 2 %, reorders 10 %, copies 1 % and corrupts 0.5 % of the packets, 20 ms for the
# round trip: requests of all sizes, 8 at a time on 64 connections, are echoed to the byte over IPv4 and IPv6,
# and over IPv4 the longest stall of a connection is at most 1.5 times that with a server of the kernel's sockets,
# which meets the same fates of packets. (The median over the seeds: in one run a lost retransmission doubles it on
# either side.) Wireshark sees nothing that such a wire does not explain.
#
# All connections are one client's, and each reply waits for as long as its lost packets take: requests of megabytes
# want the memory that a kernel gives 64 connections. Nor does a request lose its slot for coming slowly (min_rate), as one did
# once on a busy machine: a server of the kernel's sockets does not look at that.
#
#   SEEDS=1 REQUESTS=10000 MAX_SIZE=4194304 LIMIT_S=1000 BUFFER_MB=1024 CLIENT_PERCENT=100 tests/net/tcp_loss_test.sh
. "$(dirname "$0")/story.sh"
. "$here/stream/wire.sh"

seeds=${SEEDS:-1 2 3} requests=${REQUESTS:-1000} max=${MAX_SIZE:-262144}
load="--connections 64 --pipeline 8 --min 1 --max $max --limit-s ${LIMIT_S:-100}"
delay="--delay-us 10000 --jitter-us 20000"

topology_up "story$$" 2
wire_up
topology_config "
  - {name: echo, protocol: tcp, address: $vip, port: 8500, model: echo, policy: round-robin, queue_timeout_ms: 60000, max_request: $max, max_reply: $max}
  - {name: echo6, protocol: tcp, address: \"$vip6\", port: 8500, model: echo, policy: round-robin, queue_timeout_ms: 60000, max_request: $max, max_reply: $max}
tcp: {buffer_mb: ${BUFFER_MB:-256}, client_percent: ${CLIENT_PERCENT:-25}, min_rate: 0}"
start lb lb "$build/doorbell-lb" --config "$dir/lb.yaml"
wait_for "the load balancer's control socket" cli version
start_agents 2 echo --model-args "max_request=$max" --payload-mb 256
kernel_serve ::

# ask NAME ADDRESS SEED: all requests answered
ask() {
    local what
    # shellcheck disable=SC2086
    stream_ask "$1" --address "$2" --requests "$requests" --seed "$3" $load || true
    [ -s "$dir/$1.json" ] || fail "the client wrote no figures: $(tail -n 3 "$dir/$1.log")"
    [ $(($(figure "$1" refused) + $(figure "$1" wrong))) -eq 0 ] || { cat "$dir/$1.log" && cli stats --all; } >&2
    for what in wrong refused failed lost; do
        expect "$1: $what" "$(figure "$1" $what)" -eq 0
    done
    expect "$1: answered" "$(figure "$1" answered)" -eq "$requests"
    for what in sack timestamps scaling; do
        expect "$1: $what in use" "$(figure "$1" $what)" = true
    done
}

# ask_badly NAME ADDRESS SEED: over the bad wire
ask_badly() {
    # shellcheck disable=SC2086
    wire_start --lose 2 --reorder 10 --copy 1 --corrupt 0.5 $delay --seed "$3"
    ask "$@"
    wire_stop
    expect "$1: frames that the wire had no room for" "$(jq .overflow <<<"$wire_report")" -eq 0
    jq -c --arg name "$1" '{name: $name} + .' "$dir/$1.json" >>"$dir/all"
}

# stalls NAME: the longest of each seed, their median last
stalls() {
    jq -sr --arg name "$1" 'map(select(.name == $name).stall_ms) | sort | map(tostring), .[length / 2 | floor] |
        if type == "array" then join(", ") else . end' "$dir/all"
}

# ask_both NAME ADDRESS KERNEL-ADDRESS SEED...: sets $ours and $kernels, the medians so far
ask_both() {
    local seed
    for seed in "${@:4}"; do
        ask_badly "$1" "$2" "$seed"
        ask_badly "kernel-$1" "$3" "$seed"
    done
    ours=$(stalls "$1" | tail -n 1) kernels=$(stalls "kernel-$1" | tail -n 1)
}

# compare NAME ADDRESS KERNEL-ADDRESS: stalls. A median of three may be that of two unlucky runs: then four more decide. A stall
# is one timer's, or that of a lost retransmission, three times as long: a median between the two wants more runs.
compare() {
    local ours kernels
    # shellcheck disable=SC2086
    ask_both "$@" $seeds
    [ "$ours" -le $((kernels * 3 / 2)) ] || ask_both "$@" 11 12 13 14
    [ "$ours" -le $((kernels * 3 / 2)) ] || ask_both "$@" 21 22 23 24 25 26
    echo "$1: longest stalls $(stalls "$1" | head -n 1) ms; of the kernel's server $(stalls "kernel-$1" | head -n 1) ms"
    expect "$1: longest stall in ms, median, over the kernel's $kernels" "$ours" -le $((kernels * 3 / 2))
}

compare v4 "$vip" "$host"
ask_badly v6 "$vip6" 1

command -v tshark >/dev/null || { echo "without tshark: no analysis of its own" && exit 0; }

# Flags of tshark's analysis that this wire explains. Anything else is a defect: a segment that
# acknowledges what was never sent, one beyond the window, a closed window, a port that is used again. (Linux probes a
# window that is too small for its next segment by an old number without bytes: to Wireshark that is a keepalive. A
# client may use all that it is offered: the window follows what it sends.)
# shellcheck disable=SC2054
explained=(analysis.flags analysis.retransmission analysis.fast_retransmission analysis.spurious_retransmission
    analysis.out_of_order analysis.duplicate_ack analysis.duplicate_ack_num analysis.duplicate_ack_frame
    analysis.lost_segment analysis.window_update analysis.window_full analysis.keep_alive analysis.keep_alive_ack analysis.rto analysis.rto_frame
    analysis.acks_frame analysis.ack_rtt analysis.initial_rtt analysis.bytes_in_flight analysis.push_bytes_sent)
# A corrupt header is no header: the wire of this part corrupts nothing.
# shellcheck disable=SC2086
wire_start --lose 2 --reorder 10 --copy 1 $delay --seed 1
start dump client tcpdump -i c0 -U -s 128 -w "$dir/c0.pcap" tcp port 8500
wait_for "tcpdump" grep -q "listening on" "$dir/dump.log"
ask dumped "$vip" 7
stop "$pid_dump"
wire_stop
# The bytes are of no protocol that tshark knows, whichever port the client has.
tshark -r "$dir/c0.pcap" -d tcp.port==8500,data -T pdml 2>/dev/null | grep -oE 'name="(tcp\.analysis\.[a-z_]+|_ws\.malformed)"' | sort | uniq -c |
    sed 's/name="tcp\.\(.*\)"/\1/' >"$dir/flags"
expect "segments that tshark read" "$(tshark -r "$dir/c0.pcap" 2>/dev/null | wc -l)" -gt "$requests"
expect "retransmissions that it saw" "$(awk '$2 == "analysis.retransmission" { print $1 }' "$dir/flags")" -gt 0
strange=$(awk -v known="${explained[*]}" 'BEGIN { split(known, list); for (i in list) is[list[i]] = 1 } !is[$2] { printf "%s x %d ", $2, $1 }' "$dir/flags")
expect "flags of tshark that nothing explains" "$strange" = ""
echo "tshark: $(awk '/retransmission|out_of_order|lost_segment|window_update/ { printf "%s %d, ", substr($2, 10), $1 }' "$dir/flags") and nothing unexplained"
