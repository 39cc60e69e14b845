#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Goodput of requests and of replies over a wire that loses packets, through Doorbell and to a server of the
# kernel's sockets behind the same wire: a round is all of it in turn.
#
#   tcp_loss.sh [--rounds N] [--seconds S] [--connections N] [--pipeline N] [--size BYTES] [--lose PERCENT]
#               [--delay-us N] [--json FILE] [--commit TEXT] [--machine TEXT]
#
#   --rounds N        figures are medians of so many (7)
#   --seconds S       that each part is measured in each round (4)
#   --connections N   clients (8)
#   --pipeline N      requests that each has open (32)
#   --size BYTES      of a request, or of a reply; the other one has 16 (1400)
#   --lose PERCENT    of the packets in both directions (1)
#   --delay-us N      each way (10000)
#
# BUILD is the build directory. Root, for namespaces.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
build=${BUILD:-$root/build-bench}
# shellcheck source=tests/bench/live.sh
. "$root/tests/bench/live.sh"
# shellcheck source=tests/net/topology.sh
. "$root/tests/net/topology.sh"
# shellcheck source=tests/net/stream/wire.sh
. "$root/tests/net/stream/wire.sh"

rounds=7 seconds=4 connections=8 pipeline=32 size=1400 lose=1 delay_us=10000
live_options "rounds seconds connections pipeline size lose delay_us" "$@"
trap 'exit 130' INT
trap 'exit 143' TERM
trap topology_down EXIT

vip=10.200.0.100
# One frame may wait for a CPU for long: that is no loss of the wire's.
device_frames=,framecnt=4096

# measure PART WAY ADDRESS PORT SEED: a line of figures in $dir/figures
measure() {
    wire_start --lose "$lose" --delay-us "$delay_us" --seed "$5"
    stream_ask "$1" --address "$3" --port "$4" --mode "$2" --connections "$connections" --pipeline "$pipeline" \
        --min "$size" --max "$size" --seconds "$seconds" --warm-up 1 --seed "$5" || echo "$1 $2: $(tail -n 3 "$dir/$1.log")" >&2
    wire_stop
    [ "$(jq .overflow <<<"$wire_report")" -eq 0 ] || echo "$1 $2: the wire lost more than it was told to: $wire_report" >&2
    jq -c --arg part "$1" --arg way "$2" --argjson wire "$wire_report" '{part: $part, way: $way, wire: $wire} + .' "$dir/$1.json" >>"$dir/figures"
}

topology_up "loss$$" 1
wire_up
topology_config "
  - {name: stream, protocol: tcp, address: $vip, port: 8500, model: stream, max_request: $size, max_reply: $size}"
start lb lb "$build/doorbell-lb" --config "$dir/lb.yaml"
wait_for "the load balancer's control socket" cli version || { cat "$dir/lb.log" && exit 1; }
start_agent 1 "$build/tests/net/stream/stream.so" --model-args "$size,$size" --payload-mb 128
wait_for "the worker to be active" worker_is w1 active || { cat "$dir/w1.log" && exit 1; }
kernel_serve "$host" --drawn
for ((round = 1; round <= rounds; round++)); do
    for way in up down; do
        measure doorbell $way "$vip" 8500 "$round"
        measure kernel $way "$host" 8500 "$round"
    done
done
result=$(jq -s --arg commit "$commit" --arg machine "$machine" --argjson rounds "$rounds" --arg lose "$lose" '
    def median: sort | .[length / 2 | floor];
    def of($part; $way): map(select(.part == $part and .way == $way));
    def goodput($part; $way): of($part; $way) | map(if $way == "up" then .mbit_up else .mbit_down end);
    def over($way): [goodput("doorbell"; $way), goodput("kernel"; $way)] | transpose | map(.[0] / .[1]);
    . as $all |
    ([{key: "goodput_over_kernel_\($lose)pct", value: ([over("up"), over("down")] | transpose | map(min))},
      (("up", "down") as $way |
        {key: "goodput_\($way)_over_kernel_\($lose)pct", value: over($way)},
        (("doorbell", "kernel") as $part |
          {key: "\($part)_mbit_\($way)", value: goodput($part; $way)},
          {key: "\($part)_stall_ms_\($way)", value: ($all | of($part; $way) | map(.stall_ms))}))]) as $series |
    {bench: "tcp-loss", commit: $commit, machine: $machine, runs: $rounds,
     metrics: (($series | map(.value |= median) | from_entries) + {
        wrong: (of("doorbell"; "up") + of("doorbell"; "down") | map(.wrong + .refused) | add),
        lost: (of("doorbell"; "up") + of("doorbell"; "down") | map(.lost + .failed) | add)}),
     spread: ($series | map(.value |= [min, max]) | from_entries)}' "$dir/figures")
[ -z "$json" ] || echo "$result" >"$json"
jq -r 'def short: . * 1000 | round / 1000;
    .spread as $spread | .metrics | to_entries[] |
    "\(.key) \(.value | short)" + ($spread[.key] // [] | if . == [] then "" else " (\(.[0] | short), \(.[1] | short))" end)' <<<"$result"
