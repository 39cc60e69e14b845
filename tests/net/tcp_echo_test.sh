#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Requests of every size by TCP, pipelined on many connections of the kernel, are answered to the byte;
# all connections and their packets are given back.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
topology_config "
  - {name: echo, protocol: tcp, address: $vip, port: 8500, model: echo, policy: round-robin, max_request: 1400, max_reply: 1400}
  - {name: tagged, protocol: tcp, framing: tagged, address: $vip, port: 8501, model: echo, max_request: 1400, max_reply: 1400}
  - {name: echo6, protocol: tcp, address: \"$vip6\", port: 8500, model: echo, policy: round-robin, max_request: 1400, max_reply: 1400}"
start lb lb "$build/doorbell-lb" --config "$dir/lb.yaml"
wait_for "the load balancer's control socket" cli version
start_agents 2 echo

# ask NAME OPTIONS...: as load, by TCP
ask() {
    client_python "$here/stream/stream_client.py" "${@:2}" >"$dir/$1.json" 2>>"$dir/$1.log" || true
}
client_python() {
    ip netns exec "$tag-client" python3 "$@"
}
# expect_asked NAME COUNT
expect_asked() {
    local what
    [ -s "$dir/$1.json" ] || fail "the client wrote no figures: $(tail -n 3 "$dir/$1.log")"
    for what in lost refused wrong; do
        expect "$1: $what" "$(figure "$1" $what)" -eq 0
    done
    expect "$1: answered" "$(figure "$1" answered)" -eq "$2"
}

ask one --address "$vip" --port 8500
expect_asked one 10
ask v4 --address "$vip" --port 8500 --connections 64 --requests 200 --pipeline 8 --max-size 1400
expect_asked v4 12800
ask v6 --address "$vip6" --port 8500 --connections 64 --requests 200 --pipeline 8 --max-size 1400
expect_asked v6 12800

# --- doorbell bench sends by TCP, too, and compares every byte
bench() {
    ip netns exec "$tag-client" "$build/control/doorbell" bench --tcp --verify echo --json --quiet "${@:2}" \
        >"$dir/$1.json" 2>>"$dir/$1.log" || fail "bench $1: $(cat "$dir/$1.json" "$dir/$1.log")"
}
bench closed --to "$vip:8500" --mix 8,100,1400 --flows 64 --window 8 --requests 20000 --duration 60 --timeout-ms 10000
bench open --to "$vip:8501" --framing tagged --mix 64:9,1400:1 --flows 8 --rate 2000 --duration 2 --timeout-ms 10000
# Deadlines: all in time, and one that nothing can meet.
bench kept --to "$vip:8501" --framing tagged --mix 64 --deadline-ms 20000 --flows 8 --rate 500 --duration 1 --timeout-ms 30000
expect "in time" "$(figure kept in_time)" -eq "$(figure kept counted)"
expect "in time, of the target" "$(figure kept 'targets[0].in_time')" -eq "$(figure kept counted)"
bench missed --to "$vip:8501" --framing tagged --mix 64 --deadline-ms 0.001 --flows 8 --rate 500 --duration 1 --timeout-ms 10000
expect "in time with a deadline of 1 us" "$(figure missed in_time)" -eq 0
expect "told that their deadline was not met" "$(figure missed 'notices_by_code | .deadline + .expired')" -gt 0
for what in closed open; do
    for how in lost refused wrong duplicates unreachable; do
        expect "$what: $how" "$(figure $what $how)" -eq 0
    done
    expect "$what: answered" "$(figure $what answered)" -eq "$(figure $what requests)"
done
expect "requests of the closed loop" "$(figure closed requests)" -eq 20000

echo "25,600 requests answered, $(figure v4 rps | cut -d. -f1)/s over IPv4," \
    "$(figure v6 rps | cut -d. -f1)/s over IPv6; doorbell bench $(figure closed 'answered_rps | floor')/s"
