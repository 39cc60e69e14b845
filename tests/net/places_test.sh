#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Workers of two hosts: a service that is spread gives both hosts as much, one that is near keeps to the
# load balancer's own; what a host has when all its workers are killed at once, the other answers. A worker
# labels itself, and an operator's label replaces its own.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 3
topology_config "
  - {name: spread, address: $vip, port: 8500, model: echo, spread: host, replay: 2}
  - {name: near, address: $vip, port: 8501, model: echo, near: host}
  - {name: plain, address: $vip, port: 8502, model: echo}"
start_lb
start_agent 1 echo --label host=far
start_agent 2 echo --label host=far
start_agent 3 echo --label slot=3
for i in 1 2 3; do
    wait_for "w$i to be active" worker_is w$i active
done

# label W KEY
label() {
    cli --json workers show "$1" | jq -r ".worker.labels.$2"
}

expect "the host that w1 was given" "$(label w1 host)" = far
expect "the host that w3 found" "$(label w3 host)" = "$(hostname)"
expect "a label of w3's operator" "$(label w3 slot)" = 3
expect "hosts in the table" "$(cli workers table | grep -c "^$(hostname) ")" -eq 1
cli workers show w3 | grep -q "host=$(hostname)" || fail "workers show says: $(cli workers show w3)"
ip netns exec "$tag-lb" curl -s http://127.0.0.1:9180/metrics >"$dir/metrics"
grep -q "^doorbell_worker_info{worker=\"w1\",.*,host=\"far\"} 1" "$dir/metrics" ||
    fail "metrics say: $(grep worker_info "$dir/metrics")"

# share RUN PORT: sends 300 requests, one after the other; prints how many w3 had of them
share() {
    local before
    before=$(worker w3 requests)
    load "$1" echo --to "$vip:$2" --sockets 1 --window 1 --requests 300
    expect_all "$1" 300
    got=$(($(worker w3 requests) - before))
}

# The policy alone gives each worker a third.
share plain 8502
expect "requests of w3 without a place" "$got" -ge 98
expect "requests of w3 without a place" "$got" -le 102
share spread 8500
expect "requests of w3's host where they are spread" "$got" -ge 149
expect "requests of w3's host where they are spread" "$got" -le 151
share near 8501
expect "requests of w3 where they are near" "$got" -eq 300

# A host fails: w1 and w2 are gone at one moment, and the other answers what they had.
load_start run echo --to "$vip:8500" --sockets 16 --duration-s 3600 --rate 1000
wait_for "requests on w1" requests_above w1 300
kill -KILL "$pid_w1" "$pid_w2"
stop "$pid_w1" KILL
stop "$pid_w2" KILL
before=$(worker w3 requests)
wait_for "requests on w3" requests_above w3 $((before + 1000))
load_end run
expect_none_lost run

# Another place without a restart: with only its own host left, near and spread are the same.
sed -i 's/spread: host/near: host/' "$dir/lb.yaml"
cli config apply "$dir/lb.yaml" >"$dir/applied" || fail "config apply: $(cat "$dir/applied")"
share again 8500
expect "requests of the only worker" "$got" -eq 300
sed -i 's/near: host, replay/near: rack, replay/' "$dir/lb.yaml"
! cli config apply "$dir/lb.yaml" >"$dir/refused" 2>&1 || fail "near a label that nobody has was taken"
grep -q "near what? The load balancer has no label 'rack'" "$dir/refused" || fail "it said: $(cat "$dir/refused")"
echo "$(figure run answered) requests answered while a host failed, none lost"
