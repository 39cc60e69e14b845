#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The tests of this folder that need a GPU and no RDMA device, here or on a machine that has neither packages
# nor a build:
#
#   tests/gpu/run.sh                    from the build directory BUILD (default: build)
#   tests/gpu/run.sh bundle DIRECTORY   puts them there, with their libraries and this script; there: DIRECTORY/run.sh
#
# A line per program; what failed is printed in full. Exit status 1 if one failed, 77 where there is no GPU.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
build=${BUILD:-$root/build}
programs=(tests/gpu/{loop,steps,buckets,waited,ringing,memory,places,post,peer}_test)
models=(echo mlp words)
# The loop: beside a send queue in memory; on a ConnectX's stand-in, rung by the GPU, by the proxy, and with requests and
# replies in the GPU's memory.
loops=(cuda cuda-verbs cuda-proxy cuda-memory)
limit_s=100 # of a program: a hung kernel must not hold the machine

# carry FILE DIRECTORY: FILE, and the libraries that it needs beyond libc
carry() {
    cp -L "$1" "$2/"
    ldd "$1" | awk '$2 == "=>" && $1 !~ /^(libc|libm|libdl|libpthread|librt)\.so/ { print $3 }' | xargs -r -I{} cp -L {} "$2/"
}

bundle() {
    local to=${1:?bundle needs a directory} name plugins=("${models[@]/#/gpu-agent/models/}")
    set -e
    ninja -C "$build" "${programs[@]}" "${plugins[@]/%/.so}" >&2
    mkdir -p "$to/models"
    for name in "${programs[@]}"; do
        carry "$build/$name" "$to"
    done
    for name in "${models[@]}"; do
        carry "$build/gpu-agent/models/$name.so" "$to/models"
    done
    cp "$root/gpu-agent/models/digits/digits.safetensors" "$here/run.sh" "$to/"
    git -C "$root" describe --always --dirty >"$to/commit"
    du -sh "$to"
}

# try NAME COMMAND...
try() {
    local name=$1 output status last
    shift
    output=$(timeout -k 5 "$limit_s" "$@" 2>&1)
    status=$?
    last=$(tail -n 1 <<<"$output")
    case $status in
    0)
        ran=$((ran + 1))
        grep '^       ' <<<"$output" && true
        ;;
    77) ;;
    *)
        failed=1
        echo "$output"
        ;;
    esac
    echo "$name: $last (exit status $status)"
}

if [ "${1:-}" = bundle ]; then
    bundle "${2:-}"
    exit 0
fi
if [ -x "$here/loop_test" ]; then # carried
    at=$here model_folder=$here/models weights=$here/digits.safetensors
    export LD_LIBRARY_PATH=$here:$here/models
else
    at=$build/tests/gpu model_folder=$build/gpu-agent/models
    weights=$root/gpu-agent/models/digits/digits.safetensors
fi
failed=0 ran=0
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
cat "$here/commit" 2>/dev/null
try memory "$at/memory_test"
try places "$at/places_test"
try post "$at/post_test"
try peer "$at/peer_test" "$model_folder"
for loop in "${loops[@]}"; do
    try "$loop" "$at/loop_test" "$loop" "$model_folder" "$weights"
done
for loop in cuda cuda-verbs cuda-proxy; do
    try "ringing, $loop" "$at/ringing_test" "$loop" "$model_folder"
done
try pieces "$at/steps_test" cuda "$model_folder"
try sizes "$at/buckets_test" cuda "$model_folder"
try deadlines "$at/waited_test" cuda "$model_folder"
[ $failed -eq 0 ] || exit 1
[ $ran -gt 0 ] || exit 77
