#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two load balancers use one device, which has an agent for each; these take turns. One load
# balancer is halted under load, in the middle of its requests; then its cable is pulled. The other
# one's clients notice neither: no request is lost or refused, and none waits for the silent one's
# queue pairs to fail, which takes 4 s. Afterwards the silent one is served again.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
vip2=10.200.1.100
namespace_add "$tag-lb2"
ip netns exec "$tag-lb2" sysctl -qw net.ipv6.conf.{all,default}.disable_ipv6=1
veth "$tag-client" c1 "$tag-lb2" clients
ip -n "$tag-client" addr add 10.200.1.2/24 dev c1
veth "$tag-lb2" fabric "$tag-fabric" lb2
ip -n "$tag-fabric" link set lb2 master br0
ip -n "$tag-lb2" addr add 10.201.0.253/24 dev fabric

topology_config "  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin, queue: 8192}"
start_lb
sed "s|$vip|$vip2|; s|10.201.0.1/24|10.201.0.2/24|; s|10.201.0.254|10.201.0.253|
    s|$dir/|&second-|g" "$dir/lb.yaml" >"$dir/lb2.yaml"
RUNTIME_DIRECTORY=$dir/second start lb2 lb2 "$build/doorbell-lb" --config "$dir/lb2.yaml"

second() {
    "$build/control/doorbell" --socket "$dir/second-control.sock" "$@"
}
second_is_active() {
    [ "$(second --json workers show w2 | jq -r .worker.state)" = active ]
}
second_requests_above() {
    [ "$(second --json workers show w2 | jq .worker.requests)" -gt "$1" ]
}
agent() {
    start_agent "$@" --gpu none --turns "$dir/turns" --model-args max_request=1472,batch_us=1000,sleep=1 --max-batch 4
}
wait_for "the other load balancer" second version
agent 1 echo
agent 2 echo --lb 10.201.0.253:4790
wait_for "w1 to be active" worker_is w1 active
wait_for "w2 to be active" second_is_active

# beside_a_silent_one NAME SILENCE MEND: both are under load; then the second one falls silent
beside_a_silent_one() {
    local name=$1 before
    watch_delays
    load_start "first_$name" echo --to "$vip:8500" --sockets 8 --duration-s 3600 --window 16
    load_start "second_$name" echo --to "$vip2:8500" --sockets 8 --duration-s 3600 --window 16
    before=$(worker w1 requests)
    wait_for "requests on w1" requests_above w1 $((before + 500))
    wait_for "requests on w2" second_requests_above 500
    $2
    # Longer than the silent one's queue pairs need to fail.
    before=$(worker w1 requests)
    wait_for "requests on w1 since" requests_above w1 $((before + 6000))
    load_end "first_$name"
    expect_none_lost "first_$name"
    expect_ms "longest silence beside $name" "$(figure "first_$name" longest_gap_ms | cut -d. -f1)" 500
    $3
    stop "$(declare -n p=pid_second_$name && echo "$p")"
    wait_for "w2 to be active again" second_is_active
    load "again_$name" echo --to "$vip2:8500" --sockets 8 --requests 100 || true
    expect_all "again_$name" 800
    echo "beside $name: p99 $(figure "first_$name" p99_us) us, longest silence $(figure "first_$name" longest_gap_ms) ms"
}
halt() { kill -STOP "$pid_lb2"; }
go_on() { kill -CONT "$pid_lb2"; }
pull() { ip -n "$tag-fabric" link set lb2 down; }
plug() { ip -n "$tag-fabric" link set lb2 up; }

# The figures without a failure, to compare with.
beside_a_silent_one nothing true true
beside_a_silent_one a_halt halt go_on
beside_a_silent_one a_cut pull plug
