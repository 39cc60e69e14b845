#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Requests per second of 64 kernel TCP connections, and the CPU time that they cost, with Doorbell between them
# and a worker, and with HAProxy and with nginx between them and an epoll server: a round is all parts in turn.
#
#   tcp_peers.sh [--rounds N] [--seconds S] [--connections N] [--pipeline N] [--size BYTES] [--threads N]
#                [--lcores "N ..."] [--only "PART ..."] [--json FILE] [--commit TEXT] [--machine TEXT]
#
#   --rounds N        figures are medians of so many (7)
#   --seconds S       that each part is measured in each round (3)
#   --connections N   clients (64)
#   --pipeline N      requests that each has open (1)
#   --size BYTES      of a request and of its reply (1024)
#   --threads N       of each proxy; the server has one (2)
#   --lcores "N ..."  Doorbell with so many data-plane cores, in turn ("1")
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

rounds=7 seconds=3 connections=64 pipeline=1 size=1024 threads=2 lcores=1 offloads=on
only="direct haproxy nginx doorbell af_packet"
live_options "rounds seconds connections pipeline size threads lcores offloads only" "$@"
nginx_stream=${NGINX_STREAM_MODULE:-/usr/lib/nginx/modules/ngx_stream_module.so}
# shellcheck source=tests/bench/peers/proxies.sh
. "$root/tests/bench/peers/proxies.sh"
for program in haproxy nginx; do
    [[ " $only " != *" $program "* ]] || need "$program"
done
[[ " $only " != *" nginx "* || -e $nginx_stream ]] || { echo "skipped: nginx has no stream module" && exit 77; }

stream=$build/tests/net/stream/tcp-stream

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
        [[ $part != doorbell* && $part != af_packet* ]] || cli stats --all | grep -v '^ *0 ' >&2
        exit 1
    fi
    jq -c --arg part "$part" '{part: $part} + .' "$dir/asked" >>"$dir/figures"
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
    ask_nginx
}

# through PART KIND: Doorbell with a clients port of that kind
through() {
    local most=$((size > 1400 ? size : 1400))
    each_lcores "$1" ask "$2" "max_request: $most, max_reply: $most" length "max_request=$most"
}

doorbell() {
    through doorbell kernel
}

af_packet() {
    through af_packet net_af_packet
}

proxies_up peers
for ((round = 1; round <= rounds; round++)); do
    for part in $only; do
        case $part in
        haproxy | nginx | direct) client_queues "$threads" && client_offload "$offloads" ;;
        *) client_offload off ;;
        esac
        $part
    done
done
# cpu_s_per_million is a list: the client, the proxy's processes, the server or worker.
result=$(jq -s --arg commit "$commit" --arg machine "$machine" --argjson rounds "$rounds" --argjson size "$size" "$proxies_jq"'
    def proxy: .cpu_s_per_million | .[1:-1] | add // 0;
    def behind: .cpu_s_per_million | .[1:] | add;
    ($size | named) as $named |
    (group_by(.part) | map({key: .[0].part, value: .}) | from_entries) as $parts |
    [("haproxy", "nginx") as $peer | select($parts[$peer]) |
      ($parts | keys_unsorted[] | select(startswith("doorbell") or startswith("af_packet"))) as $ours |
        ($ours | if startswith("doorbell") then ltrimstr("doorbell") else "_\(.)" end) as $suffix |
        {key: "rps_over_\($peer)_\($named)\($suffix)", value: over($parts[$ours]; $parts[$peer]; .rps)},
        {key: "cpu_over_\($peer)_\($named)\($suffix)", value: over($parts[$ours]; $parts[$peer]; proxy)},
        {key: "cpu_with_worker_over_\($peer)_\($named)\($suffix)", value: over($parts[$ours]; $parts[$peer]; behind)}] +
    [$parts | to_entries[] | .key as $part | .value as $all |
        {key: "\($part)_rps", value: ($all | map(.rps))},
        {key: "\($part)_p50_us", value: ($all | map(.p50_us))},
        {key: "\($part)_p99_us", value: ($all | map(.p99_us))},
        {key: "\($part)_cpu_s_per_million", value: ($all | map(.cpu_s_per_million | add))},
        (select($part != "direct") | {key: "\($part)_proxy_cpu_s_per_million", value: ($all | map(proxy))}),
        {key: "\($part)_server_cpu_s_per_million", value: ($all | map(.cpu_s_per_million | last))}] |
    report("tcp-peers"; $commit; $machine; $rounds)' "$dir/figures")
report "$result"
