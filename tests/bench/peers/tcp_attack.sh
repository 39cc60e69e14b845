#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What clients of a TCP service notice of attackers: goodput of established connections during a SYN flood, and
# the latency of small requests beside 1,000 connections that drip large requests, and beside 1,000 that read
# large replies byte by byte. A round is all of it in turn, each with and without the attack.
#
#   tcp_attack.sh [--rounds N] [--seconds S] [--connections N] [--attackers N] [--senders N] [--size BYTES]
#                 [--large BYTES] [--device af_packet|kernel] [--only "PART ..."] [--json FILE] [--commit TEXT] [--machine TEXT]
#
#   --rounds N        figures are medians of so many (5)
#   --seconds S       that each part is measured in each round (4)
#   --connections N   of the clients (64)
#   --attackers N     connections that drip, or read (1000)
#   --senders N       addresses that these come from (16)
#   --size BYTES      of a client's request and of its reply (1024)
#   --large BYTES     of an attacker's (262144)
#   --device KIND     of the clients port (af_packet)
#   --only "..."      of these parts: flood, drip, readers; and drip_inside and readers_inside: the attackers have
#                     the clients' own address
#
# The load balancer's lcore has a CPU for itself. With four CPUs clients, attackers and worker have one each; with
# fewer they share one, on which attackers run only when neither clients nor the worker want to: what they cost there is
# no figure of the load balancer. The kernel keeps 50 ms of each second there for attackers: the service's queue has room for what
# clients send in that time.
#
# BUILD is the build directory. Root, for namespaces; two CPUs.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
build=${BUILD:-$root/build-bench}
# shellcheck source=tests/bench/live.sh
. "$root/tests/bench/live.sh"
# shellcheck source=tests/net/topology.sh
. "$root/tests/net/topology.sh"

rounds=5 seconds=4 connections=64 attackers=1000 senders=16 size=1024 large=262144 device=af_packet
only="flood drip readers drip_inside readers_inside"
live_options "rounds seconds connections attackers senders size large device only" "$@"
[ -n "$(cpu 2)" ] || { echo "skipped: needs two CPUs" && exit 77; }
frames=
[ "$device" = kernel ] || { device=net_$device frames=,framecnt=4096; }
lcore=$(cpu 1) other=$(cpu 2)
attackers_cpu=$other worker_cpu=$other
[ -z "$(cpu 4)" ] || attackers_cpu=$(cpu 3) worker_cpu=$(cpu 4)
trap 'exit 130' INT
trap 'exit 143' TERM
trap topology_down EXIT

vip=10.200.0.100
stream=$build/tests/net/stream/tcp-stream

# Attackers have no real-time priority: threads of the kernel that carry packets have none either, and would wait
# for them.
may_chrt=$(chrt --rr 1 true 2>/dev/null && echo yes || echo "without real-time priority: other programs disturb this" >&2)
ahead=${may_chrt:+chrt --rr 1}

# clients NAME OPTIONS...: the clients' figures in $dir/NAME.json
clients() {
    local name=$1
    shift
    # shellcheck disable=SC2086
    ip netns exec "$tag-client" taskset -c "$other" $ahead "$build/control/doorbell" bench --tcp --to "$vip:8500" --mix "$size" \
        --flows "$connections" --verify echo --json --quiet --seed 1 "$@" >"$dir/$name.json" 2>>"$dir/$name.log" ||
        [ -s "$dir/$name.json" ] || { cat "$dir/$name.log" >&2 && exit 1; }
}

# attack NAME OPTIONS...: tcp-stream in the background, below everybody else; attack_end NAME ends it, its report is
# in $dir/NAME.json
attack() {
    local name=$1
    shift
    : >"$dir/$name.log"
    start "$name" client taskset -c "$attackers_cpu" nice -n -5 "$stream" "$@"
}

attack_end() {
    local p=pid_$1
    stop "${!p}"
    tail -n 1 "$dir/$1.log" >"$dir/$1.json"
}

flood() {
    attack flooded flood --device c0 --mac "$mac" --address "$vip" --from 100.64.0.0 "$@"
}

# holders WHAT FROM SENDERS
holders() {
    attack holders hold --what "$1" --address "$vip" --connections "$attackers" --size "$large" --from "$2" --senders "$3" \
        --interval-ms "$([ "$1" = drip ] && echo 200 || echo 1000)"
    wait_for "the attackers" grep -q ready "$dir/holders.log"
}

# established N: that many connections are there, and no handshake is under way
established() {
    [ "$(cli --json stats | jq '[.lcores[].tcp.connections - .lcores[].tcp.half_open] | add')" -ge "$1" ]
}

# load PART WITH: the clients' open loop at 40 % of the capacity; a line of figures in $dir/figures
load() {
    clients load --rate $(($(jq '.answered_rps | floor' "$dir/capacity.json") * 2 / 5)) --duration "$seconds" --warmup 1 \
        --timeout-ms 5000 --allow-lost 100000000
    jq -c --arg part "$1" --arg with "$2" '{part: $part, with: $with} + .' "$dir/load.json" >>"$dir/figures"
}

# SYNs per second that one lcore can take: those that it took of as many as one CPU can send, over the share of
# its time for them.
measure_syns() {
    flood --rate 0
    # A window of top's figures is a second, and the first one may have begun before the flood did.
    wait_for "a second of flood" second_of_flood
    wait_for "another second of flood" second_of_flood
    attack_end flooded
    syn_capacity=$(jq '.lcores[0] | .packets_in_per_s / .busy | floor' "$dir/top.json")
    jq -c --argjson sent "$(jq .rate "$dir/flooded.json")" --argjson capacity "$syn_capacity" \
        '{part: "syn", sent: $sent, capacity: $capacity, taken: .lcores[0].packets_in_per_s, busy: .lcores[0].busy}' \
        "$dir/top.json" >>"$dir/figures"
}

window_at=
second_of_flood() {
    cli --json top --once >"$dir/top.json"
    local at
    at=$(jq -c '[.lcores[0].packets_in_per_s, .lcores[0].busy]' "$dir/top.json")
    [ "$at" != "$window_at" ] && window_at=$at
}

# The flood begins when the clients are connected, and ends after their last reply.
part_flood() {
    flood_beside & # in the script's own process group
    local beside=$!
    load flood with
    touch "$dir/loaded"
    wait "$beside"
    rm "$dir/loaded"
    jq -c '{part: "flooded"} + .' "$dir/flooded.json" >>"$dir/figures"
}

flood_beside() {
    # As urgent as the clients, which are there for two seconds: on a busy machine it would see them too late.
    [ -z "$may_chrt" ] || chrt --rr -p 1 "$BASHPID"
    wait_for "the clients" established "$connections"
    [ -z "$may_chrt" ] || chrt --other -p 0 "$BASHPID"
    flood --rate $((syn_capacity / 2))
    until [ -e "$dir/loaded" ]; do
        sleep 0.05
    done
    attack_end flooded
}

# part_hold PART WHAT FROM SENDERS
part_hold() {
    holders "$2" "$3" "$4"
    load "$1" with
    attack_end holders
    jq -c --arg part "$1" '{part: "holders", of: $part} + .' "$dir/holders.json" >>"$dir/figures"
    wait_for "the end of the attackers' connections" eval '! established 1'
}

topology_up "attack$$" 1
for ((i = 0; i < senders; i++)); do
    ip -n "$tag-client" addr add "10.200.1.$((i + 1))/32" dev c0
done
memif_up "${device}0,iface=clients$frames" "max_request: $large, max_reply: $large, queue: 8192" "lcores: [$lcore]
flows: 262144
memory: {hugepages: false, mb: 1536}" "$ahead" "taskset -c $worker_cpu $ahead" "max_request=$large"
mac=$(ip netns exec "$tag-lb" cat /sys/class/net/clients/address)
for ((round = 1; round <= rounds; round++)); do
    clients capacity --window 1 --duration "$seconds" --warmup 0.5
    jq -c '{part: "capacity"} + .' "$dir/capacity.json" >>"$dir/figures"
    for part in $only; do
        [ -z "${VERBOSE:-}" ] || echo "round $round: $part" >&2
        load "$part" without
        case $part in
        flood)
            measure_syns
            part_flood
            ;;
        drip | readers) part_hold "$part" "${part/readers/read}" 10.200.1.1 "$senders" ;;
        drip_inside) part_hold "$part" drip 10.200.0.2 1 ;;
        readers_inside) part_hold "$part" read 10.200.0.2 1 ;;
        esac
    done
done
cli --json stats >"$dir/stats.json"
result=$(jq -s --arg commit "$commit" --arg machine "$machine" --argjson rounds "$rounds" --slurpfile stats "$dir/stats.json" '
    def median: sort | .[length / 2 | floor];
    def of($part; $with): map(select(.part == $part and .with == $with));
    def ratio($part; figure): [of($part; "with"), of($part; "without")] | map(map(figure)) | transpose | map(.[0] / .[1]);
    . as $all |
    (map(select(.with == "with") | .part) | unique) as $parts |
    ([(if $parts | index("flood") then
         {key: "goodput_under_synflood", value: ($all | ratio("flood"; .answered_rps))},
         {key: "p99_ratio_synflood", value: ($all | ratio("flood"; .latency.p99_us))},
         {key: "flood_seconds", value: ($all | map(select(.part == "flooded") | .seconds))},
         {key: "syn_capacity_per_s", value: ($all | map(select(.part == "syn") | .capacity))},
         {key: "syn_taken_alone_per_s", value: ($all | map(select(.part == "syn") | .taken))},
         {key: "flood_over_syn_capacity", value: ([($all | map(select(.part == "flooded") | .rate)),
            ($all | map(select(.part == "syn") | .capacity))] | transpose | map(.[0] / .[1]))}
       else empty end),
      ($parts[] | select(. != "flood") | . as $part |
        {key: (if $part == "readers" then "p99_ratio_slow_readers" else "p99_ratio_\($part)" end),
         value: ($all | ratio($part; .latency.p99_us))},
        {key: "goodput_\($part)", value: ($all | ratio($part; .answered_rps))}),
      {key: "capacity_rps", value: ($all | map(select(.part == "capacity") | .answered_rps))},
      ($parts[] | . as $part | ("with", "without") as $with |
        {key: "p99_us_\($part)_\($with)", value: ($all | of($part; $with) | map(.latency.p99_us))})]) as $series |
    {bench: "tcp-attack", commit: $commit, machine: $machine, runs: $rounds,
     metrics: (($series | map(.value |= median) | from_entries) +
       ($parts | map(. as $part | {key: "lost_\($part)", value: ($all | of($part; "with") | map(.lost + .refused + .wrong) | add)}) | from_entries)),
     spread: ($series | map(.value |= [min, max]) | from_entries),
     attackers: ($all | map(select(.part == "holders" or .part == "flooded"))),
     drops: ($stats[0].lcores[0].drops)}' "$dir/figures")
[ -z "$json" ] || echo "$result" >"$json"
jq -r 'def short: . * 1000 | round / 1000;
    .spread as $spread | .metrics | to_entries[] |
    "\(.key) \(.value | short)" + ($spread[.key] // [] | if . == [] then "" else " (\(.[0] | short), \(.[1] | short))" end)' <<<"$result"
[ -z "${KEEP_FIGURES:-}" ] || cp "$dir/figures" "$KEEP_FIGURES"
