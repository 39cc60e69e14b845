#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# One agent, two workers, a process each. One of them is killed, then halted, then crashes in its
# model, then hangs there: each time it is restarted, and the other is not disturbed: what is sent to it
# alone is answered, all of it. A service that both have loses nothing with replay, and without it what
# the one had gets a notice. No GPU is needed (tests/gpu/one_fault.sh has two). SIGTERM to the agent
# drains both. A worker that hangs at its start is restarted. When the agent is killed no process of it
# remains.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
topology_config "
  - {name: echo, address: $vip, port: 8500, model: faulty, replay: 2, queue_timeout_ms: 6000}
  - {name: poison, address: $vip, port: 8501, model: faulty, workers: assigned}
  - {name: other, address: $vip, port: 8502, model: faulty, workers: assigned, queue_timeout_ms: 6000}
  - {name: once, address: $vip, port: 8503, model: faulty, policy: round-robin, queue: 4096, queue_timeout_ms: 6000}" "workers: {timeout_ms: 5000, suspect_ms: 2000}"
start_lb

start_both() {
    : >"$dir/w1.log"
    start_agent 1 "$build/tests/net/faulty/faulty.so" --workers 2 --hang-ms 2000 "$@"
    wait_for "w1-cpu0 to be active" worker_is w1-cpu0 active
    wait_for "w1-cpu1 to be active" worker_is w1-cpu1 active
}

# pid_of WORKER: prints its process id
pid_of() {
    pgrep -P "$pid_w1" -f -- "--name $1 "
}

# Samples a worker repeatedly: state, age of the oldest heartbeat in ms.
watch_worker() {
    trap 'exit 0' TERM
    while :; do
        cli --json workers show "$1" 2>/dev/null |
            jq -r '.worker | "\(.state) \(.heartbeat_age_ms)"' || echo gone 0
    done >"$dir/$1.seen"
}

# is_new WORKER PID: true when another process has its name
is_new() {
    local now
    now=$(pid_of "$1") && [ "$now" != "$2" ] && worker_is "$1" active
}

# Sends one request to the service without replay; the answer is a notice.
poison() {
    ip netns exec "$tag-client" python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10) # workers are lost after 5 s, or before
s.sendto(sys.argv[2].encode(), (sys.argv[1], 8501))
assert len(s.recv(2048)) == 16' "$vip" "$1" || fail "no notice for the request that says $1"
}

start_both
victim=w1-cpu0 other=w1-cpu1
cli workers assign $victim poison
cli workers assign $other other
expect "processes" "$(pgrep -c -P "$pid_w1")" -eq 2
expect "addresses" "$(grep -oE 'address=[0-9.]+' "$dir/w1.log" | sort | xargs)" = \
    "address=10.201.0.11 address=10.201.0.12"
declare -A pid_before watcher
report='' refused=''
for fault in kill halt CRASH HANG; do
    load_start "$fault" echo --to "$vip:8500" --sockets 32 --duration-s 3600 --rate 1000 --window 8 \
        --timeout-ms 8000
    load_start "${fault}_other" echo --to "$vip:8502" --sockets 8 --duration-s 3600 --rate 500 --window 8
    load_start "${fault}_once" echo --to "$vip:8503" --sockets 32 --duration-s 3600 --rate 500 --window 8 \
        --timeout-ms 8000
    for w in w1-cpu0 w1-cpu1; do
        wait_for "requests on $w" requests_above "$w" 100
        pid_before[$w]=$(pid_of "$w")
        watch_worker "$w" &
        watcher[$w]=$!
        topology_pids+=("$!")
    done
    lost_before=$(worker $other lost) notices_before=$(drops worker_lost)
    watch_delays
    begin=$(date +%s%N)
    case $fault in
    kill) kill -KILL "${pid_before[$victim]}" ;;
    halt) kill -STOP "${pid_before[$victim]}" ;;
    *) poison "$fault" ;;
    esac
    wait_for "the process to end ($fault)" eval '! is_running "${pid_before[$victim]}"'
    wait_for "$victim to be back ($fault)" is_new "$victim" "${pid_before[$victim]}"
    took=$((($(date +%s%N) - begin) / 1000000))
    wait_for "requests on the new $victim" requests_above "$victim" 50
    for w in w1-cpu0 w1-cpu1; do
        stop "${watcher[$w]}"
    done
    for run in "$fault" "${fault}_other" "${fault}_once"; do
        load_end "$run"
    done
    expect_none_lost "$fault"
    expect_none_lost "${fault}_other"
    # Clients wait for the dead one no longer than the load balancer does.
    expect_ms "longest silence on a socket of $other ($fault)" \
        "$(figure "${fault}_other" longest_gap_ms | cut -d. -f1)" 500
    expect "requests without reply or notice ($fault)" "$(figure "${fault}_once" lost)" -eq 0
    expect "wrong replies ($fault)" "$(figure "${fault}_once" wrong)" -eq 0
    # One request is the poison's.
    expect "notices ($fault)" $(($(drops worker_lost) - notices_before)) -ge "$(figure "${fault}_once" refused)"
    expect "answered ($fault)" "$(figure "${fault}_once" answered)" -eq \
        $(($(figure "${fault}_once" requests) - $(figure "${fault}_once" refused)))
    refused+=" $(figure "${fault}_once" refused)"
    expect "process of $other ($fault)" "$(pid_of "$other")" -eq "${pid_before[$other]}"
    expect "states of $other ($fault)" "$(cut -d' ' -f1 "$dir/$other.seen" | sort -u)" = active
    # Heartbeats come every 20 ms.
    expect_ms "oldest heartbeat of $other ($fault)" "$(cut -d' ' -f2 "$dir/$other.seen" | sort -n | tail -n 1)" 200
    expect "lost by $other ($fault)" "$(worker "$other" lost)" -eq "$lost_before"
    report+="$fault $took ms, "
done
expect_log w1 "signal=11"
expect_log w1 "gives no sign of life: killed"
grep -E "the loop has sent no heartbeat|the model does not end" "$dir/w1.log" >/dev/null ||
    fail "the hung worker did not say why it ends"

# On SIGTERM both workers drain, and the agent ends well.
stop "$pid_w1"
expect "exit status" "$status" -eq 0
expect "workers that have left" "$(grep -c "exit_status=0: has left" "$dir/w1.log")" -eq 2

# A worker that hangs before it is up is ended, too, and comes up the second time.
touch "$dir/hang"
start_both --model-args "hang=$dir/hang" --start-ms 3000
expect_log w1 "is not up after 3000 ms: killed"
expect "workers that were started" "$(grep -c "started$" "$dir/w1.log")" -eq 3

# The agent is killed: no worker outlives it.
workers=$(pgrep -P "$pid_w1")
stop "$pid_w1" KILL
for pid in $workers; do
    wait_for "process $pid to end" eval "! is_running $pid"
done

# An error in the command line is reported, and the process is not restarted for ever.
: >"$dir/w1.log"
start_agent 1 no-such-model --workers 2
wait_for "the agent to end" eval "! is_running $pid_w1"
stop "$pid_w1"
expect "exit status of an agent without a model" "$status" -eq 1
expect_log w1 "no worker has come up"
echo "back after ${report%, }; the other never noticed; notices without replay:$refused"
