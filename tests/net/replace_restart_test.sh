#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The load balancer is killed in the middle of a replacement: the command waits for the next one and goes on; the old
# worker serves until the new one does, and for good when that one does not come back. Killed at any moment, it leaves
# no model without a worker.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin}
  - {name: own, address: $vip, port: 8501, model: echo, workers: assigned}"
start_lb
start_agent 1 echo --model-args delay_us=2000000 --max-run-ms 3000
wait_for "w1 to be active" worker_is w1 active

# replace_start NAME OPTIONS...: doorbell workers replace w1 w2 in the background, as $replacing
replace_start() {
    local name=$1
    shift
    "$build/control/doorbell" --socket "$dir/control.sock" workers replace w1 w2 "$@" >"$dir/$name.out" 2>"$dir/$name.err" &
    replacing=$!
}

# replace_busy NAME LOAD SECONDS: the same of a w1 that serves again, and has requests of LOAD in hand
replace_busy() {
    cli workers resume w1 >/dev/null
    wait_for "w1 to be active" worker_is w1 active
    load_start "$2" echo --to "$vip:8500" --sockets 2 --requests 1
    wait_for "a request on w1" requests_above w1 0
    replace_start "$1" --timeout "$3"
    wait_for "w1 to be draining" worker_is w1 draining
}

# replace_end NAME STATUS TEXT TEXT: with one of these, as w1 may have registered with the new load balancer, or not yet
replace_end() {
    local code=0 said
    wait "$replacing" || code=$?
    said=$(cat "$dir/$1.out")
    [ "$said" = "$4" ] || expect "$1: text" "$said" = "$3"
    expect "$1: status" "$code" -eq "$2"
}
drained="worker w1: drained" drained_later="worker w1: not registered; drained when it is"
unknown="worker w1: doorbell-lb came back and does not know of the drain: it was resumed meanwhile, or there is no control.state_file"
resumed="worker w1: active, as it was resumed meanwhile, or its successor does not serve, or doorbell-lb came back without a control.state_file"

setting_of_w1() {
    cli --json workers settings | jq -c '[.settings[] | select(.name == "w1") | .drain, .successor]'
}

# The command ends when nothing is in hand; the load balancer's next look, 20 ms later at most, ends the replacement.
keeps() {
    [ "$(setting_of_w1) $(jq .version "$dir/state.json")" = "$*" ]
}

restart_lb() {
    stop "$pid_lb" KILL
    start_lb
}

# While it waits for a worker that has yet to come.
replace_start early --timeout 60
start_agent 2 echo
restart_lb
replace_end early 0 "$drained" "$drained_later"
wait_for "the end of the early one to be kept" keeps '[true,null]' 1

# While the old one has requests in hand.
replace_busy middle last 60
expect "what is kept" "$(setting_of_w1)" = '[true,"w2"]'
jq -e '.version == 2 and .workers[0].successor == "w2"' "$dir/state.json" >/dev/null || fail "the file has $(cat "$dir/state.json")"
restart_lb
# The agent of w1 registers when its batch is over, and has nothing in hand then: for as long as that it is not there.
replace_end middle 0 "$drained_later" "$drained"
grep -q "lost doorbell-lb: .*; waiting for it to come back" "$dir/middle.err" ||
    fail "it said: $(cat "$dir/middle.err")"
wait_for "w1 to be drained" worker_is w1 drained
worker_is w2 active || fail "w2 is $(worker w2 state)"
wait_for "the end of the one in the middle to be kept" keeps '[true,null]' 1
load_wait last || true
load run echo --to "$vip:8500" --sockets 4 --requests 50 || true
expect_all run 200

# Another operator resumes the old one before the command is back.
replace_busy other other 60
kill -STOP "$replacing"
restart_lb
cli workers resume w1 >/dev/null
kill -CONT "$replacing"
replace_end other 3 "$unknown" "$resumed"
wait_for "w1 to serve" worker_is w1 active
expect "what is kept" "$(setting_of_w1)" = '[]'
load_wait other || true

# The new one does not come back: the old one serves meanwhile, and then for good.
replace_busy lost last 20
stop "$pid_lb" KILL
stop "$pid_w2" KILL
start_lb
wait_for "w1 to serve" worker_is w1 active
replace_end lost 3 "$resumed" "$unknown"
wait_for "the old one's return to be kept" keeps '[]' 1
expect_log lb "worker=w1 successor=w2 has not come back: the worker serves again"
load_wait last || true

# A service that the new one would not serve is named, and nothing changes.
stop "$pid_w1" KILL
start_agent 1 echo
start_agent 2 echo
for i in 1 2; do
    wait_for "w$i to be active" worker_is "w$i" active
done
cli workers assign w1 own >/dev/null
code=0
cli workers replace w1 w2 >"$dir/refused" 2>&1 || code=$?
expect "status of one that is refused" "$code" -eq 1
grep -q "worker 'w2' would not serve service 'own', which 'w1' serves, so 'w1' goes on; doorbell workers assign w2 own lets it" \
    "$dir/refused" || fail "it said: $(cat "$dir/refused")"
worker_is w1 active || fail "w1 is $(worker w1 state)"
expect "one that is to go on without" "$(cli workers replace w1 w2 --partly)" = "worker w1: drained"

# At any moment of a replacement and of what is done about it.
cli workers assign w2 own >/dev/null
for ms in 0 2 8 32; do
    cli workers resume w1 >/dev/null
    wait_for "w1 to be active" worker_is w1 active
    replace_start any --timeout 60
    sleep "0.$(printf %03d "$ms")"
    restart_lb
    replace_end any 0 "$drained" "$drained_later"
    wait_for "w2 to be active, $ms ms" worker_is w2 active
    wait_for "w1 to be drained, $ms ms" worker_is w1 drained
done
echo "a replacement went on over 6 load balancers that were killed, and was taken back when the new worker was lost, too"
