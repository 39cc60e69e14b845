#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# doorbell doctor against known states of the machine: it finds nothing before and after the start of a
# good configuration; then the test breaks one thing at a time, and the doctor names it and a fix that
# works.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"
default_workers='' default_fabric=''

# doctor PLACE ARGUMENTS...: runs it; JSON in $dir/doctor.json, exit status in $status
doctor() {
    local place=$1
    shift
    status=0
    ip netns exec "$tag-$place" timeout 60 "$build/control/doorbell" --json doctor "$@" \
        >"$dir/doctor.json" 2>"$dir/doctor.log" || status=$?
    jq -e .checks "$dir/doctor.json" >/dev/null || fail "doctor $*: no JSON: $(cat "$dir/doctor.log")"
}

lb() {
    doctor lb lb --config "$dir/lb.yaml"
}

agent() {
    doctor w1 agent --lb 10.201.0.254:4790 --device net_af_packet0,iface=w0 \
        --address 10.201.0.11/24 --lb-fabric-address 10.201.0.1 --no-hugepages
}

# found CHECK STATUS: prints the doctor's findings, one line each
found() {
    jq -r --arg n "$1" --arg s "$2" '.checks[] | select(.name == $n and .status == $s) | .found' \
        "$dir/doctor.json"
}

# Prints the fix of CHECK's problem.
fix() {
    jq -r --arg n "$1" '.checks[] | select(.name == $n and .status == "problem") | .fix' \
        "$dir/doctor.json"
}

problems() {
    jq -r '.checks[] | select(.status == "problem") | .name' "$dir/doctor.json"
}

healthy() {
    expect "$1: problems ($(jq -c ".checks[] | select(.status == \"problem\")" "$dir/doctor.json"))" "$(problems)" = ""
    expect "$1: exit status" "$status" -eq 0
    # The CPUs of test machines are neither isolated nor of the latest kind.
    expect "$1: warnings" "$(jq -r '.checks[] | select(.status == "warning") | .name' \
        "$dir/doctor.json" | grep -vE '^(lcores|CPU|clock|GPU)' || true)" = ""
    expect "$1: complaints without a fix" "$(jq '[.checks[] | select((.status == "problem" or
        .status == "warning") and (.fix // "") == "")] | length' "$dir/doctor.json")" -eq 0
}

# broken WHAT CHECK FIX: expects that only this check complains, and names this fix
broken() {
    expect "$1: problems" "$(problems)" = "$2"
    expect "$1: exit status" "$status" -eq 1
    [[ $(fix "$2") == *"$3"* ]] || fail "$1: the fix is '$(fix "$2")', not '$3'"
}

topology_up "story$$" 1
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
good=$(cat "$dir/lb.yaml")

lb
healthy "before the start"
expect "the control socket before the start" \
    "$(found "control socket" "not applicable" | grep -c "does not run")" -eq 1
agent
expect "problems without a load balancer" "$(problems)" = "load balancer
fabric MTU"
[[ $(fix "load balancer") == *"start doorbell-lb there"* ]] || fail "the fix: $(fix "load balancer")"

start_lb
start_agents 1 echo
lb
healthy "after the start"
expect "the control socket" "$(found "control socket" ok | grep -c "answers at")" -eq 1
expect "the agents' port" "$(found "port for agents" ok | grep -c "doorbell-lb listens")" -eq 1
agent
healthy "the agent's side"
expect "the fabric" "$(found "fabric MTU" ok)" = "RoCE packets of 1024 bytes reach 10.201.0.1 by w0"

# The doctor changes nothing: the load balancer that it examined still serves.
load run echo --to "$vip:8500" --sockets 4 --requests 50 || true
expect_all run 200

# An interface's MTU is too small; the doctor's fix mends it.
ip -n "$tag-lb" link set dev fabric mtu 1400
lb
broken "a small MTU" "port MTU" "ip link set dev fabric mtu 1500"
ip netns exec "$tag-lb" bash -c "$(fix "port MTU" | sed 's/,.*//')"
lb
healthy "after its fix"

# The wire between has the small MTU: interfaces at both ends look good, large packets are lost.
for i in lb w1; do
    ip -n "$tag-fabric" link set dev "$i" mtu 800
done
agent
broken "a narrow fabric" "fabric MTU" "raise the MTU of the switches between to 1084"
[[ $(found "fabric MTU" problem) == *"512 do" ]] || fail "what passes: $(found "fabric MTU" problem)"
for i in lb w1; do
    ip -n "$tag-fabric" link set dev "$i" mtu 1500
done

ip -n "$tag-lb" link set dev clients down
lb
broken "an interface that is down" "port link" "ip link set dev clients up"
ip -n "$tag-lb" link set dev clients up
ip -n "$tag-lb" addr add 10.201.0.1/32 dev fabric
lb
broken "an address that the kernel has, too" addresses "ip addr del 10.201.0.1/32 dev fabric"
ip -n "$tag-lb" addr del 10.201.0.1/32 dev fabric

# Mistakes in the configuration itself.
echo "${good/iface=fabric/iface=fabrik}" >"$dir/lb.yaml"
lb
broken "an interface that is not there" "port device" "iface= one of clients, fabric"
echo "${good/roles: \[fabric\]/roles: [fabric]
    mtu: 4200}" >"$dir/lb.yaml"
ip -n "$tag-lb" link set dev fabric mtu 4200
lb
broken "an MTU that af_packet does not take" "port buffers" "ports[1].mtu: 1500;"
ip -n "$tag-lb" link set dev fabric mtu 1500
echo "${good/port: 8500/port: 85000}" >"$dir/lb.yaml"
lb
broken "a mistake in the file" configuration "--check"
grep -qF 'lb.yaml:' <<<"$(found configuration problem)" || fail "the line is not named"

# Text: one line per check, and a summary.
echo "$good" >"$dir/lb.yaml"
ip netns exec "$tag-lb" "$build/control/doorbell" doctor lb --config "$dir/lb.yaml" >"$dir/text"
expect "lines that are none" "$(grep -cvE '^(ok|warning|problem|n/a) |^$|^[0-9]+ ok, ' "$dir/text")" -eq 0
echo "ok before and after the start; 8 faults named, with fixes that mend"
