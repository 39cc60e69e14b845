#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Requests per second of 64 kernel TCP connections, and the CPU time that they cost, with Doorbell between them
# and a worker, and with HAProxy and with nginx between them and an epoll server: a round is all parts in turn.
#
#   tcp_peers.sh [--rounds N] [--seconds S] [--connections N] [--pipeline N] [--size BYTES] [--threads N]
#                [--only "PART ..."] [--json FILE] [--commit TEXT] [--machine TEXT]
#
#   --rounds N        figures are medians of so many (7)
#   --seconds S       that each part is measured in each round (3)
#   --connections N   clients (64)
#   --pipeline N      requests that each has open (1)
#   --size BYTES      of a request and of its reply (1024)
#   --threads N       of each proxy; the server has one (2)
#   --offloads on|off of the clients' veth under haproxy and nginx: checksums and large segments (on; Doorbell
#                     has them off; the veths between proxy and server have them on)
#   --only "..."      of these parts: direct (the server without anything in between), haproxy, nginx, doorbell
#                     (clients over AF_XDP, fabric over memif), af_packet (the same with clients over af_packet)
#
# BUILD is the build directory. Root, for namespaces; haproxy, nginx with its stream module.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
build=${BUILD:-$root/build-bench}
# shellcheck source=tests/bench/live.sh
. "$root/tests/bench/live.sh"
# shellcheck source=tests/net/topology.sh
. "$root/tests/net/topology.sh"

rounds=7 seconds=3 connections=64 pipeline=1 size=1024 threads=2 offloads=on only="direct haproxy nginx doorbell af_packet"
live_options "rounds seconds connections pipeline size threads offloads only" "$@"
nginx_stream=${NGINX_STREAM_MODULE:-/usr/lib/nginx/modules/ngx_stream_module.so}
for program in haproxy nginx; do
    [[ " $only " != *" $program "* ]] || command -v $program >/dev/null ||
        { echo "skipped: $program is not installed" && exit 77; }
done
[[ " $only " != *" nginx "* || -e $nginx_stream ]] || { echo "skipped: nginx has no stream module" && exit 77; }

trap 'exit 130' INT
trap 'exit 143' TERM
trap tidy EXIT

tidy() {
    topology_down
    [ -z "$allowed" ] || sysctl -qw net.ipv4.tcp_allowed_congestion_control="$allowed"
}

# All sockets use CUBIC, as tcp-stream's do: BBR, the default of some kernels, paces by timers, which costs a proxy
# twice the CPU time. A namespace may choose what the first one allows; it is asked to for the run.
allowed=
choose_cubic() {
    local place
    for place in lb w1; do
        ip netns exec "$tag-$place" sysctl -qw net.ipv4.tcp_congestion_control=cubic 2>/dev/null && continue
        allowed=$(sysctl -n net.ipv4.tcp_allowed_congestion_control)
        sysctl -qw net.ipv4.tcp_allowed_congestion_control="$allowed cubic"
        ip netns exec "$tag-$place" sysctl -qw net.ipv4.tcp_congestion_control=cubic
    done
}

host=10.200.0.99 # the kernel's own address on the clients' side
vip=10.200.0.100
stream=$build/tests/net/stream/tcp-stream

listens() {
    ip netns exec "$tag-$1" ss -ltnH | grep -q ":8500"
}

# serve PLACE: an echo server in namespace <tag>-PLACE, its process in $pid_server
serve() {
    start server "$1" "$stream" serve
    wait_for "the echo server" listens "$1"
}

# ask PART ADDRESS PID...: a line of figures in $dir/figures, with the CPU time of each PID
ask() {
    local part=$1 to=$2
    shift 2
    if ! ip netns exec "$tag-client" "$stream" ask --address "$to" --connections "$connections" --pipeline "$pipeline" \
        --min "$size" --max "$size" --seconds "$seconds" --warm-up 0.5 "${@/#/--watch=}" >"$dir/asked" 2>"$dir/ask.log"; then
        echo "$part: $(cat "$dir/asked" "$dir/ask.log")" >&2
        [[ $part != doorbell && $part != af_packet ]] || cli stats --all | grep -v '^ *0 ' >&2
        exit 1
    fi
    jq -c --arg part "$part" '{part: $part} + .' "$dir/asked" >>"$dir/figures"
}

# offload NAMESPACE DEVICE on|off
offload() {
    ip netns exec "$tag-$1" ethtool -K "$2" tx "$3" tso "$3" gso "$3" gro "$3" >/dev/null 2>&1
}

# client_offload on|off: of both ends of the clients' veth
client_offload() {
    offload client c0 "$1"
    offload lb clients "$1"
}

# Each part brings up what it needs, asks, and takes it away again. The last process that ask gets is the server, or
# the worker; those before it are the proxy's.

direct() {
    serve lb
    ask direct "$host" "$pid_server"
    stop "$pid_server"
}

# No log, no statistics, no health checks; HAProxy splices what is worth it.
haproxy() {
    cat >"$dir/haproxy.cfg" <<END
global
    nbthread $threads
    maxconn 4096
defaults
    mode tcp
    option splice-auto
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen echo
    bind $host:8500
    server worker 10.201.0.101:8500
END
    serve w1
    start haproxy lb haproxy -db -f "$dir/haproxy.cfg"
    wait_for "haproxy" listens lb
    ask haproxy "$host" "$pid_haproxy" "$pid_server"
    stop "$pid_haproxy"
    stop "$pid_server"
}

nginx() {
    local workers
    cat >"$dir/nginx.conf" <<END
load_module $nginx_stream;
worker_processes $threads;
daemon off;
pid $dir/nginx.pid;
error_log $dir/nginx.log;
events { worker_connections 4096; multi_accept on; }
stream {
    access_log off;
    server {
        listen $host:8500 $([ "$threads" = 1 ] || echo reuseport);
        tcp_nodelay on;
        proxy_buffer_size 64k;
        proxy_pass 10.201.0.101:8500;
    }
}
END
    serve w1
    start nginx lb nginx -c "$dir/nginx.conf" -e "$dir/nginx.log"
    wait_for "nginx" listens lb
    wait_for "nginx's workers" eval "[ \$(pgrep -c -P $pid_nginx) -eq $threads ]"
    mapfile -t workers < <(pgrep -P "$pid_nginx")
    ask nginx "$host" "${workers[@]}" "$pid_server"
    stop "$pid_nginx"
    stop "$pid_server"
}

# through PART KIND: Doorbell with a clients port of that kind
through() {
    local memif="socket=$dir/memif.sock,socket-abstract=no,rsize=10"
    rm -f "$dir/memif.sock"
    cat >"$dir/lb.yaml" <<END
ports:
  - {name: clients, device: "${2}0,iface=clients", roles: [clients]}
  - {name: fabric, device: "net_memif_fabric,role=server,$memif", roles: [fabric], mtu: 3300, address: 10.201.0.1/24}
services:
  - {name: echo, protocol: tcp, address: $vip, port: 8500, model: echo, max_request: $((size > 1400 ? size : 1400)), max_reply: $((size > 1400 ? size : 1400))}
lcores: [$(cpu 1)]
flows: 65536
memory: {hugepages: false, mb: 1536}
control: {socket: "$dir/control.sock", state_file: off, agents: "10.201.0.254:4790", allow_plain: true}
END
    : >"$dir/lb.log"
    start lb lb "$build/doorbell-lb" --config "$dir/lb.yaml"
    wait_for "the load balancer's control socket" cli version || { cat "$dir/lb.log" >&2 && exit 1; }
    start w1 w1 "$build/gpu-agent/doorbell-agent" --lb 10.201.0.254:4790 --name w1 --gpu none --mtu 3300 --no-hugepages \
        --device "net_memif_agent,role=client,$memif,bsize=3364" --address 10.201.0.11/24 --model echo \
        --model-args "max_request=$((size > 1400 ? size : 1400))"
    wait_for "the worker to be active" worker_is w1 active
    ask "$1" "$vip" "$pid_lb" "$pid_w1"
    [ -z "${KEEP_STATS:-}" ] || cli --json stats --all >"$KEEP_STATS"
    stop "$pid_w1"
    stop "$pid_lb"
}

doorbell() {
    through doorbell kernel
}

af_packet() {
    through af_packet net_af_packet
}

topology_up "peers$$" 1
choose_cubic
ip -n "$tag-lb" addr add "$host/24" dev clients
# The switch between proxy and server forwards frames, and does not filter them.
[ ! -e /proc/sys/net/bridge ] || ip netns exec "$tag-fabric" sysctl -qw net.bridge.bridge-nf-call-iptables=0
for place in "lb fabric" "fabric lb" "fabric w1" "w1 w0"; do
    read -r name interface <<<"$place"
    offload "$name" "$interface" on
done
for ((round = 1; round <= rounds; round++)); do
    for part in $only; do
        case $part in
        haproxy | nginx | direct) client_offload "$offloads" ;;
        *) client_offload off ;;
        esac
        $part
    done
done
# cpu_s_per_million is a list: the client, the proxy's processes, the server or worker.
result=$(jq -s --arg commit "$commit" --arg machine "$machine" --argjson rounds "$rounds" --argjson size "$size" '
    def median: sort | .[length / 2 | floor];
    def named: if $size >= 1024 then "\($size / 1024 | floor)kib" else "\($size)b" end;
    def proxy: .cpu_s_per_million | .[1:-1] | add // 0;
    def behind: .cpu_s_per_million | .[1:] | add;
    def over($a; $b; figure): [$a, $b] | map(map(figure)) | transpose | map(.[0] / .[1]);
    (group_by(.part) | map({key: .[0].part, value: .}) | from_entries) as $parts |
    ([("haproxy", "nginx") as $peer | select($parts[$peer]) |
      ("doorbell", "af_packet") as $ours | select($parts[$ours]) |
        (if $ours == "doorbell" then "" else "_\($ours)" end) as $suffix |
        {key: "rps_over_\($peer)_\(named)\($suffix)", value: over($parts[$ours]; $parts[$peer]; .rps)},
        {key: "cpu_over_\($peer)_\(named)\($suffix)", value: over($parts[$ours]; $parts[$peer]; proxy)},
        {key: "cpu_with_worker_over_\($peer)_\(named)\($suffix)", value: over($parts[$ours]; $parts[$peer]; behind)}] +
     [$parts | to_entries[] | .key as $part | .value as $all |
        {key: "\($part)_rps", value: ($all | map(.rps))},
        {key: "\($part)_p50_us", value: ($all | map(.p50_us))},
        {key: "\($part)_p99_us", value: ($all | map(.p99_us))},
        {key: "\($part)_cpu_s_per_million", value: ($all | map(.cpu_s_per_million | add))},
        (select($part != "direct") | {key: "\($part)_proxy_cpu_s_per_million", value: ($all | map(proxy))}),
        {key: "\($part)_server_cpu_s_per_million", value: ($all | map(.cpu_s_per_million | last))}]) as $series |
    {bench: "tcp-peers", commit: $commit, machine: $machine, runs: $rounds,
     metrics: ($series | map(.value |= median) | from_entries),
     spread: ($series | map(.value |= [min, max]) | from_entries)}' "$dir/figures")
[ -z "$json" ] || echo "$result" >"$json"
jq -r 'def short: . * 1000 | round / 1000;
    .spread as $spread | .metrics | to_entries[] |
    "\(.key) \(.value | short) (\($spread[.key][0] | short), \($spread[.key][1] | short))"' <<<"$result"
