#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Models of PyTorch on a GPU: build and run the bench, or carry it, and gpu_tcp.py, to a machine that has both.
#
#   tests/bench/gpu/gpu_models.sh run [--runs N] [--json FILE] [--only mlp,superres,squeezenet,resnet50]
#   tests/bench/gpu/gpu_models.sh bundle DIRECTORY
#
# bundle puts there the benches, doorbell_agent.py with the agent's library, its test and examples, the load
# balancer, the libraries that a machine without DPDK lacks, and the commit. There:
# python3 DIRECTORY/gpu_models.py --help, python3 DIRECTORY/gpu_tcp.py --help
#
# BUILD is the build directory of run (default: build-bench, made when it is not there).
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
# shellcheck source=tests/bench/hugepages.sh
. "$root/tests/bench/hugepages.sh"

usage() {
    sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"
}

# build DIRECTORY SETUP_OPTION... -- TARGET...
build() {
    local to=$1 options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    if [ ! -f "$to/build.ninja" ]; then
        meson setup --buildtype=release "${options[@]}" "$to" "$root" >&2
    fi
    ninja -C "$to" "$@" >&2
}

gpu_machine() {
    local gpu
    gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1) || gpu=
    echo "${gpu:-no GPU}, $(machine)"
}

run() {
    local build=${BUILD:-$root/build-bench}
    build "$build" -- tests/bench/libbench-gpu.so
    BENCH_GPU_LIBRARY=$build/tests/bench/libbench-gpu.so exec python3 "$root/tests/bench/gpu/gpu_models.py" \
        --commit "$(commit)" --machine "$(gpu_machine)" "$@"
}

# What LIBRARY needs beyond libc, each with what it needs itself.
libraries_of() {
    ldd "$1" | awk '$2 == "=>" && $1 !~ /^(libc|libm|libdl|libpthread|librt)\.so/ { print $3 }'
}

bundle() {
    local static=$root/build-static-gpu to=${1:?bundle needs a directory} name
    local targets=(gpu-agent/libdoorbell-agent.so doorbell-lb control/doorbell
        tests/bench/{libbench-gpu,cpu_mediated,tcp_sizes}.so tests/bench/bench-tcp-load workers/runtime/steer.bpf.o)
    build "$static" -Dstatic=true -Dxdp=enabled -Dcuda=enabled -- "${targets[@]}"
    # The load balancer finds its XDP program below its own folder.
    mkdir -p "$to/workers/runtime"
    cp "$static/workers/runtime/steer.bpf.o" "$to/workers/runtime/"
    unset "targets[-1]"
    for name in "${targets[@]}"; do
        cp "$static/$name" "$to/"
        libraries_of "$static/$name" | xargs -I{} cp -L {} "$to/"
    done
    cp "$root"/gpu-agent/python/{,examples/}*.py "$root"/tests/bench/gpu/*.py "$root/tests/gpu/python_test.py" "$to/"
    commit >"$to/commit"
    ls "$to"
}

case ${1:-} in
run)
    shift
    run "$@"
    ;;
bundle)
    shift
    bundle "$@"
    ;;
-h | --help)
    usage
    ;;
*)
    usage >&2
    exit 2
    ;;
esac
