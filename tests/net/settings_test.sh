#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Operators' settings are kept by worker name: a drain, a weight and an assignment survive the agent's
# restart, a cut cable, and the load balancer's restart and death; resume and forget undo them. A
# setting that cannot be saved is refused, and waiting for a drain ends when its worker goes.
#
# Runs beside another: no limit of it is a time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin}
  - {name: own, address: $vip, port: 8501, model: echo, workers: assigned}" \
    "workers: {timeout_ms: 3000, suspect_ms: 0}"
start_lb
start_agents 2 echo

# none_for_w1 WHEN: expects that w1 is drained and gets none of 200 requests
none_for_w1() {
    wait_for "w1 to be drained $1" worker_is w1 drained
    load run echo --to "$vip:8500" --sockets 4 --requests 50 || true
    expect_all run 200
    expect "requests of w1 $1" "$(worker w1 requests)" -eq 0
}

expect "what drain says" "$(cli workers drain w1)" = "worker w1: drained"
cli workers set w2 weight=9 >/dev/null
cli workers assign w2 own >/dev/null

stop "$pid_w1" KILL
start_agent 1 echo
none_for_w1 "after its agent was killed"

ip -n "$tag-fabric" link set w1 down
wait_for "w1 to be gone" eval '! worker_known w1'
expect "the state of a name that is gone" "$(cli --json workers settings |
    jq -r '.settings[] | select(.name == "w1") | .state')" = gone
ip -n "$tag-fabric" link set w1 up
none_for_w1 "after its cable was cut"

# restart_lb SIGNAL
restart_lb() {
    stop "$pid_lb" "$1"
    start_lb
    wait_for "w2 to be active" worker_is w2 active
    none_for_w1 "after SIG$1 to the load balancer"
    expect "weight of w2 after SIG$1" "$(worker w2 weight)" -eq 9
    expect "its agent's" "$(worker w2 agent_weight)" -eq 1
    expect "services of w2 after SIG$1" "$(worker w2 'services | join(",")')" = echo,own
}
restart_lb TERM
restart_lb KILL

# A change that cannot be saved is not made.
mv "$dir/state.json" "$dir/kept.json"
mkdir "$dir/state.json"
for change in "resume w1" "drain w2" "set w2 weight=3" "release w2 own" "forget w2"; do
    # shellcheck disable=SC2086
    ! cli workers $change >"$dir/change.log" 2>&1 || fail "workers $change was not refused"
    grep -q "$dir/state.json: .*nothing was set" "$dir/change.log" || fail "it said: $(cat "$dir/change.log")"
done
expect "w1, w2" "$(cli --json workers list | jq -c '[.workers[] | [.name, .state, .weight, .services]] | sort')" \
    = '[["w1","drained",1,[]],["w2","active",9,["echo","own"]]]'
rmdir "$dir/state.json"
mv "$dir/kept.json" "$dir/state.json"

# A worker that is not registered yet.
! cli workers drain w7 2>"$dir/absent.log" || fail "a typing error was kept"
cli workers drain w7 --absent >/dev/null
cli workers forget w7 >/dev/null
expect "what forget says" "$(cli workers forget w2)" = "worker w2: nothing is set for it any more, active"
expect "w2 then" "$(worker w2 weight) $(worker w2 'services | join(",")')" = "1 echo"
cli workers resume w1 >/dev/null
wait_for "w1 to be active" worker_is w1 active
load run echo --to "$vip:8500" --sockets 4 --requests 50 || true
expect_all run 200
expect "requests of w1 when it was resumed" "$(worker w1 requests)" -gt 0
expect "what is left" "$(jq -c .workers "$dir/state.json")" = "[]"

# A command that waits for a drain reports that the worker went, and that it had requests in hand.
stop "$pid_w2"
stop "$pid_w1"
start_agent 1 echo --model-args delay_us=3000000 --max-run-ms 4000
wait_for "w1 to be active" worker_is w1 active
load_start last echo --to "$vip:8500" --sockets 1 --requests 1
wait_for "a request on w1" requests_above w1 0
timeout 60 "$build/control/doorbell" --socket "$dir/control.sock" workers drain w1 >"$dir/drain.log" 2>&1 &
drain=$!
wait_for "w1 to be draining" worker_is w1 draining
kill -KILL "$pid_w1"
code=0
wait $drain || code=$?
expect "exit status of drain when the worker went" "$code $(cat "$dir/drain.log")" \
    = "3 worker w1: gone, with 1 requests in hand"
load_wait last || true

# The load balancer neither starts with a damaged file nor overwrites it.
stop "$pid_lb"
echo '{"version": 1, "wor' >"$dir/state.json"
start lb lb "$build/doorbell-lb" --config "$dir/lb.yaml"
code=0
wait "$pid" || code=$?
expect "exit status with a damaged file" "$code" -eq 1
expect_log lb "$dir/state.json:1: is not JSON"
expect "the damaged file" "$(cat "$dir/state.json")" = '{"version": 1, "wor'

# check EXPECTED-STATUS TEXT DOCTOR: expects --check and the doctor to report it before a start does
check() {
    local said
    expect_check "$1" "$2"
    # The doctor has other complaints on some machines.
    said=$({ "$build/control/doorbell" --json doctor lb --config "$dir/lb.yaml" || true; } |
        jq -r '.checks[] | select(.name == "operators'"' settings"'") | "\(.status) \(.found)"')
    expect "the doctor: $said" "${said%% *}" = "$3"
}
check 1 "control.state_file: $dir/state.json:1: is not JSON" problem
echo '{"version": 1, "workers": []}' >"$dir/state.json"
check 0 good ok
chown 12345 "$dir/state.json"
check 1 "control.state_file: $dir/state.json: belongs to user 12345" problem
rm "$dir/state.json"
check 0 good ok
echo "drain, weight and assignment held over two agents, a cut cable and three load balancers"
