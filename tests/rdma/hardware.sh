#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Finds out, by trying, what Doorbell's agent can do with the RDMA device and the GPU of this machine: it runs the
# loop's requirements (tests/gpu/loop_test.c) on the device, which loops packets back to itself. No load
# balancer, no second machine, nothing is left behind. For a ConnectX; another device has the proxy only.
#
#   tests/rdma/hardware.sh [--device mlx5_0] [--address 10.201.0.11] [--only TEST]
#
# Without --device the first one with an active port and an IPv4 address (a RoCE v2 GID) is taken. Prints a
# line per mode; with --only one test of each. Exit status 1 if a test failed. BUILD is the build directory
# (default: build beside the sources), or this script lies beside loop_rdma, with models/ and digits/.
#
#   cpu-proxy     CPU loop; the proxy posts by verbs
#   cpu-verbs     CPU loop that rings the device itself: WQEs, doorbell record, register, CQEs
#   cuda-proxy    GPU loop; the proxy posts
#   cuda-verbs    GPU loop that rings the device: its register is mapped for the GPU (PeerMappingOverride)
#   cuda-memory   the same, with requests and replies in the GPU's memory (dma-buf, or nvidia-peermem)
set -uo pipefail

usage() {
    while IFS= read -r line; do
        [[ $line == "#"* ]] || break
        line=${line#\#}
        [[ $line == "!"* || $line == *SPDX* ]] || echo "${line# }"
    done <"$0"
}

here=${0%/*}
[ "$here" != "$0" ] || here=.
device='' address='' only=''
while [ $# -gt 0 ]; do
    case $1 in
    --device) device=${2:?--device needs a name} && shift ;;
    --address) address=${2:?--address needs an address} && shift ;;
    --only) only=${2:?--only needs the name of a test} && shift ;;
    *)
        usage
        exit 2
        ;;
    esac
    shift
done

if [ -x "$here/loop_rdma" ]; then # carried here by itself
    program=$here/loop_rdma models=$here/models digits=$here/digits doorbell=$here/doorbell
    export LD_LIBRARY_PATH=$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
else
    root=$here/../..
    build=${BUILD:-${DOORBELL_BUILD:-$root/build}}
    program=$build/tests/gpu/loop_rdma models=$build/gpu-agent/models digits=$root/gpu-agent/models/digits
    doorbell=$build/control/doorbell
fi
[ -x "$program" ] || { echo "$program is not built: rdma-core was not found" && exit 2; }

# say WHAT TEXT: a line of the report
say() {
    printf '%-12s %s\n' "$1" "$2"
}

# value FILE: its first line, or -
value() {
    local text=-
    { [ -r "$1" ] && read -r text <"$1"; } 2>/dev/null || true
    echo "${text:--}"
}

# Only what bash has itself from here on, as a rescue system or a small guest has no more.
infiniband=/sys/class/infiniband

# Sets $found to the IPv4 address of a GID like 0000:0000:0000:0000:0000:ffff:0ac9:000b, or fails.
gid_address() {
    [[ $1 == 0000:0000:0000:0000:0000:ffff:????:???? && $1 != *:0000:0000 ]] || return 1
    local hex=${1:30:2}${1:32:2}${1:35:2}${1:37:2}
    found=$((16#${hex:0:2})).$((16#${hex:2:2})).$((16#${hex:4:2})).$((16#${hex:6:2}))
}

# choose: sets $device and $address to the first that can be used
choose() {
    local port index gid found
    # shellcheck disable=SC2231
    for port in "$infiniband"/${device:-*}/ports/*; do
        [[ $(value "$port/state") == *ACTIVE* ]] || continue
        for gid in "$port"/gids/*; do
            index=${gid##*/}
            [[ $(value "$port/gid_attrs/types/$index") == "RoCE v2" ]] || continue
            gid_address "$(value "$gid")" || continue
            [ -z "$address" ] || [ "$address" = "$found" ] || continue
            device=${port%/ports/*}
            device=${device##*/}
            address=$found interface=$(value "$port/gid_attrs/ndevs/$index")
            return 0
        done
    done
    return 1
}

interface=-
if ! choose && { [ -z "$device" ] || [ -z "$address" ]; }; then
    say device "none with an active port and an IPv4 address${device:+ is called $device}"
    exit 1
fi
say device "$device, firmware $(value "$infiniband/$device/fw_ver"), board $(value "$infiniband/$device/board_id")"
say address "$address on $interface"
say kernel "$(value /proc/sys/kernel/osrelease)"
gpu=none
[ ! -r /proc/driver/nvidia/version ] || gpu=$(value /proc/driver/nvidia/version)
say GPU "$gpu"
if [ -x "$doorbell" ]; then
    "$doorbell" doctor agent 2>&1 | while IFS= read -r line; do
        say doctor "$line"
    done
fi

export RIG_DEVICE=$device RIG_ADDRESS=$address OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-}
[ -n "$OPENBLAS_CORETYPE" ] || unset OPENBLAS_CORETYPE
failed=0
for mode in cpu-proxy cpu-verbs cuda-proxy cuda-verbs cuda-memory; do
    output=$("$program" "$mode" "$models" "$digits/digits.safetensors" ${only:+"$only"} 2>&1)
    status=$? said='' last=''
    while IFS= read -r line; do
        case $line in
        *post=*) said=${line#*post=} ;;
        FAILED*) say "$mode" "$line" ;;
        "    line "*) say "$mode" "$line" ;;
        esac
        [ -z "$line" ] || last=$line
    done <<<"$output"
    case $status in
    0) say "$mode" "$last${said:+ (post=$said)}" ;;
    77) say "$mode" "not there: ${last#skipped: }" ;;
    *)
        say "$mode" "$last (exit status $status)${said:+ (post=$said)}"
        failed=1
        ;;
    esac
done
exit $failed
