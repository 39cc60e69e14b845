#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Workers are assigned to a service and released from it under load, and a spare steps in while
# the assigned one is missing. No request is lost.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 3
# Workers are missing only when the test stops them, not when a busy machine halts them for a moment.
topology_config "
  - {name: own, address: $vip, port: 8500, model: echo, policy: round-robin, workers: assigned,
     min_workers: 1, spares: 1}
  - {name: all, address: $vip, port: 8501, model: echo, policy: round-robin}
  - {name: other, address: $vip, port: 8502, model: mlp}" "workers: {suspect_ms: 0, timeout_ms: 3000}"
start_lb
for i in 1 2 3; do
    start_agent $i echo --label host=rack$((i / 2)) --label slot=$i --label gpu=none
    wait_for "w$i to be active" worker_is w$i active
done

# serves SERVICE: prints the workers that serve it, as the table has them
serves() {
    cli --json workers table | jq -r "[.workers[] | select(.services | index(\"$1\")) | .name] | join(\",\")"
}

expect "a spare serves what nobody is assigned to" "$(serves own)" = w1
expect "all serve the other" "$(serves all)" = w1,w2,w3
expect "the table's hosts" "$(cli --json workers table | jq -r '[.workers[] | .host + "/" + .slot] | join(" ")')" \
    = "rack0/1 rack1/2 rack1/3"
expect "spares in" "$(cli --json services show own | jq .service.spares_in)" -eq 1

cli workers assign w3 own >"$dir/assign.log"
expect "what assign said" "$(cat "$dir/assign.log")" = "worker w3 serves own,all"
expect "the spare stepped back" "$(serves own)" = w3
load_start run echo --to "$vip:8500" --sockets 16 --duration-s 3600 --rate 2000
wait_for "requests on w3" requests_above w3 500
cli workers assign w2 own >/dev/null
wait_for "requests on w2" requests_above w2 500
cli workers release w3 own >/dev/null
expect "w2 alone" "$(serves own)" = w2
before=$(worker w3 requests)
wait_for "more requests on w2" requests_above w2 1500
expect "requests that w3 got after its release" "$(worker w3 requests)" -eq "$before"

# The assigned worker leaves under load; its assignment stays.
stop "$pid_w2" TERM
wait_for "a spare instead" eval '[ "$(serves own)" = w1 ]'
wait_for "requests on w1" requests_above w1 500
start_agent 2 echo --label host=rack1 --label slot=2
wait_for "w2 again" eval '[ "$(serves own)" = w2 ]'
load_end run
expect_none_lost run

cli workers release w1 all >/dev/null
expect "without w1" "$(serves all)" = w2,w3
! cli workers release w1 all 2>"$dir/release.log" || fail "w1 was released twice"
grep -q "worker 'w1' does not serve 'all'" "$dir/release.log" || fail "it said: $(cat "$dir/release.log")"
# One of several services in a command is impossible: nothing changes.
cli workers release w2 own >/dev/null
services=$(cli --json workers show w2 | jq -c .worker.services)
! cli workers assign w2 own other 2>"$dir/assign.log" || fail "w2 was assigned to a service of another model"
grep -q "worker 'w2' runs the model 'echo', and service 'other' needs 'mlp'" "$dir/assign.log" ||
    fail "it said: $(cat "$dir/assign.log")"
expect "services of w2 after an assignment that failed" \
    "$(cli --json workers show w2 | jq -c .worker.services)" = "$services"
cli workers assign w2 own >/dev/null
! cli workers release w2 own other 2>"$dir/release.log" || fail "w2 was released from what it does not serve"
grep -q "worker 'w2' does not serve 'other'" "$dir/release.log" || fail "it said: $(cat "$dir/release.log")"
expect "own after a release that failed" "$(serves own)" = w2

cli workers assign w1 all >/dev/null
expect "with w1 again" "$(serves all)" = w1,w2,w3
echo "$(figure run answered) requests answered while workers were assigned and released, none lost"
