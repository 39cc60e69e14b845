#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# One of a load balancer's two data-plane cores stands still for a while. Operators are answered meanwhile and are
# told which core it is, the other core's clients are served, and what is changed is in force there. When the core
# goes on it takes over what was changed.
. "$(dirname "$0")/story.sh"
. "$here/hold_core.sh"

[ -n "$(cpu 2)" ] || skip "needs two CPUs"
topology_up "story$$" 3
lcores="$(cpu 1), $(cpu 2)"
echo="  - {name: echo, address: $vip, port: 8500, model: echo, queue: "
more="  - {name: more, address: $vip, port: 8501, model: echo}"
# A worker's queue pair to the core gives up after 4.3 s x 8 only: it outlives the stand.
patient=$'fabric: {ack_timeout: 20}\nstop_timeout_ms: 1000'
# Ports with one queue each go to the cores in turn: the second core receives from one that nobody uses.
veth "$tag-client" unused "$tag-lb" spare
configure() {
    topology_config "$1" "$patient"
    sed -i "s|^  - name: fabric|  - {name: spare, device: \"net_af_packet2,iface=spare\", roles: [clients]}\n&|" "$dir/lb.yaml"
}
configure "${echo}256}"
start_lb
start_agents 2 echo
start capture lb "$build/control/doorbell" --socket "$dir/control.sock" capture --port clients --file "$dir/one.pcapng"
wait_for "the capture to begin" grep -q capture_started "$dir/lb.log"

hold_second_core

# soon COMMAND...: it ends within 5 s, its output is in $said and its status in $code
soon() {
    code=0
    said=$(timeout 5 "$@" 2>&1) || code=$?
    [ "$code" -ne 124 ] || fail "no answer within 5 s to: ${*##*/}"
}
tell_lb() {
    soon "$build/control/doorbell" --socket "$dir/control.sock" "$@"
}
stands() {
    cli --json stats | jq -e '.lcores[1].stands_ms > 0 and .lcores[0].stands_ms == 0'
}
tell_lb workers drain w2
expect "status of the drain ($said)" "$code" -eq 0
wait_for "the core that stands still to be seen" stands
expect_log lb "event=lcore_stands lcore=1"
tell_lb workers set w1 weight=3
expect "status of a weight ($said)" "$code" -eq 0
configure "${echo}128}"$'\n'"$more"
tell_lb config apply
expect "status of a reload ($said)" "$code" -eq 0
tell_lb stats
tell_lb flows list
tell_lb workers resume w2
expect "status of the resume ($said)" "$code" -eq 0
stop "$pid_capture" INT
expect "status of the capture" "$status" -eq 0
start_agent 3 echo
wait_for "the third agent to be told why it has to wait" grep -q "lcore 1 " "$dir/w3.log"
# The first core serves: enough sockets that some are its own.
load_start run echo --to "$vip:8501" --sockets 64 --duration-s 3600 --window 1
replies_above() {
    [ "$(cli --json stats | jq ".lcores[$1].replies")" -gt "$2" ]
}
before=$(cli --json stats | jq '.lcores[0].replies')
wait_for "replies by the first core, of the new service" replies_above 0 $((before + 500))

stop "$pid_held"
wait_for "the third worker to be active" worker_is w3 active
wait_for "replies by the second core, of the new service" replies_above 1 500
wait_for "the log to have it" grep -q "event=lcore_goes_on lcore=1" "$dir/lb.log"
for i in 1 2; do
    wait_for "w$i to be active" worker_is "w$i" active
done
expect "registrations of w1" "$(grep -c 'worker=w1 .*state=joining' "$dir/lb.log")" -eq 1
load_end run || true
expect "wrong replies" "$(figure run wrong)" -eq 0
tell_lb capture --port clients --count 1 --seconds 1 --file "$dir/two.pcapng"
expect "status of a second capture ($said)" "$code" -eq 0

# The load balancer waits for a core that stands still at its end, too, and not for ever.
hold_second_core
wait_for "the core that stands still to be seen" stands
kill "$pid_lb"
expect_log lb "stopped: an lcore stands still"
# The process is gone when whoever halted its thread lets go of that.
stop "$pid_held"
stop "$pid_lb"
expect "status of a load balancer that ended without one of its cores" "$status" -eq 1
