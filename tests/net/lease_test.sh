#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# An agent's control connection is cut, while its requests go on: nothing of TCP comes through, in
# neither direction. The worker goes when its lease ends. When the network is mended the agent is
# back under its name, as the same worker, before either side has found the old connection dead.
. "$(dirname "$0")/story.sh"

command -v openssl >/dev/null || skip "needs the openssl program"
topology_up "story$$" 2
"$root/deploy/make-ca.sh" "$dir/ca" token >"$dir/make-ca.log"
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin}" \
    "workers: {lease_ms: 2000}"
sed -i "s|^control: {|&token_file: $dir/ca/token, |" "$dir/lb.yaml"
start_lb
start_agents 2 echo --token-file "$dir/ca/token"
number=$(worker w1 number)

# cut and mend the control connection of w1: what is for the kernel's addresses finds no way
cut_control() {
    ip -n "$tag-w1" route add blackhole 10.201.0.254/32
}
mend_control() {
    ip -n "$tag-w1" route del blackhole 10.201.0.254/32
}

load_start run echo --to "$vip:8500" --sockets 8 --duration-s 3600 --rate 2000 --window 32
wait_for "requests on w1" requests_above w1 500
cut_control
wait_for "w1 to be gone" eval '! worker_known w1'
expect_log lb "worker=w1 number=$number state=gone reason=\"its lease ended: the agent did not renew it for 2000 ms\""
expect_log w1 "not_serving="
# Longer than the agent's slowest tries are apart.
sleep 3
worker_known w1 && fail "w1 is back without a network"
mend_control
start_ms=$(date +%s%3N)
wait_for "w1 to be active again" worker_is w1 active
took_ms=$(($(date +%s%3N) - start_ms))
expect "ms until w1 was back" "$took_ms" -lt 2000
expect "its number" "$(worker w1 number)" = "$number"

# A cut that is shorter than a lease is not noticed.
before=$(worker w1 requests)
cut_control
sleep 0.3
mend_control
# 1000/s, for longer than a lease.
wait_for "requests of w1 since" requests_above w1 "$((before + 3000))"
expect "state after a short cut" "$(worker w1 state)" = active
load_end run
expect "wrong replies" "$(figure run wrong)" -eq 0
expect "requests without reply or notice" "$(figure run lost)" -eq 0
echo "w1 was gone with its lease, and back $took_ms ms after its network"
