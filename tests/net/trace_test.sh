#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The trace of one flow shows every step of its requests, and the reason where one ends; other flows
# do not appear.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

# ask TO COUNT: sends one request after the other from port 4000
ask() {
    ip netns exec "$tag-client" python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.200.0.2", 4000))
s.settimeout(0.5)
host, port = sys.argv[1].split(":")
for i in range(int(sys.argv[2])):
    s.sendto(b"request%d" % i, (host, int(port)))
    try:
        s.recv(2048)
    except TimeoutError:
        pass' "$1" "$2"
}

# trace NAME OPTIONS...: runs in the background, to $dir/NAME.log
trace() {
    local name=$1
    shift
    start "$name" lb "$build/control/doorbell" --socket "$dir/control.sock" --json trace "$@"
}

# steps NAME: prints the steps of a trace, in order
steps() {
    jq -r .step "$dir/$1.log" | tr '\n' ' '
}

has_steps() {
    [ "$(jq -r .step "$dir/$1.log" | grep -c "$2")" -ge "$3" ]
}

topology_up "story$$" 1
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
start_lb
trace refused --flow 10.200.0.2:4000 --follow
wait_for "the trace to run" eval '[ -d "/proc/$pid_refused" ]'
# The trace may not run yet at the first request.
until has_steps refused dropped 1; do ask "$vip:8500" 1; done
ask "$vip:9999" 1
wait_for "a second drop" grep -q unknown_service "$dir/refused.log"
stop "$pid_refused"
jq -es 'any(.[]; .step == "dropped" and .what == "no_worker")' "$dir/refused.log" >/dev/null ||
    fail "why it was dropped: $(cat "$dir/refused.log")"

start_agents 1 echo
trace whole --flow "10.200.0.2:4000,$vip:8500" --count 3
# Other flows at the same time must not appear.
load_start others echo --to "$vip:8500" --sockets 8 --rate 500 --duration-s 2
while [ -d "/proc/$pid_whole" ] && is_running "$pid_whole"; do ask "$vip:8500" 1; done
load_wait others || true
expect_none_lost others
echo "$(steps whole)"
for step in arrived flow request chosen sent acked reply times answered; do
    has_steps whole "^$step\$" 2 || fail "no step $step: $(steps whole)"
done
grep -q 'worker w1 by least-outstanding of 1' "$dir/whole.log" || fail "the choice is not explained"
jq -es 'map(.at_ns) | . == sort' "$dir/whole.log" >/dev/null || fail "the steps are out of order"
expect "requests of others in it" "$(jq -s '[.[] | select(.request and
    (.request | endswith("74736575716572") | not))] | length' "$dir/whole.log")" -eq 0
echo "every step of $(grep -c answered "$dir/whole.log") requests"
