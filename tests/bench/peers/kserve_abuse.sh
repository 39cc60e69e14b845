#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The harm that attackers by HTTP/1.1 and gRPC do to other clients of the same KServe service: the latency of their
# requests, raw tensors over HTTP/1.1 in an open loop, beside each attack of tests/net/kserve_abuse.py and without
# it, in turn within each round.
#
#   kserve_abuse.sh [--rounds N] [--seconds S] [--connections N] [--rate N] [--size BYTES] [--device af_packet|kernel]
#                   [--only "PART ..."] [--json FILE] [--commit TEXT] [--machine TEXT]
#
#   --rounds N        figures are medians of so many (5)
#   --seconds S       that each part is measured in each round (3)
#   --connections N   of the clients (32)
#   --rate N          requests of all clients per second (2000)
#   --size BYTES      of a request and of its reply (1024)
#   --device KIND     of the clients port (af_packet)
#   --only "..."      of these attacks: heads, answers, small, bombs, rapid, provoked, pings, unread, settings, priorities,
#                     padding, updates, messages, shut
#
# The load balancer's lcore has a CPU for itself; so have clients, worker and attackers, if there are four. If not, these share
# the other, in the order worker, clients, attackers of priority.
# BUILD is the build directory. Root, for namespaces; two CPUs.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
build=${BUILD:-$root/build-bench}
# shellcheck source=tests/bench/live.sh
. "$root/tests/bench/live.sh"
# shellcheck source=tests/net/topology.sh
. "$root/tests/net/topology.sh"

rounds=5 seconds=3 connections=32 rate=2000 size=1024 device=af_packet
only="heads answers small bombs rapid provoked pings unread settings priorities padding updates messages shut"
live_options "rounds seconds connections rate size device only" "$@"
[ -n "$(cpu 2)" ] || { echo "skipped: needs two CPUs" && exit 77; }
frames=
[ "$device" = kernel ] || { device=net_$device frames=,framecnt=4096; }
lcore=$(cpu 1) other=$(cpu 2)
# Where there are more CPUs worker and attackers have one each: what attackers take of the clients' is no figure.
workers=$(cpu 3) attackers_cpu=$(cpu 4)
workers=${workers:-$other} attackers_cpu=${attackers_cpu:-$other}
trap 'exit 130' INT
trap 'exit 143' TERM
trap topology_down EXIT

vip=10.200.0.100
may_chrt=$(chrt --rr 1 true 2>/dev/null && echo yes || echo "without real-time priority: other programs disturb this" >&2)
ahead=${may_chrt:+chrt --rr 1}

# load PART WITH: a line of the clients' figures in $dir/figures
load() {
    ip netns exec "$tag-client" taskset -c "$other" nice -n -10 "$build/tests/bench/bench-tcp-load" --to "$vip:8500" \
        --post /v2/models/echo/infer --requests "$dir/rows" --replies "$dir/rows" --request-bytes "$size" --reply-bytes "$size" \
        --open "$connections" --rate "$rate" --sleep --warm-up 0.5 --seconds "$seconds" --latencies "$dir/latencies" >"$dir/load.json" 2>"$dir/load.log" ||
        [ -s "$dir/load.json" ] || { cat "$dir/load.log" >&2 && exit 1; }
    /usr/bin/python3 - "$dir" "$1" "$2" >>"$dir/figures" <<'PYTHON'
import array, json, sys
at, part, with_ = sys.argv[1:]
values = array.array("I", open(at + "/latencies", "rb").read())
values = sorted(values)
asked = json.load(open(at + "/load.json"))
print(json.dumps({"part": part, "with": with_, "p50_us": values[len(values) // 2], "p99_us": values[len(values) * 99 // 100],
                  "lost": asked["lost"] + asked["refused"] + asked["wrong"], "answered": asked["answered"]}))
PYTHON
}

# Each attack as kserve_abuse.py has it, and how long what it holds is held.
declare -A attack=([heads]="heads 200 5" [answers]="answers 8 5" [small]="small 2000" [bombs]="flood bombs" [rapid]="flood rapid"
    [provoked]="flood provoked" [pings]="flood pings"
    [unread]="flood unread" [settings]="flood settings" [priorities]="flood priorities" [padding]="flood padding"
    [updates]="flood updates" [messages]="messages 30 5" [shut]="shut 60 5")
declare -A pause=([heads]=2 [messages]=2 [shut]=2)

part() {
    load "$1" without
    # shellcheck disable=SC2086
    start abuse client env PAUSE_S="${pause[$1]:-0}" taskset -c "$attackers_cpu" nice -n 5 /usr/bin/python3 "$root/tests/net/kserve_abuse.py" \
        --loop "${attack[$1]}" "$vip" 8500 10.200.0.2 $attackers
    wait_for "the attackers" grep -q ready "$dir/abuse.log"
    load "$1" with
    stop "$pid_abuse"
    tail -n 1 "$dir/abuse.log" | jq -c --arg part "$1" '{attack: $part} + .' >>"$dir/figures"
}

topology_up "kabuse$$" 1
attackers=
for ((i = 11; i <= 15; i++)); do
    ip -n "$tag-client" addr add "10.200.0.$i/24" dev c0
    attackers+=" 10.200.0.$i"
done
head -c $((size * 64)) /dev/urandom >"$dir/rows"
memif_up "${device}0,iface=clients$frames" "framing: kserve, max_request: 65536, max_reply: 65536, queue: 8192" "lcores: [$lcore]
flows: 65536
memory: {hugepages: false, mb: 1024}" "$ahead" "taskset -c $workers $ahead" max_request=65536
for ((round = 1; round <= rounds; round++)); do
    for name in $only; do
        [ -z "${VERBOSE:-}" ] || echo "round $round: $name" >&2
        part "$name"
    done
done
cli --json stats >"$dir/stats.json"
result=$(jq -s --arg commit "$commit" --arg machine "$machine" --argjson rounds "$rounds" --slurpfile stats "$dir/stats.json" '
    def median: sort | .[length / 2 | floor];
    . as $all | (map(select(.with == "with") | .part) | unique) as $parts |
    def of($part; $with): $all | map(select(.part == $part and .with == $with));
    def ratios($part): [of($part; "with"), of($part; "without")] | map(map(.p99_us)) | transpose | map(.[0] / .[1]);
    ([$parts[] | {key: "p99_ratio_\(.)", value: ratios(.)}] +
     [$parts[] as $part | ("with", "without") as $with | {key: "p99_us_\($part)_\($with)", value: (of($part; $with) | map(.p99_us))}]) as $series |
    {bench: "kserve-abuse", commit: $commit, machine: $machine, runs: $rounds,
     metrics: ({p99_ratio_worst: ([$parts[] | ratios(.) | median] | max)} + ($series | map(.value |= median) | from_entries) +
       ($parts | map(. as $part | {key: "lost_\($part)", value: (of($part; "with") | map(.lost) | add)}) | from_entries)),
     spread: ($series | map(.value |= [min, max]) | from_entries),
     attackers: ($all | map(select(.attack))),
     drops: ($stats[0].lcores[0].drops)}' "$dir/figures")
[ -z "$json" ] || echo "$result" >"$json"
jq -r 'def short: . * 1000 | round / 1000;
    .spread as $spread | .metrics | to_entries[] |
    "\(.key) \(.value | short)" + ($spread[.key] // [] | if . == [] then "" else " (\(.[0] | short), \(.[1] | short))" end)' <<<"$result"
