#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# One of a load balancer's two data-plane cores stands still for so long that the workers' queue pairs to it give up.
# The workers keep their registrations and serve the other core's clients; when the core goes on, they register again,
# and it serves, too.
. "$(dirname "$0")/story.sh"
. "$here/hold_core.sh"

[ -n "$(cpu 2)" ] || skip "needs two CPUs"
topology_up "story$$" 2
lcores="$(cpu 1), $(cpu 2)"
# Ports with one queue each go to the cores in turn: the second core receives from one that nobody uses. A queue pair
# gives up after 0.13 s x 8.
veth "$tag-client" unused "$tag-lb" spare
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}" "fabric: {ack_timeout: 15}"
sed -i "s|^  - name: fabric|  - {name: spare, device: \"net_af_packet2,iface=spare\", roles: [clients]}\n&|" "$dir/lb.yaml"
start_lb
start_agents 2 echo
load_start run echo --to "$vip:8500" --sockets 64 --duration-s 3600 --window 1
replies_above() {
    [ "$(cli --json stats | jq ".lcores[$1].replies")" -gt "$2" ]
}
wait_for "replies by both cores" replies_above 0 500
wait_for "replies by both cores" replies_above 1 500
hold_second_core
for i in 1 2; do
    expect_log "w$i" "links=1 of=2 have failed"
done
# The sockets of the second core wait for 10 s each time; the others' go on.
before=$(cli --json stats | jq '.lcores[0].replies')
wait_for "replies by the first core" replies_above 0 $((before + 2000))
registrations() {
    grep -c "worker=w$1 .*state=joining" "$dir/lb.log"
}
for i in 1 2; do
    expect "registrations of w$i" "$(registrations $i)" -eq 1
    expect "state of w$i" "$(worker w$i state)" = active
done
stop "$pid_held"
second=$(cli --json stats | jq '.lcores[1].replies')
again() {
    [ "$(registrations 1)" -eq 2 ] && [ "$(registrations 2)" -eq 2 ] && worker_is w1 active && worker_is w2 active
}
wait_for "both workers to be registered again" again
wait_for "replies by the second core, which goes on" replies_above 1 $((second + 500))
load_end run || true
expect "wrong replies" "$(figure run wrong)" -eq 0
