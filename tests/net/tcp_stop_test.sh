#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# TCP connections under load end well: a drained worker ends none; a service that a new configuration
# leaves out, and then the whole load balancer, answers what it has, closes, and refuses new ones. What
# operators see of a connection meanwhile.
#
# Runs beside another: no limit of it is a time.
. "$(dirname "$0")/story.sh"

gone="
  - {name: gone, protocol: tcp, address: $vip, port: 8501, model: echo, policy: round-robin, max_request: 1400, max_reply: 1400}"
stays="
  - {name: stays, protocol: tcp, address: $vip, port: 8500, model: echo, policy: round-robin, max_request: 1400, max_reply: 1400}"

topology_up "story$$" 2
topology_config "$stays$gone"
start lb lb "$build/doorbell-lb" --config "$dir/lb.yaml"
wait_for "the load balancer's control socket" cli version
start_agents 2 echo

# clients NAME PORT: 32 connections, 8 of them idle, until the load balancer closes them
clients() {
    ip netns exec "$tag-client" python3 "$here/stream/end_client.py" --address "$vip" --port "$2" \
        --progress "$dir/$1.progress" >"$dir/$1.json" 2>"$dir/$1.log" </dev/null &
    printf -v "pid_$1" %s $!
    wait_for "replies to $1" progresses "$1" 1
}
# progresses NAME LINES
progresses() {
    [ "$(wc -l <"$dir/$1.progress")" -ge "$2" ]
}
# goes_on NAME: its replies go on to come
goes_on() {
    wait_for "more replies to $1" progresses "$1" $(($(wc -l <"$dir/$1.progress") + 3))
}
# ended NAME: all connections of NAME were closed after a reply
ended() {
    local p=pid_$1
    wait "${!p}" || fail "client $1: $(tail -n 3 "$dir/$1.log")"
    expect "$1: closed" "$(figure "$1" closed)" -eq 32
    for what in wrong refused cut reset left; do
        expect "$1: $what" "$(figure "$1" $what)" -eq 0
    done
}

clients gone 8501
clients stays 8500
# One of the clients that ask, as an operator sees it.
client=$(cli --json flows list --service stays --sort requests --limit 1 | jq -r '.flows[0].client')
cli --json flows show "$client" >"$dir/flow.json"
cli flows show "$client" >"$dir/flow.txt"
expect "flows of $client" "$(jq '.flows | length' "$dir/flow.json")" -eq 1
jq -e '.flows[0].tcp | .state == "established" and .sack and .timestamps and .scaling and .cwnd > 14000 and
    .srtt_us > 0 and .mss > 1400 and .open_requests <= 8 and .closing == false' "$dir/flow.json" >"$dir/flow.log" ||
    fail "flows show $client: $(cat "$dir/flow.json")"
grep -q '^congestion window  *[0-9.]* [KM]iB$' "$dir/flow.txt" ||
    fail "flows show $client: $(cat "$dir/flow.txt")"
! cli flows show 10.9.9.9:9 2>"$dir/flow.err" || fail "flows show of no flow ends well"
grep -q "no flow of 10.9.9.9:9" "$dir/flow.err" || fail "flows show of no flow: $(cat "$dir/flow.err")"

# Counters: 64 connections, 16 of them idle.
cli --json stats >"$dir/stats.json"
jq -e '[.lcores[].tcp] | (map(.connections) | add) == 64 and (map(.busy) | add) <= 48 and
    (map(.segments_in) | add) > 1000 and all(.half_open == 0 and .no_memory == 0)' "$dir/stats.json" >/dev/null ||
    fail "stats: $(jq -c '.lcores[].tcp' "$dir/stats.json")"
cli stats | grep -q "TIME-WAIT" || fail "stats has no table of TCP"
ip netns exec "$tag-lb" python3 -c "
import urllib.request
print(urllib.request.urlopen('http://127.0.0.1:9180/metrics', timeout=10).read().decode())" >"$dir/metrics"
expect "connections by the metrics" \
    "$(awk '/^doorbell_tcp_connections{/ { sum += $2 } END { print sum }' "$dir/metrics")" -eq 64

cli workers drain w1 >/dev/null
goes_on gone
cli workers resume w1 >/dev/null
goes_on stays

topology_config "$stays"
cli config apply >/dev/null
ended gone
expect "a new connection to the service that has left" "$(figure gone again)" = refused
goes_on stays
expect_log lb "service=gone number=1 retired"

stop "$pid_lb"
expect "exit status of doorbell-lb" "$status" -eq 0
expect_log lb "stopped: all answered or notified"
ended stays
echo "$(figure gone answered) and $(figure stays answered) requests answered before 32 connections each were closed"
