#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Spoofed RoCE packets on the fabric: each is counted under its own name, no client gets a reply with
# their bytes, and the link between worker and load balancer goes on. Only a sender that knows all keys
# and the exact PSN can end a link, as on any RC queue pair; its worker is back in a moment.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

command -v tcpdump >/dev/null || skip "needs tcpdump"
topology_up "story$$" 1
# Heartbeats are rare, so that the last PSN captured is the last one sent.
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}" \
    "workers: {timeout_ms: 60000}"
start_lb
start_agents 1 echo --heartbeat-ms 30000

# spoof KIND: sends spoofed packets, made from those of some real requests
spoof() {
    start tcpdump fabric tcpdump -i lb -U -n --immediate-mode -w "$dir/$1.pcap" udp port 4791
    wait_for "tcpdump" grep -q "listening on lb" "$dir/tcpdump.log"
    load "before_$1" echo --to "$vip:8500" --sockets 4 --requests 50 --min-size 12 \
        --max-size 1472 || true
    expect_all "before_$1" 200
    wait_for "all to be acknowledged" eval '[ "$(worker w1 outstanding)" -eq 0 ]'
    stop "$pid_tcpdump"
    : >"$dir/tcpdump.log"
    was=$(cli --json stats --all | jq '.lcores[0].drops')
    client_was=$(ip netns exec "$tag-client" cat /sys/class/net/c0/statistics/rx_packets)
    sent=$(ip netns exec "$tag-fabric" /usr/bin/python3 "$here/bad_fabric.py" lb "$dir/$1.pcap" "$1")
    wait_for "the $1 packets to be counted" eval '[ "$(difference)" = "{}" ]' ||
        fail "$1: $(difference)"
    expect "packets to the client meanwhile" \
        "$(ip netns exec "$tag-client" cat /sys/class/net/c0/statistics/rx_packets)" -eq "$client_was"
}

# Only drops that RoCE packets can cause: kernels send other packets by themselves.
difference() {
    jq -n --argjson was "$was" --argjson now "$(cli --json stats --all | jq '.lcores[0].drops')" \
        --argjson sent "$sent" -c '$now | to_entries | map(
            (.value - ($was[.key] // 0)) as $counted | ($sent.expected[.key] // 0) as $sent
            | select((.key | test("^(roce|reply)_|^not_our_address$")) and $counted != $sent)
            | {(.key): {$counted, $sent}}) | add // {}'
}

spoof harmless
expect "state of w1" "$(worker w1 state)" = active
load after echo --to "$vip:8500" --sockets 8 --requests 200 || true
expect_all after 1600

spoof fatal
expect_log lb "the worker wrote where or what it may not"
wait_for "w1 to be active again" worker_is w1 active
load again echo --to "$vip:8500" --sockets 8 --requests 200 || true
expect_all again 1600

spoof replies
expect "state of the load balancer" "$(cli version >/dev/null && echo up)" = up
# The worker and its queue pair are out of step now; a new queue pair is not.
stop "$pid_w1"
start_agents 1 echo
load last echo --to "$vip:8500" --sockets 8 --requests 200 || true
expect_all last 1600
echo "spoofed packets counted by name, no client answered with them"
