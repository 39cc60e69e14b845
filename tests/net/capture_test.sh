#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# An operator captures packets of a running load balancer: both directions of clients' and fabric port,
# limited by a filter, a length and a number, in a file that Wireshark reads; one capture at a time; and
# no request is lost meanwhile or afterwards.
#
# Runs beside another: no limit of it is a time.
. "$(dirname "$0")/story.sh"

command -v tshark >/dev/null || skip "needs tshark"
topology_up "story$$" 1
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
start_lb
start_agents 1 echo

# capture NAME OPTIONS...: captures in the background, to $dir/NAME.pcapng; waits until it has begun
capture() {
    local name=$1
    shift
    start "$name" lb "$build/control/doorbell" --socket "$dir/control.sock" --json capture \
        --file "$dir/$name.pcapng" "$@"
    # The file begins when every lcore takes packets.
    wait_for "the capture $name" test -s "$dir/$name.pcapng"
}

# ended NAME [FIELD VALUE]...: expects that it ended well, with these final counts
ended() {
    local name=$1 p=pid_$1
    shift
    wait_for "the end of $name" eval "! is_running ${!p}"
    stop "${!p}"
    expect "exit status of the capture $name" "$status" -eq 0
    while [ $# -gt 0 ]; do
        expect "$name: $1" "$(count_of "$name" "$1")" = "$2"
        shift 2
    done
    expect "$name: bytes" "$(count_of "$name" bytes)" -eq "$(stat -c %s "$dir/$name.pcapng")"
    expect "$name: dropped" "$(count_of "$name" dropped)" -eq 0
}

count_of() {
    jq -r ".$2" "$dir/$1.log"
}

# packets NAME [FILTER]: prints how many packets of a capture Wireshark's filter accepts
packets() {
    tshark -r "$dir/$1.pcapng" -Y "${2:-frame}" 2>"$dir/tshark.log" | wc -l
    ! grep -qi 'cut short\|damaged\|error' "$dir/tshark.log" || fail "$1: $(cat "$dir/tshark.log")"
}

# refused TEXT OPTIONS...: expects no capture, and TEXT as the reason
refused() {
    local text=$1
    shift
    if cli capture --file "$dir/refused.pcapng" "$@" >"$dir/refused.log" 2>&1; then
        fail "this was not refused: $*"
    fi
    grep -qF -- "$text" "$dir/refused.log" || fail "$* said: $(cat "$dir/refused.log")"
    [ ! -e "$dir/refused.pcapng" ] || fail "$* left a file"
}

requests() {
    load "$1" echo --to "$vip:8500" --sockets 8 --requests 50 --max-size 1400 || true
    expect_all "$1" 400
}

refused "no port 'nope'; ports are: clients, fabric" --port nope
refused "--filter: can't parse filter expression: syntax error" --port clients --filter "udp port"
refused "it jumps back" --port clients --filter "ip6 protochain 17"
refused "--snaplen: cannot use 13" --port clients --snaplen 13

# Both directions of the clients' port, while no other capture can start.
capture clients --port clients --filter "udp port 8500"
refused "port clients is being captured to $dir/clients.pcapng by process $pid_clients, for" --port fabric
expect_log lb "event=capture_started port=clients pid=$pid_clients uid=$(id -u) file="
requests both
kill -INT "$pid_clients"
ended clients state stopped captured 800
expect "requests in it" "$(packets clients 'udp.dstport == 8500')" -eq 400
expect "replies in it" "$(packets clients 'udp.srcport == 8500')" -eq 400
expect "received ones" "$(packets clients 'frame.packet_flags_direction == 1')" -eq 400
expect "sent ones" "$(packets clients 'frame.packet_flags_direction == 2')" -eq 400
expect "packets out of order" "$(packets clients 'frame.time_delta < 0')" -eq 0
expect "the interface" "$(tshark -r "$dir/clients.pcapng" -c 1 -T fields -e frame.interface_name \
    2>/dev/null)" = clients
first=$(tshark -r "$dir/clients.pcapng" -c 1 -T fields -e frame.time_epoch 2>/dev/null)
expect "age of the first packet, s" "$(($(date +%s) - ${first%.*}))" -le 60

# The fabric port's packets, without a filter: RoCEv2 both ways, and nothing malformed.
capture fabric --port fabric
requests fabric_requests
kill -INT "$pid_fabric"
ended fabric state stopped filtered 0
for way in 1 2; do
    expect "RoCE packets of direction $way" "$(packets fabric \
        "infiniband.bth.opcode && frame.packet_flags_direction == $way")" -gt 400
done
expect "malformed packets" "$(packets fabric \
    '_ws.malformed && frame.protocols matches "infiniband(:data)?$"')" -eq 0

# Exactly this number of packets, cut, of one direction, and the rest counted.
capture short --port clients --filter "udp dst port 8500" --snaplen 60 --count 100 --direction in
requests short_requests
ended short state count captured 100
expect "cut packets" "$(packets short 'frame.cap_len <= 60 && frame.len >= frame.cap_len')" -eq 100
expect "replies that were not asked for" "$(packets short 'udp.srcport == 8500')" -eq 0

# A capture ends by itself, when its client ends, and when its file is full.
capture timed --port clients --filter "udp port 1" --seconds 1 --direction out
requests timed_requests
ended timed state time captured 0
expect "packets of others" "$(count_of timed filtered)" -gt 0
capture killed --port clients
kill -KILL "$pid_killed"
wait_for "the next capture" eval 'cli capture --port clients --seconds 1 --file - >"$dir/next.pcapng"'
if cli capture --port clients --file - >/dev/full 2>"$dir/full.log"; then
    fail "nobody noticed that the file was full"
fi
grep -q "cannot write -: No space left on device" "$dir/full.log" || fail "$(cat "$dir/full.log")"

none_runs() {
    [ "$(grep -c event=capture_started "$dir/lb.log")" = "$(grep -c event=capture_ended "$dir/lb.log")" ]
}
wait_for "the end of that" none_runs

# A slow reader loses packets of its file, which are counted; nothing else is lost.
mkfifo "$dir/pipe"
exec 9<>"$dir/pipe"
start slow lb bash -c "exec '$build/control/doorbell' --socket '$dir/control.sock' capture \
    --port clients --filter 'udp port 8500' --file - >'$dir/pipe'"
expect_log slow "capturing port clients"
load slow_requests echo --to "$vip:8500" --sockets 8 --requests 2000 --max-size 1400 || true
expect_all slow_requests 16000
cat "$dir/pipe" >"$dir/slow.pcapng" 9<&- &
reader=$!
exec 9<&-
kill -INT "$pid_slow"
wait "$reader"
stop "$pid_slow"
read -r captured dropped < <(sed -n 's/^\([0-9]*\) packets captured.* \([0-9]*\) dropped.*/\1 \2/p' \
    "$dir/slow.log")
expect "packets of the slow capture and dropped ones" "$((captured + dropped))" -eq 32000
expect "dropped ones" "$dropped" -gt 0
expect "packets in its file" "$(packets slow)" -eq "$captured"

# After a capture the load balancer holds none of its packets.
wait_for "the end of it all" eval 'cli capture --port clients --count 1 --seconds 1 --file - >/dev/null'
requests afterwards
expect "requests that got no answer" "$(cli --json services show echo |
    jq '.service.requests - .service.replies')" -eq 0

# When the load balancer ends, the file is whole.
capture last --port clients --filter "udp port 8500"
requests last_requests
stop "$pid_lb"
expect "exit status of the load balancer" "$status" -eq 0
stop "$pid_last"
expect "exit status of a capture without a load balancer" "$status" -eq 1
grep -q "lost doorbell-lb" "$dir/last.log" || fail "it said: $(cat "$dir/last.log")"
expect "packets in its file" "$(packets last)" -eq 800
echo "$(packets clients) packets of clients, $(packets fabric) of the fabric"
