#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Strangers use up a budget of TCP services each: connections, half-open ones, the rate of a large request, room for
# replies that nobody reads. Each is counted under its own name, a client at another address is answered all the
# while, and when the strangers have left nothing of them is held and a new client is served.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
for i in 1 2 3 4; do
    ip -n "$tag-client" addr add "10.200.1.$i/32" dev c0
done
topology_config "
  - {name: echo, protocol: tcp, address: $vip, port: 8500, model: echo, max_request: 256KiB, max_reply: 256KiB}" "
tcp: {connections: 64, backlog: 16, buffer_mb: 16, time_wait_ms: 100, syn_retries: 0}"
start_lb
start_agents 1 echo --model-args max_request=262144
mac=$(ip -n "$tag-lb" -j link show clients | jq -r '.[].address')
stream=$build/tests/net/stream/tcp-stream

coproc innocent { exec ip netns exec "$tag-client" /usr/bin/python3 "$here/tcp_budgets.py" "$vip" 8500 2>"$dir/innocent.log"; }
to=${innocent[1]} from=${innocent[0]}

# asked WHAT COMMAND: the innocent client asks on its lasting connection, or on a new one
asked() {
    echo "$2" >&"$to"
    read -r answer <&"$from" || fail "the client has ended: $(cat "$dir/innocent.log")"
    expect "$1" "$answer" = right
}

# counter FIELD: of lcores[].tcp
counter() {
    cli --json stats | jq "[.lcores[].tcp.$1 // 0] | add"
}
dropped_more() {
    [ "$(drops "$1")" -gt "$2" ]
}
# levels: what connections hold now
levels() {
    cli --json stats | jq -c '[.lcores[].tcp | [.connections, .half_open, .busy, .held_packets, .requests, .large_requests, .pieces, .clients, .timers]]'
}
# recovered: only the innocent client's connection is there, and all is as it was
recovered() {
    [ "$(levels)" = "$quiet" ]
}

# exhausted REASON OPTIONS...: tcp-stream uses up a budget until REASON is counted, and leaves
exhausted() {
    local reason=$1 before
    shift
    before=$(drops "$reason")
    start stranger client "$stream" "$@"
    wait_for "drops: $reason" dropped_more "$reason" "$before"
    asked "the innocent client's answers, $reason" lasting
    left "$reason"
}
# left WHAT: the stranger leaves
left() {
    stop "$pid_stranger"
    wait_for "the end of what was held, $1" recovered
    is_running "$pid_lb" || fail "the load balancer has ended, $1"
    asked "a new client's answer, $1" new
    wait_for "the end of the new client, $1" recovered
}

asked "the innocent client's answers" lasting
idle() {
    [ "$(counter busy) $(counter held_packets) $(counter clients)" = "0 0 0" ]
}
wait_for "nothing to be held" idle
quiet=$(levels)
exhausted tcp_full hold --what drip --address "$vip" --connections 100 --size 1000 --from 10.200.1.1 --senders 4 --interval-ms 500
exhausted tcp_slow hold --what drip --address "$vip" --connections 20 --size 262144 --from 10.200.1.1 --senders 4 --interval-ms 100
exhausted tcp_reader hold --what read --address "$vip" --connections 60 --size 262144 --from 10.200.1.1 --senders 1 --interval-ms 1000

# A full backlog has no counter of its own: half-open connections stay at it, and whoever answers a cookie is served.
backlog_full() {
    [ "$(counter half_open)" -eq 16 ]
}
start stranger client "$stream" flood --device c0 --mac "$mac" --address "$vip" --from 100.64.0.0 --rate 2000
wait_for "a full backlog" backlog_full
asked "the innocent client's answers, backlog" lasting
asked "a new client's answer beside the flood" new
expect "half-open connections in the flood" "$(counter half_open)" -le 16
left backlog
eval "exec $to>&-"
echo "tcp_full $(drops tcp_full), tcp_slow $(drops tcp_slow), tcp_reader $(drops tcp_reader)"
