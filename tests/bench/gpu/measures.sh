#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Measure again, on another machine, what gpu.md says of rings in a GPU's memory, posting, the agent's CPU time, energy and
# doorbells; with the tests that go before.
#
#   tests/bench/gpu/measures.sh bundle DIRECTORY   programs for a machine with a GPU, or two, without DPDK and compilers
#   DIRECTORY/measures.sh run OUT [--quick]        there; results, as JSON and text, into the folder OUT
#
# OUT gets machine.txt, tests.txt, bench.txt, e2e.txt and gpu-measures.json, whose figures are those of
# tests/bench/results/gpu-measures-*.json. With one GPU the rings are left out, and said to be. Exits with 1 if a test failed.
#
# run takes some 4 minutes, with --quick one.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
bench_parts=rings,posted,rnic,joules,bell
limit_s=280 # of a program: a hung kernel must not hold the machine

usage() {
    sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"
}

bundle() {
    local root=$here/../../.. to=${1:?bundle needs a directory}
    set -e
    "$root/tests/bench/run.sh" bundle "$to" --without-mlp
    ninja -C "$root/build-static" tests/gpu/{peer,memory,post}_test >&2
    cp "$root"/build-static/tests/gpu/{peer,memory,post}_test "$here/measures.sh" "$to/"
    # Of the other benches nothing is wanted, and of symbols.
    rm -f "$to"/bench-{conntrack,conntrack-scale,conntrack-traffic,rdma,tcp,walk,wire-100g} "$to"/{loop,steps}_test
    find "$to" -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF && strip --strip-unneeded "$1"' sh {} \;
    du -sh "$to"
}

# named COMMAND...: its output, under its name
named() {
    local status=0
    echo "== ${*#"$here/"}"
    timeout -k 5 "$limit_s" "$@" 2>&1 || status=$?
    echo "exit status $status"
    return $status
}

say_machine() {
    nvidia-smi --query-gpu=index,name,driver_version,pcie.link.gen.max,pcie.link.width.max,persistence_mode --format=csv
    nvidia-smi topo -m
    nvidia-smi nvlink --status -i 0 | head -n 4
    lscpu | grep -E '^(Model name|CPU\(s\)|Socket|NUMA)'
    uname -r
    cat "$here/commit"
}

# Status 77 is a test that this machine cannot run.
tests() {
    local failed=0 name status
    for name in memory_test post_test "peer_test $here/models"; do
        # shellcheck disable=SC2086 # a name and its arguments
        named "$here"/$name
        status=$?
        [ $status -eq 0 ] || [ $status -eq 77 ] || failed=1
    done
    return $failed
}

# The agent's CPU time with the software RNIC, which sleeps or spins when idle.
soft_rnic() {
    local idle
    for idle in "$@"; do
        named "$here/e2e.sh" --window 64 --requests "$requests" --idle "$idle" --json "$out/e2e-$idle.json" || return 1
    done
}

run() {
    local failed=0 runs=5
    out=${1:?run needs a folder for the results} requests=1000000
    [ "${2:-}" != --quick ] || runs=1 requests=100000
    mkdir -p "$out"
    export LD_LIBRARY_PATH=$here
    say_machine >"$out/machine.txt" 2>&1
    tests >"$out/tests.txt" || failed=1
    named "$here/bench-gpu" --only "$bench_parts" --runs "$runs" --json "$out/gpu-measures.json" --commit "$(cat "$here/commit")" \
        --machine "$(nvidia-smi -L | sed 's/ (UUID.*//' | paste -sd ';'), $(nproc) CPUs" >"$out/bench.txt" || failed=1
    soft_rnic poll sleep >"$out/e2e.txt" || failed=1
    cat "$out"/{machine,tests,bench,e2e}.txt
    return $failed
}

case ${1:-} in
bundle | run)
    "$@"
    ;;
-h | --help)
    usage
    ;;
*)
    usage >&2
    exit 2
    ;;
esac
