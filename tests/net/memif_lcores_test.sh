#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two data-plane cores, and a worker behind a memif. With one queue of it the second core's requests and replies
# are handed over; with a queue per core at both ends (queues:, --queues) each core has its own, and what a core
# has sent by its queue comes back by it.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

[ -n "$(cpu 2)" ] || skip "needs two CPUs"
topology_up "story$$" 1
lcores="$(cpu 1), $(cpu 2)"
topology_config "
  - {name: echo, protocol: tcp, address: $vip, port: 8500, model: echo, max_request: 1400, max_reply: 1400}"
memif="socket=$dir/memif.sock,socket-abstract=no,rsize=10"
sed -i "s|device: \".*iface=fabric.*\"|device: \"net_memif_fabric,role=server,$memif\"|" "$dir/lb.yaml"

# ask QUEUES: starts both ends, asks, and ends them
ask() {
    start_lb
    start w1 w1 "$build/gpu-agent/doorbell-agent" --lb 10.201.0.254:4790 --name w1 --queues "$1" \
        --device "net_memif_agent,role=client,$memif" --address 10.201.0.11/24 --model echo --no-hugepages
    wait_for "w1 to be active" worker_is w1 active
    ip netns exec "$tag-client" python3 "$here/stream/stream_client.py" --address "$vip" --port 8500 \
        --connections 32 --requests 200 --pipeline 8 --max-size 1400 >"$dir/ask.json" 2>"$dir/ask.log" || true
    [ -s "$dir/ask.json" ] || fail "the client wrote no figures: $(tail -n 3 "$dir/ask.log")"
    expect "answered" "$(jq .answered "$dir/ask.json")" -eq 6400
    expect "not answered" "$(jq '.lost + .refused + .wrong' "$dir/ask.json")" -eq 0
    read -r first second <<<"$(cli --json stats | jq -r '[.lcores[].requests // 0] | @sh')"
    expect "requests of lcore 0" "$first" -gt 1000
    expect "requests of lcore 1" "$second" -gt 1000
    expect "packets that no lcore took" "$(drops handover_full)" -eq 0
    report+="$1 queues: $first and $second by lcore; "
    stop "$pid_w1"
    stop "$pid_lb"
}

report=
ask 1
expect_log lb "port=fabric has queues=1 for lcores=2, so lcores hand packets to each other; more queues are faster (memif: queues:,"
: >"$dir/lb.log"
sed -i "s|roles: \[fabric\]|roles: [fabric]\n    queues: 2|" "$dir/lb.yaml"
ask 2
expect_log lb "port=fabric device=net_memif_fabric"
! grep -q "port=fabric has queues=1" "$dir/lb.log" || fail "the load balancer has one queue"
echo "6400 requests answered over memif, twice; ${report%; }"
