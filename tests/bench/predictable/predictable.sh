#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Requests with deadlines that come as a Poisson process, for three models on two devices, at 50 to 120 % of what
# the devices can do: Doorbell, and a central controller that holds all payloads, knows what each batch takes and
# tells its workers by TCP what to run when (bench-controller). A round is both at each load, with the same clients,
# requests, times and deadlines.
#
#   predictable.sh [--rounds N] [--seconds S] [--loads "PERCENT ..."] [--size BYTES] [--reply BYTES] [--times "MS MS MS"]
#                  [--batches "N N N"] [--agents "..."] [--turns on|off] [--deadlines "MS MS MS"] [--connections N] [--device af_packet|kernel]
#                  [--policy NAME] [--peer "OPTIONS"] [--only "doorbell controller"] [--json FILE] [--commit TEXT]
#                  [--machine TEXT]
#
#   --rounds N          figures are medians of so many (5)
#   --seconds S         that each part is measured in each round (4)
#   --loads "..."       percent of the capacity ("50 70 90 100 110 120")
#   --size BYTES        of a request (16384)
#   --reply BYTES       of a reply, which is the beginning of its request (1024)
#   --times "..."       ms that a request of each model takes alone: six tenths are its batch's, whatever its size ("1 3 8")
#   --batches "..."     requests of a batch at most ("32 16 8")
#   --agents "..."      Doorbell's: DEVICE:MODEL:BATCH for each, models small, middle, large; those of a device take turns
#                       (all three on
#                       each device, with the batches of --batches)
#   --turns on|off      they take batches from their rings when their turn has come (on), or give the device their batches,
#                       which run in that order
#   --deadlines "..."   ms from when a request is due to its reply, of each model ("100 100 100")
#   --connections N     of the clients, for each model (32)
#   --device KIND       of the clients port (af_packet)
#   --policy NAME       of Doorbell's services (earliest-finish)
#   --peer "..."        options of bench-controller serve
#
# A third of the requests is for each model. The capacity is what two devices can do in batches that are always full.
#
# With ten CPUs or more the lcore, the clients and the controller have one each, and the workers of a device three,
# which are the same for both sides. With fewer the lcore and the controller share one, and all others another.
#
# BUILD is the build directory. Root, for namespaces; two CPUs.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
build=${BUILD:-$root/build-bench}
# shellcheck source=tests/bench/live.sh
. "$root/tests/bench/live.sh"
# shellcheck source=tests/net/topology.sh
. "$root/tests/net/topology.sh"

rounds=5 seconds=4 loads="50 70 90 100 110 120" size=16384 reply=1024 times="1 3 8" batches="32 16 8" agents='' turns=on
deadlines="100 100 100" connections=32 device=af_packet policy=earliest-finish peer='' only="doorbell controller"
live_options "rounds seconds loads size reply times batches agents turns deadlines connections device policy peer only" "$@"
[ -n "$(cpu 2)" ] || { echo "skipped: needs two CPUs" && exit 77; }
frames=
[ "$device" = kernel ] || { device=net_$device frames=,framecnt=4096; }
lcore=$(cpu 1) clients_cpu=$(cpu 2) controller_cpu=$(cpu 1)
device_cpus=([1]=$(cpu 2) [2]=$(cpu 2))
if [ -n "$(cpu 10)" ]; then
    controller_cpu=$(cpu 3)
    device_cpus=([1]="$(cpu 4),$(cpu 5),$(cpu 6)" [2]="$(cpu 7),$(cpu 8),$(cpu 9)")
fi
trap 'exit 130' INT
trap 'exit 143' TERM
trap topology_down EXIT

may_chrt=$(chrt --rr 1 true 2>/dev/null && echo yes || echo "without real-time priority: other programs disturb this" >&2)
ahead=${may_chrt:+chrt --rr 1}

vip=10.200.0.100
host=10.200.0.99 # the kernel's own address on the clients' side, where the controller listens
names=(small middle large)
read -ra time_ms <<<"$times"
read -ra batch <<<"$batches"
read -ra agents <<<"${agents:-$(for d in 1 2; do echo "$d:small:${batch[0]} $d:middle:${batch[1]} $d:large:${batch[2]}"; done | xargs)}"
read -ra deadline_ms <<<"$deadlines"
base_us=() each_us=() models=() deadlines_of=()
for i in 0 1 2; do
    base_us[i]=$(jq -n "${time_ms[i]} * 600 | round")
    each_us[i]=$(jq -n "${time_ms[i]} * 400 | round")
    models+=(--model "$((8501 + i)),${base_us[i]},${each_us[i]},${batch[i]}")
    deadlines_of+=(--deadline-ms "${deadline_ms[i]}")
done
# Requests per second of two devices, with a third of them for each model.
capacity=$(jq -n "2e6 / ([(${base_us[0]} / ${batch[0]} + ${each_us[0]}), (${base_us[1]} / ${batch[1]} + ${each_us[1]}),
    (${base_us[2]} / ${batch[2]} + ${each_us[2]})] | add / 3)")

# started NAME PLACE CPUS COMMAND...: as start, with its CPUs, in real time
started() {
    # shellcheck disable=SC2086
    start "$1" "$2" taskset -c "$3" $ahead "${@:4}"
}

# --- Doorbell: an agent for each model and device; those of a device share it

room=$((size > 1400 ? size : 1400))

doorbell_up() {
    local i n memif ports='' services=''
    for n in "${!agents[@]}"; do
        memif="socket=$dir/memif$n.sock,socket-abstract=no,rsize=10"
        ports+="  - {name: fabric$n, device: \"net_memif$n,role=server,$memif\", roles: [fabric], mtu: 3300, address: 10.202.$n.1/24}"$'\n'
    done
    for i in 0 1 2; do
        services+="  - {name: ${names[i]}, protocol: tcp, framing: tagged, address: $vip, port: $((8501 + i)), model: ${names[i]}, policy: $policy, max_request: $room, max_reply: $room}"$'\n'
    done
    cat >"$dir/lb.yaml" <<END
ports:
  - {name: clients, device: "${device}0,iface=clients$frames", roles: [clients]}
${ports}services:
${services}lcores: [$lcore]
flows: 65536
memory: {hugepages: false, mb: $((size > 65536 ? 2048 : 1024))}
control: {socket: "$dir/control.sock", state_file: off, agents: "10.201.0.254:4790", allow_plain: true}
END
    # shellcheck disable=SC2086
    start lb lb $ahead "$build/doorbell-lb" --config "$dir/lb.yaml"
    wait_for "the load balancer's control socket" cli version || { cat "$dir/lb.log" >&2 && exit 1; }
    for n in "${!agents[@]}"; do
        agent_up "$n"
    done
    for n in "${!agents[@]}"; do
        wait_for "a$n to be active" worker_is "a$n" active || { cat "$dir/a$n.log" "$dir/lb.log" >&2 && exit 1; }
    done
}

# agent_up N: the N-th of $agents, DEVICE:MODEL:BATCH
agent_up() {
    local d model batch i turn=()
    IFS=: read -r d model batch <<<"${agents[$1]}"
    [ "$turns" = off ] || turn=(--turns "$dir/turns$d")
    for i in 0 1 2; do
        [ "${names[i]}" = "$model" ] || continue
        started "a$1" "w$d" "${device_cpus[d]}" "$build/gpu-agent/doorbell-agent" --lb 10.201.0.254:4790 --name "a$1" \
            --gpu none --mtu 3300 --no-hugepages --max-batch "$batch" --max-run-ms 2000 "${turn[@]}" \
            --device "net_memif_agent,role=client,socket=$dir/memif$1.sock,socket-abstract=no,rsize=10,bsize=3364" --address "10.202.$1.2/24" \
            --model "$build/tests/bench/timed_$model.so" \
            --model-args "max_request=$room,reply=$reply,base_us=${base_us[i]},each_us=${each_us[i]},device=$dir/device$d"
    done
}

agents_pids() {
    local n pid
    for n in "${!agents[@]}"; do
        pid=pid_a$n
        echo "${!pid}"
    done
}

# --- the controller, and a worker for each device

controller_up() {
    local d
    for d in 1 2; do
        started "worker$d" "w$d" "${device_cpus[d]}" "$build/tests/bench/bench-controller" work --port 8600 --device "$dir/peer$d"
        wait_for "worker $d" eval "ip netns exec $tag-w$d ss -ltnH | grep -q :8600"
    done
    # shellcheck disable=SC2086
    started controller lb "$controller_cpu" "$build/tests/bench/bench-controller" serve "${models[@]}" \
        --worker 10.201.0.101:8600 --worker 10.201.0.102:8600 --max-request "$room" --reply "$reply" $peer
    wait_for "the controller" grep -q ready "$dir/controller.log"
}

# Its counters since the last report, in $dir/report
report() {
    local lines
    lines=$(wc -l <"$dir/controller.log")
    kill -USR1 "$pid_controller"
    wait_for "the controller's report" eval "[ \$(wc -l <$dir/controller.log) -gt $lines ]"
    tail -n 1 "$dir/controller.log" >"$dir/report"
}

# --- figures

# cpu_s PID...: CPU seconds of these processes, so far
cpu_s() {
    local pid
    for pid in "$@"; do
        sed 's/.*) //' "/proc/$pid/stat"
    done | awk -v hz="$(getconf CLK_TCK)" '{ sum += $12 + $13 } END { print sum / hz }'
}

# device_words PART: both devices' struct device_words so far, without the first word, added up, as JSON
device_words() {
    local prefix=peer
    [ "$1" = controller ] || prefix=device
    od -An -v -t u8 -w56 "$dir/${prefix}1" "$dir/${prefix}2" | jq -sc '[.[1:7], .[8:14]] | transpose | map(add)'
}

# front_counts PART: what the load balancer has sent to workers, and what it has answered, so far, as JSON
front_counts() {
    [ "$1" = controller ] && echo '[0, 0]' && return
    cli --json stats | jq -c '[.lcores[] | [.requests, .replies]] | transpose | map(add)'
}

# ideal LOAD ROUND: the part of the measured requests that a scheduler without any delay has in time, and a bound of all
ideal() {
    "$build/tests/bench/bench-controller" ideal "${models[@]}" --devices 2 --rate "$(jq -n "$capacity * $1 / 100")" \
        --seed $(($2 * 1000 + $1)) --seconds "$seconds" --warmup-ms 500 "${deadlines_of[@]}"
}

# measure PART ADDRESS LOAD ROUND FRONT-PID WORKER-PID...: a line in $dir/figures
measure() {
    local part=$1 to=$2 load=$3 round=$4 front=$5 i targets=() before after words counts
    shift 5
    for i in 0 1 2; do
        targets+=(--to "$to:$((8501 + i))" --deadline-ms "${deadline_ms[i]}" --mix "$size")
    done
    [ "$part" = doorbell ] || report
    words=$(device_words "$part")
    counts=$(front_counts "$part")
    before=("$(cpu_s "$front")" "$(cpu_s "$@")")
    # shellcheck disable=SC2086
    ip netns exec "$tag-client" taskset -c "$clients_cpu" $ahead "$build/control/doorbell" bench --tcp --framing tagged \
        "${targets[@]}" --flows "$connections" --verify start --json --quiet --seed $((round * 1000 + load)) \
        --rate "$(jq -n "$capacity * $load / 100")" --warmup 0.5 --duration "$seconds" --timeout-ms 10000 --remote \
        >"$dir/asked" 2>"$dir/ask.log" || [ -s "$dir/asked" ] || { cat "$dir/ask.log" >&2 && exit 1; }
    after=("$(cpu_s "$front")" "$(cpu_s "$@")")
    echo '{}' >"$dir/report.json"
    [ "$part" = doorbell ] || { report && cp "$dir/report" "$dir/report.json"; }
    jq -c --arg part "$part" --argjson load "$load" --argjson front "$(jq -n "${after[0]} - ${before[0]}")" \
        --argjson workers "$(jq -n "${after[1]} - ${before[1]}")" --slurpfile report "$dir/report.json" \
        --argjson words "[$words, $(device_words "$part")]" --argjson counts "[$counts, $(front_counts "$part")]" \
        --argjson seconds "$seconds" --argjson ideal "$(ideal "$load" "$round")" \
        '($words | transpose | map(.[1] - .[0])) as $device | ($counts | transpose | map(.[1] - .[0])) as $sent | $report[0] as $report |
         (if $part == "controller" then {at_once: $report.refused, given_up: $report.expired, ran_late: (.latency.count - .in_time)}
          else {at_once: (.requests - $sent[0]), given_up: ($sent[0] - $device[2]), ran_late: ($device[2] - $sent[1])} end) as $went |
         {part: $part, load: $load, front_cpu_s: $front, workers_cpu_s: $workers, report: $report, went: $went, ideal: $ideal,
          busy: ($device[0] / 2e9 / ($seconds + 0.5)), batch: ($device[2] / ([$device[1], 1] | max)),
          base: ($device[3] / ([$device[0], 1] | max)), switched: ($device[5] / ([$device[1], 1] | max))} + .' "$dir/asked" >>"$dir/figures"
    [ -z "${VERBOSE:-}" ] || tail -n 1 "$dir/figures" | jq -c '{part, load, counted, in_time,
        late: (.latency.count - .in_time), refused, lost, wrong, unsent, p50: .latency.p50_us, p999: .latency.p999_us,
        of: [.targets[] | .in_time / .counted * 1000 | round / 1000], went, ideal, busy, batch, base, switched, notices: .notices_by_code, front_cpu_s, workers_cpu_s, report}' >&2
}

topology_up "predictable$$" 2
ip -n "$tag-lb" addr add "$host/24" dev clients
[ ! -e /proc/sys/net/bridge ] || ip netns exec "$tag-fabric" sysctl -qw net.bridge.bridge-nf-call-iptables=0
# The controller has what its sockets gain by: large segments, checksums that nobody needs. The clients' veth has none
# while Doorbell is asked.
for place in "lb fabric" "fabric lb" "fabric w1" "fabric w2" "w1 w0" "w2 w0"; do
    read -r name interface <<<"$place"
    ip netns exec "$tag-$name" ethtool -K "$interface" tx on tso on gso on gro on >/dev/null 2>&1
done
client_offload() {
    ip netns exec "$tag-client" ethtool -K c0 tx "$1" tso "$1" gso "$1" gro "$1" >/dev/null 2>&1
    ip netns exec "$tag-lb" ethtool -K clients tx "$1" tso "$1" gso "$1" gro "$1" >/dev/null 2>&1
}

for part in $only; do
    "${part}_up"
done
mapfile -t pids < <([[ " $only " != *" doorbell "* ]] || agents_pids)
for ((round = 1; round <= rounds; round++)); do
    for load in $loads; do
        for part in $only; do
            if [ "$part" = doorbell ]; then
                client_offload off
                measure doorbell "$vip" "$load" "$round" "$pid_lb" "${pids[@]}"
            else
                client_offload on
                measure controller "$host" "$load" "$round" "$pid_controller" "$pid_worker1" "$pid_worker2"
            fi
        done
    done
done
[ -z "${KEEP_LOG:-}" ] || cp "$dir/lb.log" "$KEEP_LOG"
[ -z "${KEEP_FIGURES:-}" ] || cp "$dir/figures" "$KEEP_FIGURES"
[[ " $only " != *" doorbell "* || -z "${KEEP_STATS:-}" ]] || cli --json stats >"$KEEP_STATS"
result=$(jq -s --arg commit "$commit" --arg machine "$machine" --argjson rounds "$rounds" --argjson size "$size" --argjson capacity "$capacity" '
    def median: sort | .[length / 2 | floor];
    def of($part; $load): map(select(.part == $part and .load == $load));
    def over($load; figure): [of("doorbell"; $load), of("controller"; $load)] | map(map(figure)) | transpose |
        map(select(.[0] != null and (.[1] // 0) > 0) | .[0] / .[1]);
    . as $all | (map(.load) | unique) as $loads | (map(.part) | unique) as $parts |
    ([$loads[] | . as $load |
      ($all | map(select(.load == $load))) as $any |
      {key: "ideal_\($load)pct", value: ($any | map(.ideal.in_time))},
      {key: "ideal_apart_\($load)pct", value: ($any | map(.ideal.apart))},
      {key: "bound_\($load)pct", value: ($any | map(.ideal.bound))},
      {key: "ideal_p999_ms_\($load)pct", value: ($any | map([.ideal.turns_p999_ms, .ideal.plan_p999_ms] | min))},
      {key: "ideal_apart_p999_ms_\($load)pct", value: ($any | map(.ideal.apart_p999_ms))},
      (if ($parts | length) == 2 then
        {key: "goodput_over_controller_\($load)pct", value: ($all | over($load; .in_time))},
        {key: "p999_over_controller_\($load)pct", value: ($all | over($load; .latency.p999_us))}
      else empty end),
      ($parts[] | . as $part | ($all | of($part; $load)) as $runs |
        {key: "goodput_\($part)_\($load)pct", value: ($runs | map(.in_time / .counted))},
        {key: "p999_us_\($part)_\($load)pct", value: ($runs | map(.latency.p999_us))},
        {key: "late_\($part)_\($load)pct", value: ($runs | map((.latency.count - .in_time) / .counted))},
        {key: "refused_\($part)_\($load)pct", value: ($runs | map((.counted - .latency.count) / .counted))},
        {key: "batch_\($part)_\($load)pct", value: ($runs | map(.batch))},
        (("at_once", "given_up", "ran_late") as $how |
          {key: "\($how)_\($part)_\($load)pct", value: ($runs | map(.went[$how] / .requests))}),
        {key: "goodput_over_ideal_\($part)_\($load)pct", value: ($runs | map(.in_time / .counted / .ideal.in_time))},
        {key: "device_busy_\($part)_\($load)pct", value: ($runs | map(.busy))},
        {key: "device_base_\($part)_\($load)pct", value: ($runs | map(.base))},
        {key: "switched_\($part)_\($load)pct", value: ($runs | map(.switched))},
        {key: "front_cpu_us_per_request_\($part)_\($load)pct", value: ($runs | map(.front_cpu_s * 1e6 / .requests))},
        {key: "workers_cpu_us_per_request_\($part)_\($load)pct", value: ($runs | map(.workers_cpu_s * 1e6 / .requests))},
        (select($part == "controller") |
          {key: "controller_bytes_per_request_\($load)pct", value: ($runs | map((.report.bytes_in + .report.bytes_out) / .report.requests))},
          {key: "controller_held_peak_\($load)pct", value: ($runs | map(.report.held_peak))}))]) as $series |
    {bench: "predictable", commit: $commit, machine: $machine, runs: $rounds, size: $size, capacity_rps: $capacity,
     metrics: (($series | map(.value |= median) | from_entries) +
       ([$parts[] | . as $part | ($all | map(select(.part == $part))) as $runs | ("lost", "wrong", "duplicates", "unsent") as $what |
         {key: "\($what)_\($part)", value: ($runs | map(.[$what]) | add)}] | from_entries)),
     spread: ($series | map(.value |= [min, max]) | from_entries)}' "$dir/figures")
[ -z "$json" ] || echo "$result" >"$json"
jq -r 'def short: . * 1000 | round / 1000;
    .spread as $spread | .metrics | to_entries[] |
    "\(.key) \(.value | short)" + ($spread[.key] // [] | if . == [] then "" else " (\(.[0] | short), \(.[1] | short))" end)' <<<"$result"
