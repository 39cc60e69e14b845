#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The bench e2e in small: real daemons and a client joined by memif, every reply checked. Its figures
# mean nothing here, but losses must show.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
export BUILD=${DOORBELL_BUILD:-$here/../../../build}
if [ ! -x "$BUILD/tests/bench/bench-e2e" ]; then
    echo "bench-e2e is not built: DPDK has no net_memif driver here"
    exit 77
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
mkdir "$out/tmp"
export TMPDIR=$out/tmp

# answers FIGURES OPTIONS...: all requests are answered, and FIGURES, a jq condition, holds
answers() {
    local figures=$1
    shift
    "$here/e2e.sh" --smoke --no-huge --json "$out/json" "$@"
    jq -e ".metrics | .answered == 2000 and .lost == 0 and .busy == 0 and .wrong == 0 and ($figures)" \
        "$out/json" >/dev/null || {
        echo "e2e $*: the figures are not as they must be: $(jq -c .metrics "$out/json")"
        exit 1
    }
}

answers '.e2e_p50_us_1kib > 0 and .e2e_p99_us_1kib >= .e2e_p50_us_1kib and .e2e_rps_1kib > 0'
# as long as a datagram may be, which takes several packets on the fabric
answers '.e2e_rps_9188b > 0' --size 9188 --window 32
answers '.e2e_rps_digits > 0 and .accuracy >= 0.95' --model mlp --window 32
answers '.e2e_rps_digits > 0 and .accuracy >= 0.95' --model mlp --form-only
# a queue for each lcore, a thread of the client for each queue, and two workers' processes
[ "$(nproc)" -lt 2 ] || answers '.threads == 2 and .e2e_rps_1kib > 0' --lcores 2 --workers 2 --window 64
# beside neighbours that copy memory
[ "$(nproc)" -lt 2 ] || answers '.e2e_p99_us_1kib > 0' --hogs --idle sleep --lb-cpu 0 --client-cpu 0 --agent-cpus 0,1
# one of two workers' processes is killed: nothing is lost, and it comes back
"$here/e2e.sh" --no-huge --workers 2 --requests 150000 --window 16 --timeout-ms 10000 --fault kill
# the load balancer is killed, and the agent ends when it is told to
"$here/e2e.sh" --no-huge --leave idle
# words with blanks reach the agent whole, and a reply that does not come in time is lost
if "$here/e2e.sh" --no-huge --requests 20 --timeout-ms 20 --agent-args "--model-args 'delay_us=200000'" \
    >"$out/slow" 2>&1; then
    echo "a worker ten times slower than the time-out lost nothing: $(cat "$out/slow")"
    exit 1
fi
grep -q 'lost [1-9]' "$out/slow" || {
    echo "nothing is said of what was lost: $(cat "$out/slow")"
    exit 1
}
if [ -n "$(ls "$TMPDIR")" ]; then
    echo "left behind: $(ls "$TMPDIR")"
    exit 1
fi
echo "latency, long datagrams, digits and losses are as they must be"
