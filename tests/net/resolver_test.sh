#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Agents know their load balancer by name. Of two addresses the first is dead: the second is tried.
# Then the name server no longer answers: one of two workers of a process loses its connection, and
# connects again to its last address; the other, in the same process, keeps its lease. A load
# balancer that starts again gets both back. An agent that never got an address logs the reason.
#
# Runs beside another: no limit of it is a time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}" "workers: {lease_ms: 3000, timeout_ms: 5000, suspect_ms: 0}"

# Files that programs in the workers' namespaces see in /etc. 10.201.0.77 and .253 are unused.
netns_etc=()
etc_of() {
    mkdir -p "/etc/netns/$tag-$1"
    netns_etc+=("/etc/netns/$tag-$1")
    echo "nameserver 10.201.0.77" >"/etc/netns/$tag-$1/resolv.conf"
    echo "hosts: files dns" >"/etc/netns/$tag-$1/nsswitch.conf"
    echo "multi on" >"/etc/netns/$tag-$1/host.conf"
    cat >"/etc/netns/$tag-$1/hosts"
}
end() {
    rm -rf "${netns_etc[@]}"
    rmdir /etc/netns 2>/dev/null || true
    story_end
}
trap end EXIT

etc_of w1 <<<"10.201.0.253 lb.example
10.201.0.254 lb.example"
etc_of w2 <<<"127.0.0.1 localhost"

expect "the first address of the name" "$(ip netns exec "$tag-w1" getent ahostsv4 lb.example | head -n 1 | cut -d" " -f1)" \
    = 10.201.0.253
start_lb
start_agent 1 echo --workers 2 --one-process --lb lb.example:4790
start_agent 2 echo --lb lb.example:4790
wait_for "w1-cpu0 to be active" worker_is w1-cpu0 active
wait_for "w1-cpu1 to be active" worker_is w1-cpu1 active
expect_log w2 "cannot look up the load balancer 'lb.example'"

# Changed in place, so that the agent's view of /etc has it, too.
echo "127.0.0.1 localhost" >"/etc/netns/$tag-w1/hosts"
expect "address of the name" "$(timeout 1 ip netns exec "$tag-w1" getent hosts lb.example)" = ""
port=$(ip netns exec "$tag-w1" ss -Htn state established dst 10.201.0.254 | head -n 1 |
    awk '{ sub(/.*:/, "", $3); print $3 }')
ip netns exec "$tag-w1" ss -K -Htn dst 10.201.0.254 sport = ":$port" >/dev/null
wait_for "control to be back" grep -q "control is back" "$dir/w1.log"
# Longer than a lease, and shorter than the resolver takes to give up.
sleep 4
expect "registrations" "$(grep -c "model=echo registered" "$dir/w1.log")" -eq 2
expect "leases that ended" "$(grep -c "its lease ended" "$dir/lb.log" || true)" -eq 0
worker_is w1-cpu0 active || fail "w1-cpu0 is $(worker w1-cpu0 state)"
worker_is w1-cpu1 active || fail "w1-cpu1 is $(worker w1-cpu1 state)"

stop "$pid_lb"
start_lb
watch_delays
start_ms=$(date +%s%3N)
wait_for "w1-cpu0 to be back" worker_is w1-cpu0 active
wait_for "w1-cpu1 to be back" worker_is w1-cpu1 active
took_ms=$(($(date +%s%3N) - start_ms))
expect_ms "until both were back" "$took_ms" 3000
worker_known w2 && fail "w2 has found the load balancer without a name server"
echo "the second address is used, and a dead name server cost no lease; back after $took_ms ms"
