#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Requests per second of kernel clients that send KServe's JSON and get JSON back, through Doorbell to a worker that
# echoes, and to uvicorn with an application that echoes: a round is all parts in turn.
#
#   kserve_json.sh [--rounds N] [--seconds S] [--connections N] [--numbers N] [--processes N]
#                  [--lcores "N ..."] [--apart on|off] [--load_threads N] [--only "PART ..."] [--json FILE] [--commit TEXT] [--machine TEXT]
#
#   --rounds N           figures are medians of so many (7)
#   --seconds S          that each part is measured in each round (3)
#   --connections N      clients, each with one request open (64)
#   --numbers N          floats in a request and in its answer (1000)
#   --processes N        of uvicorn (1)
#   --lcores "N ..."     Doorbell with so many data-plane cores, in turn ("1")
#   --apart on|off       receive packets of clients on other CPUs than the sender's, as if they were machines of their own
#                        (off; see receive_apart in proxies.sh)
#   --load_threads N     of the clients (1)
#   --only "..."         of these parts: starlette, plain (uvicorn without a framework), doorbell
#
# BUILD is the build directory. Root, for namespaces; wrk; uvicorn, uvloop, httptools, Starlette, ujson of Debian, or those of a
# folder of bundle-net.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
build=${BUILD:-$root/build-bench}
# shellcheck source=tests/bench/live.sh
. "$root/tests/bench/live.sh"
# shellcheck source=tests/net/topology.sh
. "$root/tests/net/topology.sh"

rounds=7 seconds=3 connections=64 numbers=1000 processes=1 lcores=1 apart=off load_threads=1
only="starlette plain doorbell"
live_options "rounds seconds connections numbers processes lcores apart load_threads only" "$@"
# shellcheck source=tests/bench/peers/proxies.sh
. "$root/tests/bench/peers/proxies.sh"
# shellcheck source=tests/bench/peers/kserve.sh
. "$root/tests/bench/peers/kserve.sh"
need wrk jq
python=${BENCH_PYTHON:-/usr/bin/python3}
"$python" -c "import uvicorn, uvloop, httptools, starlette, ujson" 2>/dev/null ||
    { echo "skipped: uvicorn, uvloop, httptools, Starlette or ujson is not installed" && exit 77; }

# Floats of six digits, as models that classify have them.
values=$(awk -v n="$numbers" 'BEGIN { srand(1); for (i = 0; i < n; i++) printf "%s%.6f", (i > 0 ? "," : ""), rand() * 2 - 1 }')

# is_right PART: the answer has the numbers that were sent, to six digits
is_right() {
    sed '1,/^\r$/d' "$dir/answer" | jq -e --slurpfile sent "$dir/body" '[.outputs[0].data, $sent[0].inputs[0].data] | transpose |
        length == '"$numbers"' and all((.[0] - .[1]) | fabs < 1e-6)' >"$dir/ask.log" ||
        wrong "$1" "wrong answer: $(head -c 500 "$dir/answer")"
}

# ask PART ADDRESS PID...
ask() {
    local part=$1 to=$2
    shift 2
    for ((n = 0; n < 2; n++)); do
        [ "$n" -eq 0 ] || ask_wrk "$part" "$to" "$dir/body" "" application/json "$@"
        ask_once "$to" "$dir/body" "" application/json || wrong "$part" "$(head -c 500 "$dir/answer")"
        is_right "$part"
    done
}

# serve PART: uvicorn, in front of the application; PLAIN chooses it
serve() {
    local workers
    start server lb env PYTHONPATH="$root/tests/bench/peers:${PYTHONPATH:-}" PYTHONDONTWRITEBYTECODE=1 "$python" -m uvicorn \
        kserve_uvicorn:app --host "$host" --port 8500 --workers "$processes" --loop uvloop --http httptools \
        --no-access-log --log-level warning --lifespan off --interface asgi3 --no-server-header --no-date-header
    wait_for "uvicorn" listens lb
    wait_for "uvicorn's answer" ask_once "$host" "$dir/body" "" application/json
    workers=("$pid_server")
    [ "$processes" -eq 1 ] || mapfile -t workers < <(pgrep -P "$pid_server")
    ask "$1" "$host" "${workers[@]}"
    stop "$pid_server"
}

starlette() {
    serve starlette
}

plain() {
    PLAIN=1 serve plain
}

doorbell() {
    each_lcores doorbell ask kernel "max_request: 65536, max_reply: 65536" kserve "max_request=65536,datatype=FP32"
}

proxies_up kserve
[ "$apart" = off ] || receive_apart "${lcores##* }"
printf '{"inputs":[{"name":"input0","shape":[%d],"datatype":"FP32","data":[%s]}]}' "$numbers" "$values" >"$dir/body"
for ((round = 1; round <= rounds; round++)); do
    for part in $only; do
        case $part in
        doorbell) client_offload off ;;
        *) client_queues 1 && client_offload on ;;
        esac
        $part
    done
done
# cpu_s_per_million is a list: uvicorn's processes; or the load balancer, the worker. uvicorn's figures are those of
# the faster application of each round.
result=$(jq -s --arg commit "$commit" --arg machine "$machine" --argjson rounds "$rounds" "$proxies_jq"'
    def all: .cpu_s_per_million | add;
    (group_by(.part) | map({key: .[0].part, value: .}) | from_entries) as $parts |
    ([$parts.starlette, $parts.plain] | map(select(.)) | transpose | map(max_by(.rps))) as $peer |
    [select($peer | length > 0) | $parts | to_entries[] | select(.key | startswith("doorbell")) |
        (.key | ltrimstr("doorbell")) as $n | .value as $ours |
        {key: "rps_over_uvicorn\($n)", value: over($ours; $peer; .rps)},
        {key: "cpu_over_uvicorn\($n)", value: over($ours; $peer; all)}] +
    [$parts | to_entries[] | .key as $part | .value as $all |
        {key: "\($part)_rps", value: ($all | map(.rps))},
        {key: "\($part)_p50_us", value: ($all | map(.p50_us))},
        {key: "\($part)_p99_us", value: ($all | map(.p99_us))},
        {key: "\($part)_load_cpu", value: ($all | map(.load_cpu))},
        {key: "\($part)_cpu_s_per_million", value: ($all | map(all))},
        {key: "\($part)_busiest_thread_cpu", value: ($all | map(.busiest_cpu | max))}] |
    report("kserve-json"; $commit; $machine; $rounds)' "$dir/figures")
report "$result"
