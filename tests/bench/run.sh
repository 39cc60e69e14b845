#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Build and run a bench.
#
#   tests/bench/run.sh list
#   tests/bench/run.sh walk [--json FILE] [--runs N]
#   tests/bench/run.sh conntrack [--only 64k|1m|8m|30m] [--json FILE] [--runs N]
#   tests/bench/run.sh conntrack-traffic [--json FILE] [--runs N]
#   tests/bench/run.sh conntrack-traffic --write TRACE.pcap [PACKETS [MEAN BYTES]]
#   tests/bench/run.sh wire-100g [--json FILE] [--runs N] [--lcores N] [--gen-cores N] [--smoke]
#   tests/bench/run.sh flows [--flows N] [COMMAND...]
#   tests/bench/run.sh conntrack-scale [--json FILE] [--runs N] [--lcores-list 1,2,4] [--smoke]
#   tests/bench/run.sh rdma [--json FILE] [--runs N] [--only cycles|wire|loss] [--verify] [--smoke]
#   tests/bench/run.sh bundle DIRECTORY
#
# bundle puts the benches there, what they need on a machine without DPDK, and the commit.
#
# BUILD is the build directory (default: build-bench, made when it is not there). Hugepages are
# reserved for the run and given back after it; without the right to do so the bench runs on 4 KiB
# pages, and says so.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-$root/build-bench}
hugepages=/proc/sys/vm/nr_hugepages
hugepages_before=

usage() {
    sed -n '3,17s/^# \{0,1\}//p' "$0"
}

list() {
    cat <<END
walk               cycles per packet of the load balancer's walk, stage by stage
conntrack          cycles of the flow table's operations, beside rte_hash, 64 k to 30 M flows
conntrack-traffic  Gbps of the walk under campus-like traffic, with flows expiring; 8 M flows
wire-100g          Gbit/s per core from end to end, generator and load balancer joined by memif
conntrack-scale    the same with 1 to N cores, and with every request opening a flow
rdma               the RoCEv2 endpoint: cycles, Gbit/s to the software RNIC, goodput against loss
flows              seconds and memory of doorbell's view of ten million flows
END
}

build() {
    if [ ! -f "$build/build.ninja" ]; then
        meson setup --buildtype=release "$build" "$root" >&2
    fi
    ninja -C "$build" "tests/bench/bench-$1" >&2
}

give_back_hugepages() {
    [ -z "$hugepages_before" ] || echo "$hugepages_before" >"$hugepages"
}

# take_hugepages COUNT: false when they cannot be had
take_hugepages() {
    local free
    free=$(awk '/^HugePages_Free/ { print $2 }' /proc/meminfo)
    [ "${free:-0}" -lt "$1" ] || return 0
    [ -w "$hugepages" ] || return 1
    hugepages_before=$(cat "$hugepages")
    echo $((hugepages_before - free + $1)) >"$hugepages"
    free=$(awk '/^HugePages_Free/ { print $2 }' /proc/meminfo)
    [ "$free" -ge "$1" ]
}

machine() {
    local model
    model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
    echo "${model:-$(uname -m)}, $(nproc) CPUs, Linux $(uname -r)"
}

commit() {
    git -C "$root" describe --always --abbrev=12 --dirty --exclude '*' 2>/dev/null || echo unknown
}

# run_bench NAME HUGEPAGES OPTION...
run_bench() {
    local name=$1 pages=$2
    local options=(--commit "$(commit)" --machine "$(machine)")
    shift 2
    build "$name"
    if ! take_hugepages "$pages"; then
        echo "no hugepages to be had: running on 4 KiB pages" >&2
        options+=(--no-huge)
    fi
    "$build/tests/bench/bench-$name" "${options[@]}" "$@"
}

bundle() {
    local static=$root/build-static to=${1:?bundle needs a directory} name
    if [ ! -f "$static/build.ninja" ]; then
        meson setup --buildtype=release -Dstatic=true -Dxdp=disabled "$static" "$root" >&2
    fi
    mkdir -p "$to"
    for name in walk conntrack conntrack-traffic wire-100g conntrack-scale rdma; do
        ninja -C "$static" "tests/bench/bench-$name" >&2
        cp "$static/tests/bench/bench-$name" "$to/"
    done
    ldd "$static/tests/bench/bench-walk" | awk '/libisal/ { print $3 }' | xargs -I{} cp -L {} "$to/"
    commit >"$to/commit"
    ls "$to"
}

flows() {
    build flows
    "$build/tests/bench/bench-flows" "$@"
}

trap give_back_hugepages EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

case ${1:-} in
walk)
    shift
    # 1792 MiB and a few pages that the EAL wants on top
    run_bench walk 1024 "$@"
    ;;
conntrack)
    shift
    # 8 million flows in three tables, or 30 million in two
    run_bench conntrack 5200 "$@"
    ;;
conntrack-traffic)
    shift
    if [ "${1:-}" = --write ]; then
        build conntrack-traffic
        "$build/tests/bench/bench-conntrack-traffic" "$@"
    else
        run_bench conntrack-traffic 1700 "$@"
    fi
    ;;
wire-100g | conntrack-scale | rdma)
    name=$1
    shift
    build "$name"
    run_bench "$name" "$("$build/tests/bench/bench-$name" "$@" --print-pages 2>/dev/null)" "$@"
    ;;
bundle)
    shift
    bundle "$@"
    ;;
flows)
    shift
    flows "$@"
    ;;
list)
    list
    ;;
-h | --help)
    usage
    ;;
*)
    usage >&2
    exit 2
    ;;
esac
