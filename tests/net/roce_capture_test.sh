#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The packets on the fabric are valid RoCEv2 to other programs: Wireshark finds no malformed packet, and
# an ICRC computed by a second implementation matches each.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

for program in tcpdump tshark; do
    command -v $program >/dev/null || skip "needs $program"
done
topology_up "story$$" 1
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
start_lb
# The capture must have the link's first packets, so it starts before the agent.
start tcpdump fabric tcpdump -i lb -U -n --immediate-mode -w "$dir/fabric.pcap" udp port 4791
expect_log tcpdump "listening on lb"
start_agents 1 echo
load run echo --to "$vip:8500" --sockets 8 --requests 50 --max-size 1472 || true
expect_all run 400
stop "$pid_tcpdump"

/usr/bin/python3 "$here/roce_check.py" "$dir/fabric.pcap" WRITE_ONLY WRITE_FIRST WRITE_LAST \
    WRITE_ONLY_IMM WRITE_LAST_IMM ACK || fail "see above"

dissect() {
    tshark -r "$dir/fabric.pcap" "$@" 2>"$dir/tshark.log" || fail "tshark cannot read the capture"
}
total=$(dissect | wc -l)
expect "packets in Wireshark's eyes" "$total" -gt 1000
expect "packets that Wireshark takes for InfiniBand's" \
    "$(dissect -Y infiniband.bth.opcode | wc -l)" -eq "$total"
# Wireshark may take the noise in a payload for another protocol; then that dissector's name comes last.
expect "packets with malformed headers" "$(dissect -Y \
    '_ws.malformed && frame.protocols matches "infiniband(:data)?$"' | wc -l)" -eq 0
echo "Wireshark decoded all $total packets"
