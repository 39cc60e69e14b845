#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# affinity: sticky. Flows stay with their workers while those have room. Requests that a hot worker
# has no room for go to others as long as it is hot, and no request waits beside a free slot. A worker
# that drains gives its flows away for good.
#
# Runs beside another: no limit of it is a time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 3
# A worker that a busy machine halts for a moment must not become suspect.
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin, affinity: sticky,
     sticky_load_percent: 0}" "workers: {suspect_ms: 0, timeout_ms: 3000}"
start_lb

# service FIELD
service() {
    cli --json services show echo | jq -r ".service.$1"
}

requests() {
    local w
    for w in w1 w2 w3; do
        worker $w requests 2>/dev/null || echo 0
    done
}

# shares COUNT: counts each worker's part of COUNT requests or a few more in $share, and their sum in $sum
shares() {
    local -a before after
    mapfile -t before < <(requests)
    wait_for "$1 requests" requests_since "$1"
    share=($((after[0] - before[0])) $((after[1] - before[1])) $((after[2] - before[2])))
    sum=$((share[0] + share[1] + share[2]))
}

# requests_since COUNT: succeeds when there are COUNT more than before; the counts now are in after
requests_since() {
    mapfile -t after < <(requests)
    [ $((after[0] + after[1] + after[2] - before[0] - before[1] - before[2])) -ge "$1" ]
}

# all_took WHAT: expects that each worker got about a third of $sum; they are equally fast
all_took() {
    local i
    for i in 0 1 2; do
        expect "$1: w$((i + 1)), % of a third of what all three did" $((share[i] * 300 / sum)) -ge 70
    done
}

# slow I SLOTS: starts worker I, one request at a time, 10 ms each
slow() {
    start_agent "$1" echo --model-args batch_us=10000,sleep=1 --max-batch 1 --slots "$2" \
        --max-run-ms 1000
    wait_for "w$1 to be active" worker_is "w$1" active
}

# ports FIRST LAST: the ports of the sockets to come. Loads have ports of their own: a flow of an earlier
# load, whose worker has gone since, would move to another one.
ports() {
    ip netns exec "$tag-client" sysctl -qw net.ipv4.ip_local_port_range="$1 $2"
}

# --- room for all: 100 flows stay where they are ------------------------------------------------
start_agents 3 echo
ports 20000 29999
load calm echo --to "$vip:8500" --sockets 100 --window 1 --requests 20 --rate 2000 || true
expect_all calm 2000
expect "requests that went to the preferred worker, all but the first of each flow" "$(service preferred)" -eq 1900
expect "spilled" "$(service spilled)" -eq 0
expect "moved" "$(service moved)" -eq 0
for w in w1 w2 w3; do
    flows=$(cli --json flows count --worker $w | jq .count)
    expect "flows of $w" "$flows" -ge 33
    expect "requests of $w, 20 by each of its $flows flows" "$(worker $w requests)" -eq $((flows * 20))
done

# --- long rings: requests wait for a worker that all flows prefer beside idle workers, unless
# --- loads are bounded
for w in 1 2 3; do
    p=pid_w$w
    stop "${!p}"
    wait_for "w$w to be gone" eval "! worker_known w$w"
done
slow 1 256
ports 30000 39999
load_start hot echo --to "$vip:8500" --sockets 12 --window 4 --min-size 12 --duration-s 3600 --timeout-ms 10000
wait_for "requests on w1" requests_above w1 20
slow 2 256
slow 3 256
shares 100
alone=$sum
expect "w2 of what flows that prefer w1 sent, without a bound" "${share[1]}" -eq 0
expect "w3 of the same" "${share[2]}" -eq 0
sed -i 's/sticky_load_percent: 0/sticky_load_percent: 125/' "$dir/lb.yaml"
cli config apply >/dev/null
wait_for "requests on w3" requests_above w3 5
shares 400
all_took "with a bound"
bounded="${share[*]}"
expect "spilled" "$(service spilled)" -gt 0
expect "moved" "$(service moved)" -eq 0
load_end hot
expect_none_lost hot

# --- short rings: no request waits beside a free slot --------------------------------------------
for w in 1 2 3; do
    p=pid_w$w
    stop "${!p}"
    wait_for "w$w to be gone" eval "! worker_known w$w"
done
sed -i 's/sticky_load_percent: 125/sticky_load_percent: 0/' "$dir/lb.yaml"
cli config apply >/dev/null
slow 1 4
ports 40000 49999
load_start full echo --to "$vip:8500" --sockets 12 --window 4 --min-size 12 --duration-s 3600 --timeout-ms 10000
wait_for "requests on w1" requests_above w1 20
slow 2 4
slow 3 4
wait_for "requests on w3" requests_above w3 5
shares 400
expect "requests that wait for any slot" "$(service queued)" -gt 0
all_took "short rings"

# Flows whose preferred worker drains move; the others spill as before.
moved=$(service moved)
expect "moved" "$moved" -eq 0
cli workers drain w1 >/dev/null
wait_for "12 flows to move" eval '[ "$(service moved)" -eq 12 ]'
wait_for "requests without w1" requests_above w2 $(($(worker w2 requests) + 50))
load_end full
expect_none_lost full
expect "flows that prefer w2" "$(cli --json flows count --service echo --worker w2 | jq .count)" -gt 0

echo "1900 of 2000 went to the preferred worker at ease; 12 flows that prefer one, requests by worker:" \
    "$alone 0 0 with 256 slots and no bound, $bounded with 125 %; ${share[*]} with 4 slots each"
