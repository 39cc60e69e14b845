#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Requests per second of 64 kernel sockets, with Doorbell between them and a worker, and with nft's DNAT
# between them and a kernel echo server, on the same veths: a round is all parts in turn.
#
#   udp_peers.sh [--rounds N] [--seconds S] [--sockets N] [--window N] [--size BYTES] [--threads N]
#                [--only "PART ..."] [--json FILE] [--commit TEXT] [--machine TEXT]
#
#   --rounds N      figures are medians of so many (7)
#   --seconds S     that each part is measured in each round (3)
#   --sockets N     clients (64)
#   --window N      requests that each has outstanding (1)
#   --size BYTES    of a request and of its reply (1024)
#   --threads N     of the kernel echo server (1)
#   --only "..."    of these parts: direct (the server without anything in between), nft, doorbell (devices
#                   kernelN), jumbo (the same, with a fabric MTU of 3300), af_packet (devices net_af_packetN)
#
# BUILD is the build directory. Root, for namespaces; nft.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
build=${BUILD:-$root/build-bench}
# shellcheck source=tests/bench/live.sh
. "$root/tests/bench/live.sh"
# shellcheck source=tests/net/topology.sh
. "$root/tests/net/topology.sh"

rounds=7 seconds=3 sockets=64 window=1 size=1024 threads=1 only="direct nft doorbell jumbo af_packet"
live_options "rounds seconds sockets window size threads only" "$@"
command -v nft >/dev/null || { echo "skipped: nft is not installed (package nftables)" && exit 77; }

trap 'exit 130' INT
trap 'exit 143' TERM
trap topology_down EXIT

host=10.200.0.99 # the kernel's own address on the clients' side
vip=10.200.0.100

# serve PLACE: a kernel echo server in namespace <tag>-PLACE, its process in $pid_server
serve() {
    start server "$1" "$build/tests/bench/bench-udp-peers" serve --port 8500 --threads "$threads"
    wait_for "the echo server" eval "ip netns exec $tag-$1 ss -lunH | grep -q :8500"
}

# ask PART ADDRESS PID...: a line of figures in $dir/figures; the CPU time of each PID is in them
ask() {
    local part=$1 to=$2
    shift 2
    if ! ip netns exec "$tag-client" "$build/tests/bench/bench-udp-peers" ask --to "$to" --port 8500 \
        --sockets "$sockets" --window "$window" --size "$size" --seconds "$seconds" "${@/#/--watch=}" >"$dir/asked"; then
        echo "$part: $(cat "$dir/asked")" >&2
        exit 1
    fi
    jq -c --arg part "$part" '{part: $part} + .' "$dir/asked" >>"$dir/figures"
}

# Each part brings up what it needs, asks, and takes it away again: nft's hooks would see Doorbell's packets,
# and Doorbell's sockets nft's.

direct() {
    serve lb
    ask direct "$host" "$pid_server"
    stop "$pid_server"
}

nft() {
    ip netns exec "$tag-lb" sysctl -qw net.ipv4.ip_forward=1
    ip netns exec "$tag-lb" nft -f - <<END
table ip peers {
    chain in {
        type nat hook prerouting priority dstnat
        ip daddr $host udp dport 8500 dnat to 10.201.0.101
    }
}
END
    serve w1
    ask nft "$host" "$pid_server"
    stop "$pid_server"
    ip netns exec "$tag-lb" nft delete table ip peers
    ip netns exec "$tag-lb" sysctl -qw net.ipv4.ip_forward=0
}

# through PART KIND MTU: Doorbell with devices of that kind, and that MTU of the fabric
through() {
    device_kind=$2
    topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
    sed -i "s/^    roles: \[fabric\]/&\n    mtu: $3/" "$dir/lb.yaml"
    : >"$dir/lb.log"
    start_lb
    [ "$2" != kernel ] || grep -q driver=net_af_xdp "$dir/lb.log" ||
        echo "$1: not over AF_XDP: $(grep -o 'port=clients uses.*' "$dir/lb.log")" >&2
    start_agent 1 echo --mtu "$3"
    wait_for "the worker to be active" worker_is w1 active
    ask "$1" "$vip" "$pid_lb" "$pid_w1"
    stop "$pid_w1"
    stop "$pid_lb"
}

doorbell() {
    through doorbell kernel 1500
}

jumbo() {
    through jumbo kernel 3300
}

af_packet() {
    through af_packet net_af_packet 1500
}

topology_up "peers$$" 1
ip -n "$tag-lb" addr add "$host/24" dev clients
ip -n "$tag-w1" route add 10.200.0.0/24 via 10.201.0.254
# The switch between load balancer and worker forwards frames, and does not filter them.
[ ! -e /proc/sys/net/bridge ] || ip netns exec "$tag-fabric" sysctl -qw net.bridge.bridge-nf-call-iptables=0
for place in "lb fabric" "fabric lb" "fabric w1" "fabric br0" "w1 w0"; do
    read -r name interface <<<"$place"
    ip -n "$tag-$name" link set dev "$interface" mtu 3300
done
for ((round = 1; round <= rounds; round++)); do
    for part in $only; do
        $part
    done
done
result=$(jq -s --arg commit "$commit" --arg machine "$machine" --argjson rounds "$rounds" '
    def median: sort | .[length / 2 | floor];
    def named: {doorbell: "", jumbo: "_jumbo", af_packet: "_af_packet"}[.];
    (group_by(.part) | map({key: .[0].part, value: .}) | from_entries) as $parts |
    ([if $parts.nft then ("doorbell", "jumbo", "af_packet") | select($parts[.]) |
        {key: "udp_rps_over_nft_1kib\(named)",
         value: ([$parts[.], $parts.nft] | map(map(.rps)) | transpose | map(.[0] / .[1]))},
        {key: "udp_cpu_nft_over_1kib\(named)",
         value: ([$parts[.], $parts.nft] | map(map(.cpu_s_per_million)) | transpose | map(.[1] / .[0]))}
      else empty end] +
     [$parts | to_entries[] | .key as $part | .value as $all |
        ("rps", "p50_us", "p99_us", "cpu_s_per_million", "first_cpu_s_per_million") |
        {key: "\($part)_\(.)", value: [. as $figure | $all[] | .[$figure]]}]) as $series |
    {bench: "udp-peers", commit: $commit, machine: $machine, runs: $rounds,
     metrics: ($series | map(.value |= median) | from_entries),
     spread: ($series | map(.value |= [min, max]) | from_entries)}' "$dir/figures")
[ -z "$json" ] || echo "$result" >"$json"
jq -r 'def short: . * 1000 | round / 1000;
    .spread as $spread | .metrics | to_entries[] |
    "\(.key) \(.value | short) (\($spread[.key][0] | short), \($spread[.key][1] | short))"' <<<"$result"
