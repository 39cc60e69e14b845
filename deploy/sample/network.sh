#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The network of the sample: six network namespaces on this machine, without a NIC of its own.
#
#   deploy/sample/network.sh up      make them
#   deploy/sample/network.sh down    end what runs in them, and remove them
#
#   doorbell-client                  doorbell-lb                     doorbell-w1, -w2, -w3
#     c0 10.200.0.2/24 ──veth── clients (VIP 10.200.0.100:8500)
#                               fabric (RoCEv2 10.201.0.1)  ──bridge── w0 (RoCEv2 10.201.0.11, .12, .13)
#                                 kernel 10.201.0.254                  kernel 10.201.0.101, .102, .103
#
# The bridge is in doorbell-fabric: tcpdump there sees what crosses the fabric. The addresses in
# brackets are Doorbell's own; the kernel's addresses on the fabric carry registration (TCP).
# Needs root, iproute2, ethtool and procps.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/net/topology.sh
. "$here/../../tests/net/topology.sh"
namespaces=(client lb fabric w1 w2 w3)

usage() {
    sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit "$1"
}

complain() {
    echo "deploy/sample/network.sh: $*" >&2
    exit 1
}

exists() {
    ip netns list | grep -q "^doorbell-$1\b"
}

up() {
    local name
    for name in "${namespaces[@]}"; do
        ! exists "$name" || complain "doorbell-$name exists already; end it with: $0 down"
    done
    trap 'status=$?; [ $status -eq 0 ] || down' EXIT
    topology_up doorbell 3
    remove_folder "$dir"
    echo "made the namespaces ${namespaces[*]/#/doorbell-}"
}

down() {
    local name pid
    for name in "${namespaces[@]}"; do
        exists "$name" || continue
        for pid in $(ip netns pids "doorbell-$name"); do
            kill "$pid" 2>/dev/null || true
            topology_pids+=("$pid")
        done
    done
    # Not our children: nothing waits for them but their end.
    topology_reap
    for name in "${namespaces[@]}"; do
        ip netns del "doorbell-$name" 2>/dev/null || true
    done
}

[ $# -eq 1 ] || usage 2
case $1 in
-h | --help) usage 0 ;;
up | down) ;;
*) usage 2 ;;
esac
[ "$(id -u)" -eq 0 ] || complain "needs root: it makes network namespaces (sudo $0 $1)"
"$1"
