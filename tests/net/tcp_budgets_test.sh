#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Every budget of TCP clients is used up on purpose, one after the other: what is refused is counted by its name, a
# client of another address is answered meanwhile, and after the attacker has left, all is as before.
#
# Runs beside another: it waits for the ends of its attacks most of the time.
. "$(dirname "$0")/story.sh"

patience_s=15
topology_up "story$$" 1
for address in 3 11 12 13; do
    ip -n "$tag-client" addr add "10.200.0.$address/24" dev c0
done
flows=192 topology_config "
  - {name: echo, protocol: tcp, address: $vip, port: 8500, model: echo, max_request: 64KiB, max_reply: 64KiB, queue_timeout_ms: 300}
  - {name: datagrams, address: $vip, port: 8501, model: echo, queue_timeout_ms: 300, request_timeout_ms: 500, flow_timeout_ms: 1000, one_way_timeout_ms: 1000}" "
tcp: {connections: 48, backlog: 8, syn_retries: 0, buffer_mb: 1, client_percent: 50, window: 64KiB, unfinished: 2, pipeline: 8}
new_flows_per_source: 100
reclaim_after_ms: 60000"
start_lb
start_agents 1 echo --model-args max_request=65536,batch_us=1000,sleep=1 --max-batch 1

tell_client tcp_budgets.py "$vip"

# attack COMMAND...: with all that it needs
attack() {
    tell "$@"
    [[ $answer =~ ^(begun|sent|answered) ]] || fail "$*: $answer"
}

# counter FIELD: of lcores[].tcp
counter() {
    cli --json stats | jq "[.lcores[].tcp.$1 // 0] | add"
}
more_drops() {
    [ "$(drops "$1")" -gt "$2" ]
}

# All that is in use.
in_use() {
    cli --json stats | jq -c '.lcores[0] | [.memory, .flows.live, (.tcp |
        {connections, half_open, busy, time_wait, held_packets, requests, large_requests, pieces, clients, timers})]'
}
as_before() {
    [ "$(in_use)" = "$before" ]
}

# used_up REASON...: they were counted, and the other client is answered
used_up() {
    local reason
    for reason in "$@"; do
        wait_for "drops for $reason" more_drops "$reason" "${was[$reason]}"
    done
    tell innocent
    expect "another client while it is refused for $*" "$answer" = right
}
# attacked WHAT: all is as before, and new clients are served
attacked() {
    tell leave
    wait_for "the end of $1" as_before || fail "$1: in use: $(in_use), before: $before"
    tell fresh
    expect "a new client after $1" "$answer" = right
    wait_for "its end" as_before || fail "after $1: in use: $(in_use), before: $before"
    count
}
declare -A was
count() {
    for reason in tcp_full tcp_client_full tcp_client tcp_memory tcp_slow tcp_reader queue_timeout flow_table_full source_limit; do
        was[$reason]=$(drops $reason)
    done
}

tell innocent
tell fresh
expect "a client before all" "$answer" = right
wait_for "its end" eval '[ "$(counter connections)" -eq 1 ] && [ "$(counter clients)" -eq 0 ]'
before=$(in_use)
count

attack connections 60
used_up tcp_client_full
# Half-open ones that would be beyond the share are given up.
wait_for "the end of half-open connections" eval '[ "$(counter half_open)" -eq 0 ]'
expect "connections of a client, and one of another" "$(counter connections)" -eq 25
tell fresh
expect "a new client beside one that has its share of connections" "$answer" = right
expect "SYNs for which there was no room" "$(drops tcp_full)" -eq "${was[tcp_full]}"
attacked "a client's share of connections"

attack connections 60 2
used_up tcp_full
expect "connections" "$(counter connections)" -eq 48
attacked "connections"

mac=$(ip -n "$tag-lb" -j link show clients | jq -r '.[].address')
start flood client "$build/tests/net/stream/tcp-stream" flood --device c0 --mac "$mac" --address "$vip" --from 100.64.0.0 --rate 200
wait_for "a full backlog" eval '[ "$(counter half_open)" -eq 8 ]'
wait_for "cookies" eval '[ "$(counter cookies_out)" -gt 0 ]'
tell fresh
expect "a new client beside a flood of SYNs" "$answer" = right
used_up
expect "connections by cookie" "$(counter cookies_in)" -gt 0
stop "$pid_flood"
attacked "SYNs"

attack halves 24
used_up tcp_client
attacked "a client's share of memory"

attack halves 30 3
used_up tcp_memory
attacked "the memory"

attack halves 4
used_up queue_timeout
tell fresh
expect "a large request of another client" "$answer" = right
tell statuses 4
expect "statuses of unfinished requests" "$answer" = "1:2 2:2"
used_up tcp_slow
attacked "unfinished requests"

# Strangers who go on: all drip, and come back when they are refused; and all read a byte of a large reply per second.
stream=$build/tests/net/stream/tcp-stream
for what in drip:tcp_slow:100 read:tcp_reader:1000; do
    IFS=: read -r how reason interval <<<"$what"
    start stranger client "$stream" hold --what "$how" --address "$vip" --connections 20 --size 65536 --from 10.200.0.11 \
        --senders 2 --interval-ms "$interval"
    used_up "$reason"
    # Places that strangers hold are no work of the worker: small requests do not wait for them.
    watch_delays
    begin=$(date +%s%N)
    for ((i = 0; i < 10; i++)); do
        tell innocent
    done
    expect_ms "200 requests beside strangers that $how" $((($(date +%s%N) - begin) / 1000000)) 3000
    tell fresh
    expect "a new client beside strangers that $how" "$answer" = right
    stop "$pid_stranger"
    attacked "strangers that $how"
done

echo pipeline 500 >&"$told_to"
most=0
until read -r -t 0 <&"$told_from"; do
    now=$(counter requests)
    most=$((now > most ? now : most))
done
read -r answer <&"$told_from"
expect "many requests at once" "$answer" = right
expect "requests of which no answer had begun" "$most" -ge 8
expect "requests, with one of the other client" "$most" -le 9
expect "times that no more was read" "$(counter pipeline_full)" -gt 0
cli stats | grep -q "pipeline_full" || fail "stats has no table of what slows clients down"
attacked "the pipeline"

attack flows 120
used_up source_limit flow_table_full
attacked "flows"
echo "11 budgets used up, all given back; $most requests of one connection and of another client at once"
