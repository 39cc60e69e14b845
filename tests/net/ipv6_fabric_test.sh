#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The fabric speaks IPv6: queue pairs between IPv6 addresses, neighbour discovery on both sides,
# requests and replies of several packets.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
sed -i 's|address: 10.201.0.1/24|address: "fd00:201::1/64"|' "$dir/lb.yaml"
start_lb
start w1 w1 "$build/gpu-agent/doorbell-agent" --lb 10.201.0.254:4790 --name w1 \
    --device net_af_packet0,iface=w0 --address fd00:201::11/64 --model echo --no-hugepages
wait_for "w1 to be active" worker_is w1 active

load run echo --to "$vip:8500" --sockets 16 --requests 500 --max-size 1472 || true
expect "answered" "$(figure run answered)" -eq 8000
expect "wrong replies" "$(figure run wrong)" -eq 0
expect "bad ICRCs" "$(drops roce_icrc)" -eq 0
echo "8000 requests over an IPv6 fabric"
