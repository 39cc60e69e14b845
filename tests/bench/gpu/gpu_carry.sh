#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# bench-gpu and gpu_models.py for a machine with a GPU that has neither packages nor a build, in some 10 MB:
#
#   tests/bench/gpu/gpu_carry.sh bundle FILE.tar.xz     from the build directory BUILD (default: build)
#
# There, unpacked (`python3 -c 'import tarfile; tarfile.open("FILE.tar.xz").extractall()'` where there is no xz):
#
#   gpu-carried/gpu_carry.sh gpu [--runs N] [--json FILE] [--only floor|echo|throughput|...]
#   gpu-carried/gpu_carry.sh models [--runs N] [--json FILE] [--only mlp,superres,...] [--quick]
#   gpu-carried/gpu_carry.sh compare OTHER [--only PART]   this bench-gpu and OTHER's, in turn, three times
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)

usage() {
    sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"
}

# carry FILE DIRECTORY: FILE, and the libraries that it needs beyond libc
carry() {
    cp -L "$1" "$2/"
    ldd "$1" | awk '$2 == "=>" && $1 !~ /^(libc|libm|libdl|libpthread|librt)\.so/ { print $3 }' | xargs -r -I{} cp -L {} "$2/"
}

bundle() {
    local file=${1:?bundle needs a file} root=$here/../../.. build to name work
    build=${BUILD:-$root/build}
    work=$(mktemp -d)
    to=$work/gpu-carried
    mkdir -p "$to/models" "$to/digits"
    ninja -C "$build" tests/bench/bench-gpu tests/bench/libbench-gpu.so gpu-agent/models/{echo,mlp}.so >&2
    carry "$build/tests/bench/bench-gpu" "$to"
    carry "$build/tests/bench/libbench-gpu.so" "$to"
    for name in echo mlp; do
        carry "$build/gpu-agent/models/$name.so" "$to"
        mv "$to/$name.so" "$to/models/"
    done
    cp "$root/gpu-agent/models/digits/digits.safetensors" "$to/digits/"
    cp "$root"/gpu-agent/python/*.py "$here"/gpu_models.py "$here"/gpu_http*.py "$here/gpu_carry.sh" "$to/"
    git -C "$root" rev-parse --short=12 HEAD >"$to/commit"
    tar -C "$work" -cJf "$file" gpu-carried
    rm -r "$work"
    ls -l "$file"
}

gpu_machine() {
    local gpu cpu
    gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)
    cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
    echo "$gpu, $cpu, $(nproc) CPUs"
}

compare() {
    local other=${1:?compare needs the folder of another one} run at
    shift
    for run in 1 2 3; do
        for at in "$other" "$here"; do
            echo "== $run: $at, $(cat "$at/commit")"
            LD_LIBRARY_PATH=$at "$at/bench-gpu" --runs 1 "$@" | awk 'NF > 2 { print $1, $2 }'
        done
    done
}

export LD_LIBRARY_PATH=$here
case ${1:-} in
bundle)
    unset LD_LIBRARY_PATH
    bundle "${2:-}"
    ;;
gpu)
    shift
    exec "$here/bench-gpu" --commit "$(cat "$here/commit")" --machine "$(gpu_machine)" "$@"
    ;;
models)
    shift
    exec python3 "$here/gpu_models.py" --commit "$(cat "$here/commit")" --machine "$(gpu_machine)" "$@"
    ;;
compare)
    shift
    compare "$@"
    ;;
-h | --help)
    usage
    ;;
*)
    usage >&2
    exit 2
    ;;
esac
