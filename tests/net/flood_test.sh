#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A flood from spoofed sources, 10,000 packets a second, each a new flow, fills a small flow table many times over.
# Clients that were there before lose nothing, and new ones still get in.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

# The table holds more flows than the flood opens while a busy machine halts a client: 12,000 in 1.2 s.
flows=12000
topology_up "story$$" 1
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, queue_timeout_ms: 500,
     request_timeout_ms: 3000, one_way_timeout_ms: 60000}" "reclaim_after_ms: 200"
start_lb
start_agents 1 echo --slots 1024
mac=$(ip -n "$tag-lb" -br link show clients | awk '{ print $3 }')
flow_counter() {
    cli --json stats | jq "[.lcores[].flows.$1] | add"
}

# Every client has sent two requests before the flood begins.
load_start steady echo --to "$vip:8500" --sockets 64 --duration-s 3600 --rate 6400 --max-size 512
wait_for "requests of the steady clients" requests_above w1 640
start flood client "$here/flood.py" c0 "$mac" "$vip" 8500 10000
flooded() {
    [ "$(flow_counter reclaimed)" -gt $((2 * flows)) ]
}
wait_for "the flood to fill the table" flooded
load late echo --to "$vip:8500" --sockets 16 --requests 20 --max-size 512 || true
load_end steady
stop "$pid_flood"

expect_none_lost steady
expect "live flows" "$(flow_counter live)" -le $flows
# A newcomer is refused when no flow in the table has been silent for long enough.
expect "late clients: answered" "$(figure late answered)" -ge 300
expect "late clients: wrong" "$(figure late wrong)" -eq 0
echo "$(tail -n 1 "$dir/flood.log") spoofed flows, $(flow_counter reclaimed) reclaimed, $(
    )$(drops flow_table_full) refused; 64 established clients lost nothing, $(
    )$(figure late answered) of 320 requests of late ones answered"
