#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A fabric that is too slow for its load: its switch marks packets, the receiver notifies
# the sender, and the sender limits its rate. With congestion control off none of this happens. (How
# well the rate fits is for rdma_pace: here a scheduler's milliseconds are longer than its steps.)
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1

# serve CONTROL: sends more load than a fabric of 200 Mbit/s carries
serve() {
    topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}" \
        "workers: {timeout_ms: 5000}
fabric: {congestion_control: $1}"
    fault_wire w1 --mbit 200 --mark-kb 20
    start_lb
    start_agents 1 echo --congestion-control "$1"
    load "$1" echo --to "$vip:8500" --sockets 64 --window 4 --requests 100 --min-size 1400 \
        --max-size 1400 --timeout-ms 20000 || true
    expect_all "$1" 6400
    stop "$pid_wire_w1"
    marked=$(grep -o 'marked [0-9]*' "$dir/wire-w1.log" | awk '{ n += $2 } END { print n }')
}

serve dcqcn
expect "packets that the switch marked" "$marked" -gt 0
told=$(worker w1 cnps_received)
expect "notifications of the worker" "$told" -gt 0
expect "marked packets from the worker" "$(worker w1 ecn_marked)" -gt 0
expect "notifications to the worker" "$(worker w1 cnps_sent)" -gt 0
expect "notifications to the worker, at most one per mark" \
    "$(worker w1 cnps_sent)" -le "$(worker w1 ecn_marked)"
expect "notifications counted as drops" "$(drops roce_cnp)" -eq 0
stop "$pid_w1"
stop "$pid_lb"
: >"$dir/wire-w1.log"

serve off
expect "packets that the switch marked, congestion control off" "$marked" -eq 0
expect "notifications, congestion control off" "$(worker w1 cnps_received)" -eq 0
expect "rate, congestion control off" "$(worker w1 rate_mbit)" = null
echo "$told notifications from the worker heeded; none with congestion control off"
