#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# After any loss of a link its worker serves again within a second of the trouble's end: the agent's
# process killed and started anew (other queue pair numbers, other keys), the cable out for longer
# than any retry, forged packets in the worker's name that end the queue pair.
. "$(dirname "$0")/story.sh"
default_workers='' default_fabric=''

command -v tcpdump >/dev/null || skip "needs tcpdump"
topology_up "story$$" 1
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
fault_wire w1 --seed 1
start_lb
start_agents 1 echo

now_ms() {
    echo $(($(date +%s%N) / 1000000))
}

served() {
    load one echo --to "$vip:8500" --sockets 1 --requests 1 --timeout-ms 200 || true
    [ "$(figure one answered)" -eq 1 ]
}

# recovers WHAT SINCE: waits until requests are answered; leaves the milliseconds in $took
recovers() {
    wait_for "answers after $1" served
    took=$(($(now_ms) - $2))
    expect_ms "$1: answers again" "$took" "${RECOVERY_MS:-1000}"
    load again echo --to "$vip:8500" --sockets 8 --requests 100 || true
    expect_all again 800
}

served
stop "$pid_w1" KILL
wait_for "w1 to be given up" eval '! worker_known w1'
watch_delays
since=$(now_ms)
start_agent 1 echo
recovers "a restart" "$since"
restart=$took

# The cable is out for so long that both ends give up, and the agent has begun to try again.
worst=0
for out in 1.0 1.3 1.7 2.1 2.6; do
    kill -USR1 "$pid_wire_w1"
    sleep "$out"
    wait_for "w1 to be given up" eval '! worker_known w1'
    watch_delays
    since=$(now_ms)
    kill -USR2 "$pid_wire_w1"
    recovers "the cable was out for $out s" "$since"
    worst=$((took > worst ? took : worst))
done

start tcpdump fabric tcpdump -i lb -U -n --immediate-mode -w "$dir/fabric.pcap" udp port 4791
wait_for "tcpdump" grep -q "listening on lb" "$dir/tcpdump.log"
load before echo --to "$vip:8500" --sockets 4 --requests 50 || true
expect_all before 200
stop "$pid_tcpdump"
watch_delays
since=$(now_ms)
# The PSN moves on with each heartbeat: some of these packets hit it.
for _ in 1 2 3; do
    ip netns exec "$tag-fabric" /usr/bin/python3 "$here/bad_fabric.py" lb "$dir/fabric.pcap" \
        fatal >/dev/null
done
recovers "a forged write" "$since"
echo "answers again $restart ms after a restart, $worst ms after a cut (the worst of 5)," \
    "$took ms after a forged write"
