#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# An agent that does not fit is refused, and its log says what to change: the reason comes from the
# load balancer, word for word.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 2
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}" "workers: {timeout_ms: 400}"
start_lb

# service FIELD: prints it for the only service
service() {
    cli --json services show echo | jq -r ".service.$1"
}
expect "state of a service without workers" "$(service state)" = down
expect "why" "$(service reason)" = "no worker is registered for model 'echo'"
start_agent 1 echo --model-args max_request=100
expect_log w1 "max_request: the worker takes 100 bytes"
[[ $(service reason) == *"; one at 10.201.0.101 was refused: max_request: the worker takes 100 bytes"* ]] ||
    fail "the service does not say what was refused: $(service reason)"
stop "$pid_w1"
: >"$dir/w1.log"
start_agents 1 echo
expect "state of a service with a worker" "$(service state)" = serving
expect "why not" "$(service reason)" = null
cli workers drain w1 >/dev/null
expect "why, with a drained worker" "$(service reason)" = \
    "all 1 workers of model 'echo' are drained; doorbell workers resume NAME"
cli workers resume w1 >/dev/null

# refused TEXT AGENT-OPTIONS...: expects a refusal with TEXT on the second worker's host
refused() {
    local text=$1
    shift
    : >"$dir/w2.log"
    start_agent 2 "$@"
    expect_log w2 "$text"
    expect "workers" "$(cli --json workers list | jq '.workers | length')" -eq 1
    stop "$pid_w2"
    expect "exit status of a refused agent" "$status" -eq 0
}

# Tries of one agent that fail for one reason are one row with a count for operators, and one line in the
# agent's log.
tried_thrice() {
    [ "$(cli --json workers refused | jq '[.refused[] | select(.worker == "w2").times] | add // 0')" -ge 3 ]
}
start_agent 2 echo --model-args max_request=100
wait_for "three refusals" tried_thrice
expect "rows for w2" "$(cli --json workers refused | jq '[.refused[] | select(.worker == "w2")] | length')" -eq 1
cli workers refused | grep -q "10.201.0.102  *w2  *echo  *max_request: the worker takes 100 bytes" ||
    fail "doorbell workers refused: $(cli workers refused)"
stop "$pid_w2"
expect "lines about it in the agent's log" "$(grep -c not_serving "$dir/w2.log")" -eq 1
expect "figures of workers that never served" "$(grep -c 'ran requests' "$dir/w2.log" || true)" -eq 0

digits=$root/gpu-agent/models/digits/digits.safetensors
refused "no service uses model 'mlp'" mlp --model-args "weights=$digits"
refused "max_request: the worker takes 100 bytes, the services of model 'echo' send up to 1472" \
    echo --model-args max_request=100
# A model that wants more than any datagram carries, before its memory is made and without it.
refused "the model 'echo' takes requests of 602112 bytes or more, and service 'echo' carries 1472 at most" \
    echo --model-args max_request=602112,min_request=602112
refused "name 'w1' is in use by another live agent; use another name" echo --name w1
refused "heartbeat_ms: 300 is more than half of the load balancer's workers.timeout_ms 400" \
    echo --heartbeat-ms 300
refused "no fabric port reaches 10.9.0.1" echo --address 10.9.0.1/24

# Numbers that no real agent sends.
answer=$(ip netns exec "$tag-w2" /usr/bin/python3 "$here/register.py" 10.201.0.254 4790 slots=3)
expect "answer to slots=3" "$answer" = "slots is 3; use a power of two from 2 to 32768"

answer=$(ip netns exec "$tag-w2" /usr/bin/python3 "$here/register.py" 10.201.0.254 4790 min_request=1473 \
    max_request=2048)
[[ $answer == "min_request: the model 'echo' takes requests of 1473 bytes or more"* ]] ||
    fail "answer to min_request=1473: $answer"

# An error that the agent can see itself is reported at once, and the agent ends.
start_agent 2 echo --slots 100
stop "$pid_w2" CONT
expect "exit status of a wrong option" "$status" -eq 2
expect_log w2 "--slots: '100' is not a power of two from 2 to 32768"

load run echo --to "$vip:8500" --sockets 4 --requests 100 || true
expect_all run 400

# While a worker is registered, its services cannot become too narrow for it.
start_agent 2 echo --model-args min_request=1000
wait_for "w2 to be active" worker_is w2 active
sed -i 's/model: echo}/model: echo, max_request: 999}/' "$dir/lb.yaml"
! cli config apply 2>"$dir/apply.log" || fail "a service was made too narrow for w2"
grep -q "service 'echo' would carry 999 bytes at most, and worker w2 takes requests of 1000 or more" "$dir/apply.log" ||
    fail "it said: $(cat "$dir/apply.log")"
echo "eight registrations refused, each with its reason"
