#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs beside another: it measures no time.
#
# The bench gpu-tcp without a GPU: kernel TCP clients, doorbell-lb and the agent's library in a Python process, with a
# plug-in that has the sizes of ResNet-50 and of super-resolution; aiohttp where it is. Every reply is
# compared. The figures mean nothing here.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
build=${DOORBELL_BUILD:-$(realpath "$here/../../../build")}
[ "$(id -u)" -eq 0 ] || { echo "skipped: needs root for network namespaces" && exit 77; }
[ -x "$build/tests/bench/bench-e2e" ] || { echo "skipped: DPDK has no net_memif driver here" && exit 77; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

parts=plugin_b8
! python3 -c 'import aiohttp, uvloop' 2>/dev/null || parts+=,http_1_b8

# answers REQUEST-BYTES REPLY-BYTES [OPTIONS...]
answers() {
    local sizes=$1:$2
    shift 2
    python3 "$here/gpu_tcp.py" --build "$build" --model "sizes:$sizes" --parts "$parts" --open 1,8 --rounds 1 \
        --seconds 0.5 --warm-up 0.1 --clients 1 --json "$out/json" --commit test "$@"
    jq -e '.answered > 10 and .failures == [] and .metrics.plugin_b8_open8_rps > 0 and
        .metrics.plugin_b8_open1_p99_us >= .metrics.plugin_b8_open1_p50_us' "$out/json" >/dev/null ||
        { echo "the figures are not as they must be: $(cat "$out/json")" && exit 1; }
}

answers 602112 4000    # ResNet-50
answers 200704 1806336 # super-resolution
for client in c python; do
    answers 602112 4000 --framing kserve --client "$client"
done

# Large replies over AF_XDP: the kernel must take all buffers of the pool, or a part of all segments is lost.
if [ -f "$build/workers/runtime/steer.bpf.o" ]; then
    parts=plugin_b8
    answers 200704 1806336 --xdp --mtu 3000 --stats "$out/stats"
    jq -se '.[0].lcores | all(.tcp.segments_out > 1000 and .tcp.retransmits * 100 < .tcp.segments_out)' \
        <(sed '/^NAME/,$d' "$out/stats.plugin_b8") >/dev/null ||
        { echo "AF_XDP: segments are lost: $(grep -oE '"(segments_out|retransmits)": [0-9]+' "$out/stats.plugin_b8" | xargs)" && exit 1; }
fi

# A wrong reply must show.
head -c 1000 /dev/zero >"$out/zeros"
exec 3< <(python3 -c 'import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    with server.accept()[0] as client:
        while client.recv(65536):
            client.sendall((1000).to_bytes(4, "little") + bytes(4) + b"x" * 1000)')
read -r port <&3
if "$build/tests/bench/bench-tcp-load" --to "127.0.0.1:$port" --requests "$out/zeros" --replies "$out/zeros" \
    --request-bytes 1000 --reply-bytes 1000 --seconds 0.1 >"$out/wrong"; then
    echo "wrong replies were taken for right ones: $(cat "$out/wrong")"
    exit 1
fi
jq -e '.answered > 0 and .wrong == .answered' "$out/wrong" >/dev/null || { echo "wrong: $(cat "$out/wrong")" && exit 1; }
