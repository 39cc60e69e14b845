#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Mixed load by UDP and TCP at a light rate, with clients that leave in the middle, read or send slowly, and workers that
# come, drain, are killed and return, while the configuration changes now and then. What the load balancer holds after it is
# compared with what it held when it was warm: each `..._left` is 0 if nothing leaks.
#
#   soak.sh [--minutes N] [--seconds N] [--warm S] [--workers N] [--every S] [--device KIND] [--seed N]
#           [--json FILE] [--commit TEXT] [--machine TEXT]
#
#   --minutes N    of load (60)
#   --seconds N    the same, for less than a minute
#   --warm S       seconds of the same load before what it held is noted (60)
#   --workers N    (4); the first is never touched
#   --every S      seconds from one event to the next (10)
#   --device KIND  of the ports: kernel (AF_XDP) or net_af_packet (kernel, if this build has the XDP program)
#
# BUILD is the build directory. Root, for namespaces. Exit status 1: something was wrong, lost, or left.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
build=${BUILD:-$root/build-bench}
# shellcheck source=tests/bench/live.sh
. "$root/tests/bench/live.sh"
# shellcheck source=tests/net/topology.sh
. "$root/tests/net/topology.sh"

minutes=60 seconds='' warm=60 workers=4 every=10 seed=1 device=net_af_packet
[ ! -f "$build/workers/runtime/steer.bpf.o" ] || device=kernel
live_options "minutes seconds warm workers every seed device" "$@"
seconds=${seconds:-$((minutes * 60))}
RANDOM=$seed

trap 'exit 130' INT
trap 'exit 143' TERM
trap soak_end EXIT

soak_end() {
    local code=$? log
    if [ $code -ne 0 ] && [ -n "$dir" ]; then
        for log in "$dir"/*.log; do
            [ ! -s "$log" ] || printf -- '--- %s\n%s\n' "${log##*/}" "$(tail -n 15 "$log")" >&2
        done
    fi
    topology_down
    exit $code
}

# --- what runs --------------------------------------------------------------------------------------------------------

vip=10.200.0.100 vip6=fd00:200::100

# configure TEXT: the configuration, with what TEXT changes in it; a flow's timeout may not be shorter than the others
configure() {
    local times="queue_timeout_ms: 2000, request_timeout_ms: 4000, replay: 3"
    topology_config "
  - {name: length, protocol: tcp, address: $vip, port: 8500, model: echo, $times, max_request: 1MiB, max_reply: 1MiB}
  - {name: length6, protocol: tcp, address: \"$vip6\", port: 8500, model: echo, $times, max_request: 1MiB, max_reply: 1MiB}
  - {name: tagged, protocol: tcp, framing: tagged, address: $vip, port: 8501, model: echo, $times, max_request: 64KiB, max_reply: 64KiB}
  - {name: tagged6, protocol: tcp, framing: tagged, address: \"$vip6\", port: 8501, model: echo, $times, max_request: 64KiB, max_reply: 64KiB}
  - {name: udp, address: $vip, port: 8502, model: echo, $times, flow_timeout_ms: 6000, one_way_timeout_ms: 6000}
  - {name: udp6, address: \"$vip6\", port: 8502, model: echo, $times, flow_timeout_ms: 6000, one_way_timeout_ms: 6000}$1"
}
flavours=(""
    "
  - {name: more, protocol: tcp, address: $vip, port: 8510, model: echo}"
    "
  - {name: other, address: $vip, port: 8511, model: echo, policy: round-robin}
tcp: {time_wait_ms: 2000, fin_wait_ms: 2000, window: 256KiB, pipeline: 16, unfinished: 8}")
flavours[0]+="
tcp: {time_wait_ms: 2000, fin_wait_ms: 2000}"
flavours[1]+="
tcp: {time_wait_ms: 2000, fin_wait_ms: 2000, client_percent: 20}"
# A busy machine may halt a process for a second, as in tests/net/story.sh.
# shellcheck disable=SC2034
flows=4096 device_kind=$device default_workers="{timeout_ms: 5000, suspect_ms: 0, lease_ms: 20000}" default_fabric="{ack_timeout: 17}"
[ "$device" = kernel ] || device_frames=,framecnt=4096

agent() {
    start_agent "$1" echo --model-args max_request=1048576,batch_us=200,sleep=1 --payload-mb 64
}

active() {
    [ "$(cli --json workers list | jq '[.workers[] | select(.state == "active")] | length')" -eq "$workers" ]
}

clients() {
    start "clients" client python3 "$root/tests/bench/soak/soak_clients.py" --address "$vip" --address6 "$vip6" --seed "$seed"
    seed=$((seed + 1))
}

# clients_end: their figures join those before
clients_end() {
    stop_s=150 stop "$pid_clients"
    [ "$status" -eq 0 ] || { echo "the clients ended with $status" >&2 && exit 1; }
    grep '^{' "$dir/clients.log" | tail -n 1 >>"$dir/counts"
}

# One of the workers but the first leaves and returns, or the configuration changes.
declare -A events=([kill]=0 [restart]=0 [drain]=0 [apply]=0)
event() {
    local kinds=(kill restart drain apply) kind worker=$((RANDOM % (workers - 1) + 2)) pid
    kind=${kinds[RANDOM % 4]}
    pid=pid_w$worker
    events[$kind]=$((events[$kind] + 1))
    case $kind in
    kill)
        stop "${!pid}" KILL
        agent "$worker"
        ;;
    restart)
        stop "${!pid}"
        agent "$worker"
        ;;
    drain)
        cli workers drain "w$worker" >/dev/null
        sleep 1 # the pace of events
        cli workers resume "w$worker" >/dev/null
        ;;
    apply)
        configure "${flavours[events[apply] % 3]}"
        cli config apply >/dev/null
        ;;
    esac
    wait_for "all workers to be active after $kind of w$worker" active
}

# load SECONDS
load() {
    local end=$((SECONDS + $1))
    clients
    while ((SECONDS + every < end)); do
        sleep "$every" # the pace of events, not a wait
        event
        note
    done
    ((SECONDS >= end)) || sleep $((end - SECONDS))
    clients_end
}

# --- what it holds ----------------------------------------------------------------------------------------------------

# rss PID: MiB
rss() {
    awk '$1 == "VmRSS:" { print $2 / 1024 }' "/proc/$1/status"
}

# held: what the load balancer and the first worker's agent have now, as an object
held() {
    local i
    cli --json stats >"$dir/stats.json"
    for ((i = 1; i <= workers; i++)); do
        cli --json workers show "w$i" | jq .worker
    done >"$dir/workers.json"
    jq -n --slurpfile stats "$dir/stats.json" --slurpfile workers "$dir/workers.json" --argjson rss "$(rss "$pid_lb")" \
        --argjson agent_rss "$(rss "$pid_w1")" --argjson fds "$(find "/proc/$pid_lb/fd" -mindepth 1 | wc -l)" \
        --argjson agent_fds "$(find "/proc/$pid_w1/fd" -mindepth 1 | wc -l)" '
        def of(f): $stats[0].lcores | map(f) | add;
        {rss_mib: $rss, agent_rss_mib: $agent_rss, fds: $fds, agent_fds: $agent_fds,
         mbufs: of(.memory | .packets + .control + .cancels + .indirect + .reassembled),
         slots: ($workers | map(.outstanding) | add), room: ($workers | map(.room_used) | add),
         unacked: ($workers | map(.unacked) | add), waiting: of(.queued), window: of(.window_held), flows: of(.flows.live),
         connections: of(.tcp | .connections + .half_open + .time_wait), requests: of(.tcp.requests),
         pieces: of(.tcp.pieces + .tcp.held_packets), clients: of(.tcp.clients), timers: of(.tcp.timers)}'
}

note() {
    held | jq -c --argjson at "$SECONDS" '{at: $at} + .' >>"$dir/series"
}

# at_rest: nothing is left of any client
at_rest() {
    held | jq -e '[.slots, .room, .unacked, .waiting, .window, .flows, .connections, .requests, .pieces, .clients, .timers] | add == 0' \
        >/dev/null
}

# settle NAME: $dir/NAME has the least of several looks at what is held, after all has come to rest or cannot. Heartbeats and
# answers to ARP hold a packet for a moment, in some of them. A `kernelN` port holds the packets of its last burst until it sends
# again: answers to a ping alone, so that they are one packet each time.
settle() {
    local i
    wait_for "everything to come to rest" at_rest || echo "at rest, or not: $(held | jq -c .)" >&2
    for ((i = 0; i < 10; i++)); do
        ip netns exec "$tag-client" ping -qc 1 -W 5 "$vip" >/dev/null
        ip netns exec "$tag-w1" ping -qc 1 -W 5 10.201.0.1 >/dev/null
        held
        sleep 0.13
    done | jq -s 'map(to_entries) | add | group_by(.key) | map(min_by(.value)) | from_entries' >"$dir/$1"
}

# --- the run ----------------------------------------------------------------------------------------------------------

topology_up "soak$$" "$workers"
configure "${flavours[0]}"
start lb lb "$build/doorbell-lb" --config "$dir/lb.yaml"
wait_for "the load balancer's control socket" cli version
for ((i = 1; i <= workers; i++)); do
    agent "$i"
done
wait_for "all workers to be active" active

load "$warm"
settle before
began=$SECONDS
load "$seconds"
took=$((SECONDS - began))
settle after
result=$(jq -n --slurpfile before "$dir/before" --slurpfile after "$dir/after" --slurpfile counts "$dir/counts" \
    --slurpfile series "$dir/series" --arg commit "$commit" --arg machine "$machine" --argjson seconds "$took" \
    --argjson events "$(for kind in "${!events[@]}"; do echo "{\"$kind\": ${events[$kind]}}"; done | jq -s add)" --arg device "$device" '
    def grown(key): $after[0][key] - $before[0][key];
    ($counts | map(to_entries) | add | group_by(.key) | map({key: .[0].key, value: (map(.value) | add)}) | from_entries) as $all |
    {bench: "soak", commit: $commit, machine: $machine, runs: 1, device: $device,
     metrics: ({rss_growth_mib: grown("rss_mib"), agent_rss_growth_mib: grown("agent_rss_mib"),
        seconds: $seconds} +
       (["mbufs", "slots", "room", "unacked", "waiting", "window", "flows", "connections", "requests", "pieces", "clients", "timers",
         "fds", "agent_fds"] | map({key: "\(.)_left", value: grown(.)}) | from_entries) +
       {wrong: $all.wrong, lost: $all.lost, refused: $all.refused, failed: $all.failed, answered: $all.answered}),
     events: $events, clients: $all, before: $before[0], after: $after[0],
     most: ($series | map(to_entries) | add | group_by(.key) | map(max_by(.value)) | from_entries),
     rss_mib: ($series | [range(0; length; (length / 60 | ceil)) as $i | .[$i] | [.at, .rss_mib]])}')
[ -z "$json" ] || echo "$result" >"$json"
jq -r '(.metrics | to_entries[] | "\(.key) \(.value * 1000 | round / 1000)"), "events \(.events)", "clients \(.clients)", "most \(.most)"' <<<"$result"
# An allocator may keep a page more or less; 2 MiB are less than one lost connection per second of an hour. Within minutes of the
# start, packet buffers become resident as they are first used. So does an agent's room of 64 MiB.
jq -e '.metrics | ([to_entries[] | select(.key | endswith("_left")).value] | all(. <= 0)) and .wrong == 0 and .lost == 0 and
    .failed == 0 and .rss_growth_mib <= (if .seconds < 600 then 64 else 2 end) and .agent_rss_growth_mib <= 66 and .answered > 0' <<<"$result" >/dev/null ||
    { echo "soak: something was wrong, lost or left" >&2 && exit 1; }
