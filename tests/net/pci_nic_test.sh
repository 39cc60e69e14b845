#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The load balancer on PCI network cards, by their own drivers: in a virtual machine with an emulated
# IOMMU, its cards bound to vfio-pci as doctor says. Clients and workers are outside.
#
# Runs beside another: it waits about as long as it computes.
. "$(dirname "$0")/story.sh"
# shellcheck source=tests/rdma/vm/vm.sh
. "$root/tests/rdma/vm/vm.sh"

topology_up "pci$$" 2
mapfile -t drivers < <(vm_pci_drivers)
vm_build front "$build/doorbell-lb" "$build/control/doorbell" "${drivers[@]}" \
    --module=vfio_iommu_type1 --module=vfio-pci
# shellcheck disable=SC2100 # no sum
virtio=virtio-net-pci,mq=on,rss=on,hash=on,vectors=8,iommu_platform=on,disable-legacy=on
vm_start front --memory 1024 --smp 3 --nic "fabric:mgmt=10.201.0.254/24" \
    --pci "lb:c-virtio=10,2,$virtio" --pci "fabric:f-virtio=11,2,$virtio" \
    --pci "lb:c-e1000e=12,1,e1000e" --pci "fabric:f-e1000e=13,1,e1000e" \
    --pci "lb:c-vmxnet3=14,1,vmxnet3" --pci "fabric:f-vmxnet3=15,1,vmxnet3"
vm_run front 'mkdir -p /dev/hugepages && echo 320 >/proc/sys/vm/nr_hugepages &&
    mount -t hugetlbfs none /dev/hugepages' || fail "no hugepages in the machine"
vm_socket front /root/control.sock "$dir/control.sock"

# Clients reach the cards through a bridge. It has no offloads, so the part that a card or its tap device left
# to do of a checksum is done there, and the client's kernel checks the result.
ip -n "$tag-lb" link add br1 type bridge mcast_snooping 0
ip -n "$tag-lb" link set br1 up
ip -n "$tag-lb" addr flush dev fabric
for card in clients c-virtio c-e1000e c-vmxnet3; do
    ip -n "$tag-lb" link set $card master br1
done
for card in mgmt f-virtio f-e1000e f-vmxnet3; do
    ip -n "$tag-fabric" link set $card master br0
done

# A card has its cable while the load balancer runs on it. Packets for an idle one would stay in its
# tap device, and QEMU 7.2 stops reading a queue of a tap device for good when the card's other queue,
# to which its RSS moves the packet, is full at that time: here at once, when the card is opened.
plug() {
    local card
    for card in "${cards[@]}"; do
        vm_link front "$card" "$1"
    done
}
cards=(c-virtio f-virtio c-e1000e f-e1000e c-vmxnet3 f-vmxnet3)
plug off

declare -A slot=([c-virtio]=10 [f-virtio]=11 [c-e1000e]=12 [f-e1000e]=13 [c-vmxnet3]=14
    [f-vmxnet3]=15)

# config CLIENTS FABRIC LCORES [EXTRA]
config() {
    cards=("$1" "$2")
    cat >"$dir/lb.yaml" <<END
ports:
  - {name: clients, device: "0000:00:${slot[$1]}.0", roles: [clients]${4:-}}
  - {name: fabric, device: "0000:00:${slot[$2]}.0", roles: [fabric], address: 10.201.0.1/24}
services:
  - {name: echo, address: $vip, port: 8500, model: echo}
  - {name: echo6, address: "$vip6", port: 8500, model: echo}
  - {name: stream, protocol: tcp, address: $vip, port: 8502, model: echo, max_request: 64KiB, max_reply: 64KiB}
  - {name: stream6, protocol: tcp, address: "$vip6", port: 8502, model: echo, max_request: 64KiB, max_reply: 64KiB}
lcores: [$3]
flows: 4096
tcp: {connections: 64, buffer_mb: 8}
workers: {timeout_ms: 2000, suspect_ms: 500}
control: {socket: /root/control.sock, agents: "10.201.0.254:4790", allow_plain: true}
END
    vm_put front "$dir/lb.yaml" /root/lb.yaml
}

doctor() {
    vm_run front "$build/control/doorbell doctor lb --config /root/lb.yaml" || true
}

# Binds the cards as dpdk-devbind.py does; there is no Python in the machine.
bind() {
    local at=/sys/bus/pci/devices/$1
    vm_run front "echo vfio-pci >$at/driver_override
        [ ! -e $at/driver ] || echo $1 >$at/driver/unbind
        echo $1 >/sys/bus/pci/drivers_probe" || fail "$1 cannot be bound"
}

# as_doctor_says: binds the cards that the doctor names; then it finds no more fault with the ports
as_doctor_says() {
    local said address addresses
    said=$(doctor)
    mapfile -t addresses < <(sed -n 's/.*dpdk-devbind.py -b vfio-pci \(0000:[^ ]*\).*/\1/p' <<<"$said")
    expect "cards that doctor wants bound" "${#addresses[@]}" -eq 2
    for address in "${addresses[@]}"; do
        bind "$address"
    done
    said=$(doctor)
    expect "doctor's words about drivers" \
        "$(grep -cE '^ok +(IOMMU|port driver) ' <<<"$said")" -eq 3
}

links_are_up() {
    cli --json stats | jq -e 'all(.ports[]; .link == "up")' >/dev/null
}

lb_start() {
    vm_background front lb "$build/doorbell-lb --config /root/lb.yaml"
    wait_for "the load balancer's control socket" cli version
    plug on
    wait_for "links" links_are_up
}

lb_stop() {
    stop "$pid_lb"
    expect "exit status of the load balancer" $status -eq 0
    plug off
}

bad_checksums() {
    ip netns exec "$tag-client" cat /proc/net/snmp /proc/net/snmp6 |
        awk '/^Udp: [0-9]/ { n += $8 } /^Tcp: [0-9]/ { n += $NF } /^Udp6InCsumErrors/ { n += $2 }
            END { print n + 0 }'
}

# serve NAME: expects that requests of all sizes, over IPv4 and IPv6, are answered byte for byte
serve() {
    load "$1-v4" echo --to "$vip:8500" --sockets 16 --requests 50 --window 2 --max-size 1472 \
        --timeout-ms 5000 || true
    expect_all "$1-v4" 800
    load "$1-v6" echo --to "[$vip6]:8500" --sockets 16 --requests 50 --window 2 --max-size 1452 \
        --timeout-ms 5000 || true
    expect_all "$1-v6" 800
    expect "$1: replies with a wrong checksum" "$(bad_checksums)" -eq 0
}

tso_out() {
    cli --json stats | jq '[.lcores[].tcp.tso_out] | add'
}

# stream NAME: expects that TCP requests of many segments are answered byte for byte. $cut is the number of
# packets that the card was given to cut. Two requests at a time: their packets fit a queue of QEMU's, see plug.
stream() {
    local before family to what
    before=$(tso_out)
    for family in v4 v6; do
        to=$vip
        [ $family = v4 ] || to="[$vip6]"
        ip netns exec "$tag-client" "$build/control/doorbell" bench --to "$to:8502" --tcp --verify echo \
            --mix 100,20000,60000 --flows 2 --window 1 --requests 24 --duration 60 --timeout-ms 20000 \
            --json --quiet >"$dir/$1-$family.json" 2>>"$dir/$1-$family.log" ||
            fail "$1, TCP over $family: $(cat "$dir/$1-$family.json" "$dir/$1-$family.log")"
        for what in lost refused wrong duplicates unreachable; do
            expect "$1, TCP over $family: $what" "$(figure "$1-$family" $what)" -eq 0
        done
        expect "$1, TCP over $family: answered" "$(figure "$1-$family" answered)" -eq 24
    done
    expect "$1: segments with a wrong checksum" "$(bad_checksums)" -eq 0
    cut=$(($(tso_out) - before))
}

both_active() {
    worker_is w1 active && worker_is w2 active
}

none_active() {
    ! worker_is w1 active && ! worker_is w2 active
}

handed_over() {
    cli --json stats | jq '[.lcores[].handed_over] | add'
}

# says_of PORT FIGURE VALUE: checks the log's figure of the port when it was opened last
says_of() {
    local said
    said=$(grep "port=$1 device=" "$dir/lb.log" | tail -n 1 | sed -n "s/.* $2=\([^ ]*\).*/\1/p")
    expect "$2 of $1" "$said" = "$3"
}

# begin CLIENTS FABRIC: starts the load balancer on these cards, with both workers
begin() {
    config "c-$1" "f-$2" "1, 2"
    as_doctor_says
    lb_start
    wait_for "workers on $2" both_active
}

echo_once() {
    client echo --to "$vip:8500" --sockets 1 --requests 1 --timeout-ms 300 >/dev/null 2>&1
}

# Two queues with RSS on both sides. The card spreads clients over both lcores, and workers send from
# UDP ports that it has come to the lcore whose queue pair it is: nothing is handed over.
config c-virtio f-virtio "1, 2"
as_doctor_says
lb_start
for i in 1 2; do
    start_agent $i echo --model-args max_request=65536
done
wait_for "workers on virtio" both_active
for port in clients fabric; do
    says_of $port queues 2
    says_of $port checks udp,tcp
done
says_of clients computes udp,tcp
says_of fabric computes none
says_of fabric tso 0
serve virtio
mapfile -t requests < <(cli --json stats | jq '.lcores[].requests')
expect "requests of lcore 0" "${requests[0]}" -gt 100
expect "requests of lcore 1" "${requests[1]}" -gt 100
expect "packets handed over" "$(handed_over)" -eq 0
stream stream-virtio
cut_virtio=$cut
expect "packets that virtio cut" "$cut" -gt 10

# A client on the same machine leaves checksums to a card that its packets never meet.
ip netns exec "$tag-client" ethtool -K c0 tx on >/dev/null
serve local
ip netns exec "$tag-client" ethtool -K c0 tx off >/dev/null
expect "udp_checksum" "$(drops udp_checksum)" -eq 0

# Cables are pulled and plugged in again.
vm_link front c-virtio off
! echo_once || fail "an answer came without a cable"
vm_link front c-virtio on
wait_for "an answer after the clients' cable is back" echo_once
vm_link front f-virtio off
wait_for "workers to be missed" none_active
vm_link front f-virtio on
wait_for "workers after the fabric's cable is back" both_active
serve replugged
lb_stop

# One queue that two lcores share; a card's own IPv4 checksum; chains within the card's limit.
begin e1000e vmxnet3
says_of clients queues 1
says_of clients computes ip,udp,tcp
says_of clients tso 0
serve e1000e
stream stream-e1000e
expect "packets that e1000e cut" "$cut" -eq 0
mapfile -t requests < <(cli --json stats | jq '.lcores[].requests')
expect "requests of lcore 1 beside one queue" "${requests[1]}" -gt 100
lb_stop
begin vmxnet3 e1000e
says_of clients computes udp,tcp
says_of clients segments 16
says_of clients tso 255
serve vmxnet3
stream stream-vmxnet3
cut_vmxnet3=$cut
expect "packets that vmxnet3 cut" "$cut" -gt 10
lb_stop

# The next process opens the same cards again. Without offloads, all checksums are computed here.
config c-virtio f-virtio "1, 2" ", offloads: false"
lb_start
wait_for "workers on virtio again" both_active
says_of clients checks none
says_of clients computes none
says_of clients tso 0
serve again
stream stream-again
expect "packets that virtio cut without offloads" "$cut" -eq 0
lb_stop
config c-virtio f-virtio "1, 2" ", tso: false"
lb_start
says_of clients computes udp,tcp
says_of clients tso 0
lb_stop
echo "virtio with RSS on two queues, e1000e and vmxnet3: requests of all sizes answered;" \
    "$cut_virtio and $cut_vmxnet3 packets cut into TCP segments by virtio and vmxnet3;" \
    "${requests[*]} requests by lcore on one queue; cables pulled, ports opened again"
