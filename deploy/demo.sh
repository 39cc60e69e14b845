#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Doorbell on one machine, in a minute: a load balancer and two workers in network namespaces, and
# 1,797 pictures of handwritten digits sent to them from ordinary UDP sockets, and by TCP; curl sends one by HTTP.
#
#   deploy/demo.sh [--json FILE] [--keep]
#
#   --json FILE   write the figures there: requests, answered, lost, accuracy, p50_us, p99_us, rps,
#                 workers (each with name and requests)
#   --keep        leave everything running until Ctrl-C, to look around, with a place for a third worker
#
# Where nothing is installed and compiled yet the first step takes two to four minutes, and says how far it is; after
# that all of it takes seconds.
#
# Needs root (namespaces, packages) on Debian 12 or 13. Leaves nothing behind but build/ and the
# packages it installed. Exits 1 unless every picture was answered, by both workers, and at least
# 95 % of those that the model had never seen were recognised.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
digits=$root/gpu-agent/models/digits
vip=10.200.0.100 port=8500 http_port=8080
# shellcheck disable=SC2034 # of topology.sh
device_kind=kernel
json='' keep=no child=
started=$(date +%s%N)

usage() {
    sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit "$1"
}

while [ $# -gt 0 ]; do
    case $1 in
    --json)
        [ $# -gt 1 ] || usage 2
        json=$2
        shift
        ;;
    --keep) keep=yes ;;
    -h | --help) usage 0 ;;
    *) usage 2 ;;
    esac
    shift
done

# shellcheck source=tests/net/topology.sh
. "$root/tests/net/topology.sh"

step() {
    printf '\n[%s/6] %s\n' "$1" "$2"
}

seconds() {
    awk -v ns=$(($(date +%s%N) - $1)) 'BEGIN { printf "%.1f", ns / 1e9 }'
}

# In the background, so that a signal is acted upon at once.
run() {
    "$@" &
    child=$!
    wait $child
    child=
}

finish() {
    local code=$?
    trap - EXIT
    trap '' INT TERM HUP PIPE
    if [ -n "$child" ]; then
        kill "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    if [ $code -ne 0 ] && [ $code -lt 128 ] && [ -n "$dir" ]; then
        tail -n 20 "$dir"/*.log >&2 2>/dev/null || true
    fi
    # End processes that the user started in the place for a third worker.
    [ -z "${tag:-}" ] || ip netns pids "$tag-w3" 2>/dev/null | xargs -r kill || true
    topology_down
    exit $code
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

if [ "$(id -u)" -ne 0 ]; then
    echo "deploy/demo.sh: run it as root: it makes network namespaces" >&2
    exit 1
fi

step 1 "packages and build (deploy/setup.sh): minutes the first time, then a second"
run "$root/deploy/setup.sh" --demo
built=$(seconds "$started")

step 2 "network: a client, a load balancer and two workers, each in a namespace of its own"
workers=2
[ $keep = no ] || workers=3
topology_up "demo$$" $workers
# A small machine may halt a process for a second: no worker is doubted for that.
# shellcheck disable=SC2034
default_workers="{timeout_ms: 5000, suspect_ms: 0}" default_fabric="{ack_timeout: 17}"
topology_config "
  - {name: digits, address: $vip, port: $port, model: mlp, max_request: 72}
  - {name: digits-tcp, protocol: tcp, framing: tagged, address: $vip, port: $port, model: mlp, max_request: 72, max_reply: 72}
  - {name: digits-http, protocol: tcp, framing: kserve, address: $vip, port: $http_port, model: mlp, max_request: 72, max_reply: 72}"
echo "client 10.200.0.2 ── 10.200.0.100 (VIP) load balancer 10.201.0.1 ══ RoCEv2 ══ workers 10.201.0.11, .12"
echo "ports: $(sed -n "s/.*device: \"*\([^\",}]*\).*/\1/p" "$dir/lb.yaml" | paste -sd" ")"

step 3 "doorbell-lb, and two doorbell-agents that serve the digits model"
start_lb
start_agents 2 mlp --model-args "weights=$digits/digits.safetensors"
cli workers list

step 4 "1,797 pictures from 16 UDP sockets; every reply is compared with the model's own answer"
run client digits --to "$vip:$port" --sockets 16 --window 4 --data "$digits/digits.bin" \
    --model "$build/gpu-agent/models/mlp.so" --weights "$digits/digits.safetensors" --draw 4 \
    --json "$dir/client.json"
jq --argjson workers "$(cli --json workers list | jq '[.workers[] | {name, requests}] | sort_by(.name)')" \
    '{requests, answered, lost: (.lost + .refused + .wrong), accuracy, p50_us, p99_us, p999_us,
      rps, workers: $workers}' "$dir/client.json" >"$dir/figures.json"

step 5 "the same pictures by TCP, with the client library for Python"
by_tcp=$(ip netns exec "$tag-client" env PYTHONPATH="$root/control/client" \
    python3 "$root/deploy/docs/examples/digits_tcp.py" "$vip:$port" "$digits/digits.bin")
echo "$by_tcp"

step 6 "what the load balancer saw"
cli flows list --sort requests --limit 5
echo "($(cli --json flows count | jq .count) flows in all)"

# Any program that has a UDP socket is a client: 8 bytes of its own choice, then 64 pixels.
plain="import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); \
s.sendto(b'anything' + open('$digits/digits.bin', 'rb').read()[24:88], ('$vip', $port)); \
print('this picture is a', s.recv(99)[8])"
printf '\nplain Python is a client, too:\n$ python3 -c "%s"\n' "${plain//$root\//}"
ip netns exec "$tag-client" python3 -c "$plain"

printf "\nand so is curl, by KServe's protocol:\n$ deploy/docs/examples/infer_http.sh %s\n" "$vip:$http_port"
by_http=$(ip netns exec "$tag-client" sh "$root/deploy/docs/examples/infer_http.sh" "$vip:$http_port")
echo "$by_http"

jq -r '"", "answered      \(.answered) of \(.requests), lost \(.lost)",
    "accuracy      \(.accuracy * 1000 | round / 10) % of the pictures that training had not seen",
    "latency       p50 \(.p50_us | round) us, p99 \(.p99_us | round) us, p99.9 \(.p999_us | round) us",
    "throughput    \(.rps | round) requests/s",
    "workers       \(.answered as $n | [.workers[] | "\(.name) \(.requests) (\(100 * .requests / $n | round) %)"] | join(", "))"' \
    "$dir/figures.json"
echo "took          $(seconds "$started") s, $built of them for packages and build"
[ -z "$json" ] || jq 'del(.p999_us)' "$dir/figures.json" >"$json"

jq -e '.requests == 1797 and .answered == 1797 and .lost == 0 and .accuracy >= 0.95
    and (.workers | length == 2) and all(.workers[]; .requests > 0)' "$dir/figures.json" >/dev/null &&
    [ "$by_tcp" = "1797 answers over 1 TCP connection, 588 of 599 new pictures read right" ] &&
    [ "$(jq -c '.outputs[0] | [.name, .data]' <<<"$by_http")" = '["class",[0]]' ] || {
    echo "deploy/demo.sh: that is not how it should be" >&2
    exit 1
}

if [ $keep = yes ]; then
    cat <<END

Still running. In another terminal, as root:

  # services, workers and where time goes; then one worker takes no more requests, and takes them again
  export DOORBELL_SOCKET=$dir/control.sock
  $build/control/doorbell top
  $build/control/doorbell workers drain w1
  $build/control/doorbell workers resume w1

  # a third worker, and requests for all three
  ip netns exec $tag-w3 $build/gpu-agent/doorbell-agent --name w3 --lb 10.201.0.254:4790 --device kernel0,iface=w0 --address 10.201.0.13/24 --no-hugepages --model mlp --model-args weights=$digits/digits.safetensors &
  ip netns exec $tag-client $build/control/doorbell bench --to $vip:$port --mix 72:1 --rate 5000 --duration 5

  # the status page's data, and the packets between load balancer and workers
  ip netns exec $tag-lb python3 -c "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:9180/metrics').read().decode())"
  ip netns exec $tag-client curl -s http://$vip:$http_port/v2/models/mlp
  ip netns exec $tag-client $build/tests/net/client/doorbell-client digits --to $vip:$port --data $digits/digits.bin
  ip netns exec $tag-fabric tcpdump -n -c 10 -i lb udp port 4791

Ctrl-C ends it.
END
    run sleep infinity
fi
