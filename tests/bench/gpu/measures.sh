#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Measure again, on another machine, what gpu.md says of rings in a GPU's memory, posting, the agent's CPU time, energy and
# doorbells; the tests of the same go before.
#
#   tests/bench/gpu/measures.sh bundle DIRECTORY   programs for a machine with a GPU, or two, without DPDK and compilers
#   DIRECTORY/measures.sh run OUT [--quick]        there: results into the folder OUT
#
# OUT gets machine.txt, tests.txt, bench.txt, e2e.txt, e2e-poll.json, e2e-sleep.json, and gpu-measures.json, which has all
# figures: tests/bench/results/gpu-measures-*.json are such files. Where there is one GPU the rings are left out, and said to
# be. run takes some 100 s, with --quick 40 s. Exits with 1 if something failed.
#
# BUILD is the build directory (default: build-bench, made when it is not there); e2e's programs are built statically.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
bench_parts=posted,rings,rnic,joules,bell
limit_s=280 # of a program: a hung kernel must not hold the machine

usage() {
    sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"
}

# carry FILE DIRECTORY: FILE, and the libraries that it needs beyond libc
carry() {
    cp -L "$1" "$2/"
    ldd "$1" | awk '$2 == "=>" && $1 !~ /^(libc|libm|libdl|libpthread|librt)\.so/ { print $3 }' | xargs -r -I{} cp -L {} "$2/"
}

bundle() {
    local root=$here/../../.. to=${1:?bundle needs a directory} name programs build
    local tests=(tests/gpu/{peer,memory,post}_test tests/bench/bench-gpu)
    set -e
    build=${BUILD:-$root/build-bench}
    programs=(doorbell-lb gpu-agent/doorbell-agent control/doorbell tests/bench/bench-e2e)
    [ -f "$build/build.ninja" ] || meson setup --buildtype=release "$build" "$root" >&2
    [ -f "$root/build-static/build.ninja" ] ||
        meson setup --buildtype=release -Dstatic=true -Dxdp=disabled "$root/build-static" "$root" >&2
    ninja -C "$build" "${tests[@]}" gpu-agent/models/echo.so >&2
    ninja -C "$root/build-static" "${programs[@]}" >&2
    mkdir -p "$to/models" "$to/digits"
    for name in "${tests[@]/#/$build/}" "${programs[@]/#/$root/build-static/}"; do
        carry "$name" "$to"
    done
    carry "$build/gpu-agent/models/echo.so" "$to/models"
    cp "$root"/tests/bench/{e2e/e2e,hugepages}.sh "$here/measures.sh" "$to/"
    git -C "$root" describe --always --dirty >"$to/commit"
    find "$to" -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF && strip --strip-unneeded "$1"' sh {} \;
    du -sh "$to"
}

# named COMMAND...: its output, under its name
named() {
    local status=0
    echo "== ${*//"$here/"/}"
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

bench() {
    local machine
    machine=$(nvidia-smi --query-gpu=name --format=csv,noheader | sort | uniq -c | sed 's/^ *//' | paste -sd ';')
    named "$here/bench-gpu" --only "$bench_parts" --runs "$1" --json "$out/gpu-measures.json" --commit "$(cat "$here/commit")" \
        --machine "$machine, $(nproc) CPUs"
}

# The agent's CPU time with the software RNIC, told to spin when idle, and told to sleep.
soft_rnic() {
    local idle
    for idle in poll sleep; do
        named "$here/e2e.sh" --window 64 --requests "$1" --idle "$idle" --json "$out/e2e-$idle.json" || return 1
    done
}

# Add what e2e.txt says to the figures.
add_soft_rnic() {
    python3 - "$out/e2e.txt" "$out/gpu-measures.json" <<'END'
import json, re, sys

told = open(sys.argv[1]).read()
figures = json.load(open(sys.argv[2]))
line = r"agent's CPU time (while the client ran|in a second without requests), of (\d+) us: software RNIC (\d+) us, all else (\d+) us"
found = re.findall(line, told)
if len(found) != 4:
    sys.exit("e2e.sh does not tell the agent's CPU time")
for (when, *us), idle in zip(found, ["poll", "poll", "sleep", "sleep"]):
    of, rnic, others = map(int, us)
    end = f"{idle}{'_idle' if when.startswith('in') else ''}"
    for name, value in [(f"agent_cpu_percent_with_rnic_soft_{end}", rnic + others), (f"agent_cpu_percent_without_rnic_soft_{end}", others)]:
        figures["metrics"][name] = 100 * value / of
        figures["spread"][name] = [100 * value / of] * 2
        print(f"{name:44} {100 * value / of:10.2f}")
json.dump(figures, open(sys.argv[2], "w"), indent=2)
END
}

run() {
    local failed=0 runs=5 requests=1000000
    out=${1:?run needs a folder for the results}
    [ "${2:-}" != --quick ] || runs=1 requests=100000
    mkdir -p "$out"
    export LD_LIBRARY_PATH=$here
    say_machine 2>&1 | tee "$out/machine.txt"
    tests | tee "$out/tests.txt" || failed=1
    bench "$runs" | tee "$out/bench.txt" || failed=1
    soft_rnic "$requests" | tee "$out/e2e.txt" || failed=1
    if [ ! -s "$out/gpu-measures.json" ] || ! add_soft_rnic; then
        failed=1
    fi
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
