#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Tagged framing: ids come back with replies and notices; deadlines, priorities and cancels do what
# lb/packet/request.h says; a client that floods the queue delays only itself.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, framing: tagged, queue: 256,
     queue_timeout_ms: 10000}"
start_lb
ip -n "$tag-client" addr add 10.200.0.3/24 dev c0
start_agent 1 echo
wait_for "w1 to be active" worker_is w1 active

# scenario NAME [SOURCE ...]: runs it; figures in $dir/NAME.json
scenario() {
    local name=$1
    shift
    ip netns exec "$tag-client" python3 "$here/tagged.py" "$vip" 8500 "$name" "$@" \
        >"$dir/$name.json" 2>"$dir/$name.log" || fail "$name: $(tail -n 3 "$dir/$name.log")"
}

scenario echo
expect "echo: right replies" "$(figure echo 'answers.reply')" -eq 1000
expect "echo: odd datagrams" "$(figure echo 'odd | length')" -eq 0

scenario malformed
expect "malformed: notices" "$(figure malformed 'codes | tostring')" = "[8,8,8,8,8]"

# Two places in its ring, 20 ms for each: the others wait at the load balancer.
stop "$pid_w1"
start_agent 2 echo --model-args batch_us=20000,sleep=1 --max-batch 1 --slots 2
wait_for "w2 to be active" worker_is w2 active

# A busy machine may halt all of them for the 100 ms that the requests have.
for try in 1 2 3 4 5; do
    watch_delays
    scenario deadline
    [ "$(figure deadline 'answers.reply // 0')" -lt 2 ] || break
done
expect "deadline: answered or refused" \
    "$(jq '.answers | (.reply // 0) + (.deadline // 0) + (.expired // 0)' "$dir/deadline.json")" -eq 40
expect "deadline: replies" "$(figure deadline 'answers.reply')" -ge 2
expect_ms "deadline: the last reply" "$(figure deadline reply_ms | cut -d. -f1)" 150
expect_ms "deadline: the last word" "$(figure deadline last_ms | cut -d. -f1)" 250

scenario fair 10.200.0.2 10.200.0.3
expect "fair: the modest client's replies" "$(figure fair 'modest.reply')" -eq 20
# The request's own time, that of the running one, of one behind it, and of one of the other client's turn;
# the other client waits for its 200.
expect "fair: its longest wait, % of what half of the other's take" \
    "$(figure fair '100 * .worst_ms / .greedy_median_ms | floor')" -lt 50

# 100 ms per request: longer than a busy machine takes from a request to its cancel.
stop "$pid_w2"
start_agent 2 echo --model-args batch_us=100000,sleep=1 --max-batch 1 --slots 2
wait_for "w2 to be active again" worker_is w2 active

scenario cancel
expect "cancel: cancelled" "$(figure cancel 'cancelled | tostring')" = "[1,3,5,7,9,11,13,15,17,19]"
expect "cancel: replies" "$(figure cancel 'answers.reply')" -eq 10
expect "cancel: of what was never sent" "$(drops cancel_unknown)" -eq 1

scenario priority
expect "priority: replies" "$(figure priority 'answers.reply')" -eq 21
# Behind the requests that the worker has, and those on their way.
expect "priority: place of the urgent one" "$(figure priority place)" -le 4

echo "1000 tagged echoes; of 40 with 100 ms $(figure deadline 'answers.reply') in time, the rest refused" \
    "by $(figure deadline last_ms | cut -d. -f1) ms; urgent one at place $(figure priority place);" \
    "beside 200 waiting, one waits $(figure fair worst_ms | cut -d. -f1) ms at most"
