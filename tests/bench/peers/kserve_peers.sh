#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Requests per second of kernel clients of KServe, and the CPU time that they cost: by HTTP/1.1 with Doorbell between
# them and a worker, and with HAProxy and nginx between them and a server that answers at once; by gRPC with Doorbell,
# and with a server in C++. A round is all parts in turn.
#
#   kserve_peers.sh [--rounds N] [--seconds S] [--connections N] [--grpc_connections N] [--sizes "BYTES ..."]
#                   [--threads N] [--lcores "N ..."] [--apart on|off] [--load_threads N] [--grpc "callback | async N"] [--only "PART ..."] [--json FILE]
#                   [--commit TEXT] [--machine TEXT]
#
#   --rounds N           figures are medians of so many (7)
#   --seconds S          that each part is measured in each round (3)
#   --connections N      requests that are open at once, by HTTP each on a connection of its own (64)
#   --grpc_connections N of which each has an equal part of them open (16)
#   --sizes "..."        bytes of the tensor of a request and of its answer ("1024 602112")
#   --threads N          of each proxy, and of the server behind it (2)
#   --lcores "N ..."     Doorbell with so many data-plane cores, in turn ("1")
#   --apart on|off       receive packets of clients and servers on other CPUs than the sender's, as if they were machines of
#                        their own (off; see receive_apart in proxies.sh)
#   --load_threads N     of the clients (1)
#   --grpc "..."         how the server in C++ serves ("async 2")
#   --offloads on|off    of the clients' veth under proxies and servers (on; Doorbell has them off)
#   --only "..."         of these parts: direct (the server without anything in between), haproxy, nginx, doorbell,
#                        grpc_server (in C++), grpc_doorbell
#
# BUILD is the build directory. Root, for namespaces; haproxy, nginx, wrk, h2load.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
build=${BUILD:-$root/build-bench}
# shellcheck source=tests/bench/live.sh
. "$root/tests/bench/live.sh"
# shellcheck source=tests/net/topology.sh
. "$root/tests/net/topology.sh"

rounds=7 seconds=3 connections=64 grpc_connections=16 sizes="1024 602112" threads=2 load_threads=1 grpc="async 2" offloads=on
lcores=1 apart=off
only="direct haproxy nginx doorbell grpc_server grpc_doorbell"
live_options "rounds seconds connections grpc_connections sizes threads lcores apart load_threads grpc offloads only" "$@"
# shellcheck source=tests/bench/peers/proxies.sh
. "$root/tests/bench/peers/proxies.sh"
# shellcheck source=tests/bench/peers/kserve.sh
. "$root/tests/bench/peers/kserve.sh"
need wrk
[[ " $only " != *grpc* ]] || need h2load
for program in haproxy nginx; do
    [[ " $only " != *" $program "* ]] || need "$program"
done
server=$build/tests/bench/bench-http-respond
grpc_server=$build/tests/bench/bench-grpc-echo
[[ " $only " != *grpc* || -x $grpc_server ]] || { echo "skipped: built without gRPC's library for C++" && exit 77; }

# --- what is sent

# bytes NUMBER...: each as a byte
bytes() {
    local n
    for n; do
        # shellcheck disable=SC2059
        printf "\\x$(printf %02x "$n")"
    done
}

# varint NUMBER
varint() {
    local n=$1
    for (( ; n >= 128; n /= 128)); do
        bytes $((n % 128 + 128))
    done
    bytes "$n"
}

# field TAG FILE: a field of a message, whose bytes are in FILE
field() {
    bytes "$1"
    varint "$(stat -c %s "$2")"
    cat "$2"
}

# prepare SIZE: the tensor, the requests, and the answer of the server behind proxies, in $dir/SIZE.*
prepare() {
    local size=$1 at=$dir/$1 json
    head -c "$size" /dev/urandom >"$at.tensor"
    json="{\"inputs\":[{\"name\":\"input0\",\"shape\":[$size],\"datatype\":\"UINT8\",\"parameters\":{\"binary_data_size\":$size}}],"
    json+="\"parameters\":{\"binary_data_output\":true}}"
    printf %s "$json" | cat - "$at.tensor" >"$at.body"
    echo ${#json} >"$at.json_length"
    json="{\"model_name\":\"echo\",\"model_version\":\"1\",\"outputs\":[{\"name\":\"output0\",\"datatype\":\"UINT8\","
    json+="\"shape\":[$size],\"parameters\":{\"binary_data_size\":$size}}]}"
    {
        printf 'HTTP/1.1 200 OK\r\nDate: Wed, 25 Nov 2026 15:37:49 GMT\r\nContent-Type: application/octet-stream\r\n'
        printf 'Content-Length: %d\r\nInference-Header-Content-Length: %d\r\n\r\n%s' $((${#json} + size)) ${#json} "$json"
        cat "$at.tensor"
    } >"$at.response"
    # ModelInferRequest: model_name, an input, raw_input_contents; in front of it its length
    printf input0 >"$dir/name"
    printf UINT8 >"$dir/type"
    varint "$size" >"$dir/shape"
    { field 0x0a "$dir/name" && field 0x12 "$dir/type" && field 0x1a "$dir/shape"; } >"$dir/input"
    printf echo >"$dir/model"
    { field 0x0a "$dir/model" && field 0x2a "$dir/input" && field 0x3a "$at.tensor"; } >"$dir/message"
    local n
    n=$(stat -c %s "$dir/message")
    { bytes 0 $((n >> 24 & 255)) $((n >> 16 & 255)) $((n >> 8 & 255)) $((n & 255)) && cat "$dir/message"; } >"$at.message"
}

# is_right PART: the answer ends with the tensor that was sent
is_right() {
    tail -c "$size" "$dir/answer" | cmp - "$dir/$size.tensor" >"$dir/ask.log" 2>&1 || wrong "$1" "wrong answer: $(head -c 500 "$dir/answer")"
}

# ask PART ADDRESS PID...
ask() {
    local part=$1 to=$2 length
    shift 2
    length=$(cat "$dir/$size.json_length")
    for ((n = 0; n < 2; n++)); do
        [ "$n" -eq 0 ] || ask_wrk "$part" "$to" "$dir/$size.body" "$length" application/octet-stream "$@"
        ask_once "$to" "$dir/$size.body" "$length" application/octet-stream || wrong "$part" "$(head -c 500 "$dir/answer")"
        is_right "$part"
    done
}

# ask_grpc PART ADDRESS PID...
ask_grpc() {
    local part=$1 to=$2
    shift 2
    for ((n = 0; n < 2; n++)); do
        [ "$n" -eq 0 ] || ask_h2load "$part" "$to" "$dir/$size.message" "$@"
        ip netns exec "$tag-client" timeout 20 "$grpc_server" "$to:8500" ask "$dir/$size.message" >"$dir/answer" 2>"$dir/ask.log" ||
            wrong "$part" "no answer by gRPC"
        is_right "$part"
    done
}

# --- parts: each brings up what it needs, asks, and takes it away again

# serve PLACE ADDRESS: the server in namespace <tag>-PLACE, its process in $pid_server
serve() {
    start server "$1" "$server" "$2" 8500 "$dir/$size.response" "$threads"
    wait_for "the server" listens "$1"
}

direct() {
    serve lb "$host"
    ask direct "$host" "$pid_server"
    stop "$pid_server"
}

# No log, no statistics, no health checks.
haproxy() {
    cat >"$dir/haproxy.cfg" <<END
global
    nbthread $threads
    maxconn 4096
defaults
    mode http
    option splice-auto
    http-reuse always
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen echo
    bind $host:8500
    server worker 10.201.0.101:8500
END
    serve w1 10.201.0.101
    start haproxy lb haproxy -db -f "$dir/haproxy.cfg"
    wait_for "haproxy" listens lb
    ask haproxy "$host" "$pid_haproxy" "$pid_server"
    stop "$pid_haproxy"
    stop "$pid_server"
}

nginx() {
    cat >"$dir/nginx.conf" <<END
worker_processes $threads;
daemon off;
pid $dir/nginx.pid;
error_log $dir/nginx.log;
events { worker_connections 4096; multi_accept on; }
http {
    access_log off;
    client_body_temp_path $dir/body;
    proxy_temp_path $dir/proxy;
    fastcgi_temp_path $dir/fastcgi;
    uwsgi_temp_path $dir/uwsgi;
    scgi_temp_path $dir/scgi;
    keepalive_requests 1000000000;
    client_max_body_size 0;
    client_body_buffer_size 1m;
    proxy_buffer_size 16k;
    proxy_buffers 64 16k;
    proxy_max_temp_file_size 0;
    upstream workers {
        server 10.201.0.101:8500;
        keepalive 256;
        keepalive_requests 1000000000;
    }
    server {
        listen $host:8500 $([ "$threads" = 1 ] || echo reuseport);
        location / {
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_pass http://workers;
        }
    }
}
END
    serve w1 10.201.0.101
    ask_nginx
}

# through ASK PART
through() {
    local most=$((size > 1400 ? size : 1400))
    each_lcores "$2" "$1" kernel "max_request: $most, max_reply: $most" kserve "max_request=$most"
}

doorbell() {
    through ask doorbell
}

grpc_doorbell() {
    through ask_grpc grpc_doorbell
}

grpc_server() {
    # shellcheck disable=SC2086
    start server lb "$grpc_server" "$host:8500" $grpc
    wait_for "the server of gRPC" listens lb
    ask_grpc grpc_server "$host" "$pid_server"
    stop "$pid_server"
}

proxies_up kserve
[ "$apart" = off ] || receive_apart "${lcores##* }"
for size in $sizes; do
    prepare "$size"
done
for ((round = 1; round <= rounds; round++)); do
    for size in $sizes; do
        for part in $only; do
            case $part in
            *doorbell) client_offload off ;;
            *) client_queues "$threads" && client_offload "$offloads" ;;
            esac
            $part
        done
    done
done
# cpu_s_per_million is a list: the proxy's processes, the server or worker.
result=$(jq -s --arg commit "$commit" --arg machine "$machine" --argjson rounds "$rounds" "$proxies_jq"'
    def proxy: .cpu_s_per_million | .[:-1] | add // 0;
    def all: .cpu_s_per_million | add;
    [group_by(.size)[] | (.[0].size | named) as $size |
     (group_by(.part) | map({key: .[0].part, value: .}) | from_entries) as $parts |
     ([("haproxy", "nginx") as $peer | select($parts[$peer]) |
        $parts | to_entries[] | select(.key | startswith("doorbell")) | (.key | ltrimstr("doorbell")) as $n | .value as $ours |
        {key: "rps_over_\($peer)_\($size)\($n)", value: over($ours; $parts[$peer]; .rps)},
        {key: "cpu_over_\($peer)_\($size)\($n)", value: over($ours; $parts[$peer]; proxy)},
        {key: "cpu_with_worker_over_\($peer)_\($size)\($n)", value: over($ours; $parts[$peer]; all)}] +
      [select($parts.grpc_server) | $parts | to_entries[] | select(.key | startswith("grpc_doorbell")) |
        (.key | ltrimstr("grpc_doorbell")) as $n | .value as $ours |
        {key: "grpc_rps_over_peer\(if $size == "1kib" then "" else "_\($size)" end)\($n)",
         value: over($ours; $parts.grpc_server; .rps)},
        {key: "grpc_cpu_over_peer_\($size)\($n)", value: over($ours; $parts.grpc_server; all)}] +
      [$parts | to_entries[] | .key as $part | .value as $all |
        {key: "\($part)_rps_\($size)", value: ($all | map(.rps))},
        (select($all[0].p99_us) | {key: "\($part)_p50_us_\($size)", value: ($all | map(.p50_us))},
            {key: "\($part)_p99_us_\($size)", value: ($all | map(.p99_us))}),
        {key: "\($part)_load_cpu_\($size)", value: ($all | map(.load_cpu))},
        (select($part | IN("direct", "grpc_server") | not) |
            {key: "\($part)_proxy_cpu_s_per_million_\($size)", value: ($all | map(proxy))},
            {key: "\($part)_proxy_busiest_thread_cpu_\($size)", value: ($all | map(.busiest_cpu[:-1] | max))}),
        {key: "\($part)_server_busiest_thread_cpu_\($size)", value: ($all | map(.busiest_cpu | last))},
        {key: "\($part)_server_cpu_s_per_million_\($size)", value: ($all | map(.cpu_s_per_million | last))}])[]] |
    report("kserve-peers"; $commit; $machine; $rounds)' "$dir/figures")
report "$result"
