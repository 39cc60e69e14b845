#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A real doorbell-lb, a real doorbell-agent and a client, joined by memif: no network interface, no
# namespace and no packet of the kernel's is needed (agents register over TCP on 127.0.0.1).
#
#   e2e.sh [options]
#
#   --window N          requests without a reply, all flows together, 1,024 per thread at most; 1 measures latency [1]
#   --size BYTES        of an echo request, 12 to 9188 [1024]
#   --requests N        [100000]         --runs N   [1]
#   --flows N           UDP flows [64]   --timeout-ms MS   then a request is lost [1000]
#   --lcores N          of the load balancer: every port has a queue for each [1]
#   --threads N         of the client, each with a queue of its port and its share of flows and window [--lcores]
#   --workers N         on CPUs, or --gpus 0,1,... on GPUs: a process each, with a memif and a software RNIC of
#                       its own [one, on a GPU if there is one]
#   --model NAME|PATH   a plug-in in models/, or anywhere. What begins with mlp gets pictures of digits, whose answers
#                       are compared with those of mlp.so, others get echo requests [echo]
#   --form-only         of digits: check the form of answers and count the right ones; for models
#                       that round differently
#   --agent-args TEXT   more arguments for doorbell-agent; words as in a shell
#   --idle poll|sleep   threads without work spin, or leave the CPU [poll if there are 4 CPUs]
#   --fabric-mtu BYTES  [4200]
#   --lb-cpu LIST, --client-cpu LIST, --agent-cpus LIST   where they run [cores of their own]
#   --no-huge           4 KiB pages; also when hugepages cannot be had
#   --smoke             2,000 requests
#   --json FILE, --commit TEXT, --machine TEXT, --progress
#   --fault KIND        kill, halt, or trap (the model traps, by --agent-args): in the middle of the run one of
#                       several workers fails. Then the run fails unless no request was lost (what that worker had
#                       gets notices), the others went on, and it came back and serves
#   --leave idle|batch  no figures: the load balancer is killed, with a request in the worker's hands or none, and the
#                       agent told to end; the run fails unless it does within 1 s, or of its batch's end (it takes 2 s)
#   --hogs              neighbours that copy memory to and fro, a thread on each CPU of the agents but one for each
#                       software RNIC (bench-hogs): what a tail is worth beside other work
#   --stats             print the load balancer's counters, too
#   --keep-logs DIR     copy configuration and logs there
#
# The programs lie beside this script (tests/bench/run.sh bundle), or in BUILD, a build directory.
# Exits 1 when a reply was lost or wrong.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ -x "$here/doorbell-lb" ]; then
    lb=$here/doorbell-lb agent=$here/doorbell-agent cli=$here/doorbell client=$here/bench-e2e hogs_program=$here/bench-hogs
    models=$here/models digits=$here/digits hugepages_sh=$here/hugepages.sh
else
    root=$(cd "$here/../../.." && pwd)
    build=$(cd "${BUILD:-$root/build-bench}" && pwd)
    lb=$build/doorbell-lb agent=$build/gpu-agent/doorbell-agent cli=$build/control/doorbell
    client=$build/tests/bench/bench-e2e hogs_program=$build/tests/bench/bench-hogs
    models=$build/gpu-agent/models digits=$root/gpu-agent/models/digits
    hugepages_sh=$root/tests/bench/hugepages.sh
fi
# shellcheck source=tests/bench/hugepages.sh
. "$hugepages_sh"

vip=10.200.0.100 port=8500
size=1024 window=1 model=echo form_only=no idle='' fabric_mtu=4200 huge=yes
stats=no hogs=no fault='' leave='' timeout_ms=10000 lcores=1 threads='' workers=1 gpus='' lb_cpu='' client_cpu='' agent_cpus='' agent_text='' keep_logs='' machine='' commit=''
lease_ms=5000 client_args=() agent_args=() pids=() dir=''

usage() {
    sed -n '4,/^[^#]/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit "$1"
}

while [ $# -gt 0 ]; do
    case $1 in
    --no-huge) huge=no ;;
    --stats) stats=yes ;;
    --hogs) hogs=yes ;;
    --form-only) form_only=yes ;;
    # A short lease, so that a run sees renewals.
    --smoke) client_args+=(--requests 2000 --timeout-ms 5000) lease_ms=1000 ;;
    --progress) client_args+=("$1") ;;
    -h | --help) usage 0 ;;
    --*)
        [ $# -gt 1 ] || usage 2 >&2
        case $1 in
        --window) window=$2 client_args+=("$1" "$2") ;;
        --size) size=$2 client_args+=("$1" "$2") ;;
        --requests | --runs | --flows | --timeout-ms | --json) client_args+=("$1" "$2") ;;
        --fault) fault=$2 timeout_ms=500 ;;
        --leave) leave=$2 ;;
        --lcores) lcores=$2 ;;
        --threads) threads=$2 ;;
        --workers) workers=$2 ;;
        --gpus) gpus=$2 ;;
        --model) model=$2 ;;
        --agent-args) agent_text=$2 ;;
        --idle) idle=$2 ;;
        --fabric-mtu) fabric_mtu=$2 ;;
        --lb-cpu) lb_cpu=$2 ;;
        --client-cpu) client_cpu=$2 ;;
        --agent-cpus) agent_cpus=$2 ;;
        --commit) commit=$2 ;;
        --machine) machine=$2 ;;
        --keep-logs) keep_logs=$2 ;;
        *) usage 2 >&2 ;;
        esac
        shift
        ;;
    *) usage 2 >&2 ;;
    esac
    shift
done

die() {
    echo "e2e: $*" >&2
    exit 1
}

# --- processes ------------------------------------------------------------------------------------

# is_running PID: and not merely waiting for its exit status to be read
is_running() {
    local state
    { read -r state <"/proc/$1/stat"; } 2>/dev/null || return 1
    state=${state##*) }
    [ "${state%% *}" != Z ]
}

# start NAME COMMAND...: in the background, output to $dir/NAME.log, process id in $pid
start() {
    local name=$1
    shift
    "$@" >"$dir/$name.log" 2>&1 </dev/null &
    pid=$!
    pids+=("$pid")
}

# The last started first; who does not end when asked to is killed.
stop_all() {
    local i p end
    for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
        p=${pids[i]} end=$((SECONDS + 5))
        kill "$p" 2>/dev/null || true
        while is_running "$p" && ((SECONDS <= end)); do
            sleep 0.02
        done
        kill -KILL "$p" 2>/dev/null || true
        wait "$p" 2>/dev/null || true
    done
    pids=()
}

finish() {
    local code=$? log
    trap - EXIT
    trap '' INT TERM HUP PIPE
    set +e # the rest must run after any error, and when the reader of the output has gone
    stop_all
    if [ $code -ne 0 ] && [ $code -lt 128 ] && [ -n "$dir" ]; then
        for log in "$dir"/*.log; do
            [ ! -s "$log" ] || printf -- '--- %s\n%s\n' "${log##*/}" "$(tail -n 15 "$log")" >&2
        done
    fi
    if [ -n "$keep_logs" ] && [ -n "$dir" ]; then
        mkdir -p "$keep_logs"
        cp "$dir"/lb.yaml "$dir"/*.log "$keep_logs/"
    fi
    [ -z "$dir" ] || rm -rf "$dir"
    give_back_hugepages
    exit $code
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

# wait_for SECONDS WHAT PID COMMAND...: until it succeeds; false when process PID ends before
wait_for() {
    local end=$((SECONDS + $1)) what=$2 pid=$3
    shift 3
    until "$@" >/dev/null 2>&1; do
        is_running "$pid" || return 1
        ((SECONDS <= end)) || die "timed out waiting for $what"
        sleep 0.05
    done
}

# --- where things run ------------------------------------------------------------------------------

# The CPUs that we may use: a line of first threads of cores, and one of second ones.
cpus() {
    local c first firsts=() seconds=() list
    list=$(taskset -cp $$)
    for c in $(echo "${list##*: }" | tr ',' '\n' | while IFS=- read -r a b; do seq "$a" "${b:-$a}"; done); do
        first=$c
        read -r first 2>/dev/null <"/sys/devices/system/cpu/cpu$c/topology/thread_siblings_list" || true
        if [ "${first%%[,-]*}" = "$c" ]; then
            firsts+=("$c")
        else
            seconds+=("$c")
        fi
    done
    echo "${firsts[@]}"
    echo "${seconds[@]}"
}

# Every lcore and every thread of the client that was not given a CPU gets a core of its own, the agents all
# that are left; where a worker would have fewer than two, the client and the agents share all. Second threads
# are used when there are too few cores.
choose_cpus() {
    local c left=() all lines needed=$((lcores + threads + 2 * workers))
    mapfile -t lines <<<"$(cpus)"
    read -ra all <<<"${lines[0]}"
    [ ${#all[@]} -gt $needed ] || read -ra all <<<"${lines[*]}"
    if [ -z "$idle" ]; then
        ((${#all[@]} < needed)) && idle="sleep" || idle="poll"
    fi
    for c in "${all[@]}"; do
        [[ ,$lb_cpu,$client_cpu, == *,$c,* ]] || left+=("$c")
    done
    if [ -z "$lb_cpu" ]; then
        lb_cpu=$(IFS=, && echo "${left[*]:0:lcores}")
        left=("${left[@]:lcores}")
    fi
    if [ ${#all[@]} -ge $needed ] && [ -z "$client_cpu" ]; then
        client_cpu=$(IFS=, && echo "${left[*]:0:threads}")
        left=("${left[@]:threads}")
    fi
    if [ ${#all[@]} -ge $needed ] && [ -z "$agent_cpus" ]; then
        agent_cpus=$(IFS=, && echo "${left[*]}")
    fi
}

# on CPUS COMMAND...
on() {
    local cpus=$1
    shift
    if [ -n "$cpus" ]; then
        exec taskset -c "$cpus" "$@"
    fi
    exec "$@"
}

# --- the parts --------------------------------------------------------------------------------------

# A fabric port per worker, in a subnet of its own.
fabric_ports() {
    local n
    for n in "${numbers[@]}"; do
        cat <<END
  - name: fabric$n
    device: "net_memif_fabric$n,role=server,socket=$tag-fabric$n,rsize=10"
    roles: [fabric]
    queues: $lcores
    mtu: $fabric_mtu
    address: 10.201.$n.1/24
END
    done
}

write_config() {
    cat >"$dir/lb.yaml" <<END
ports:
  - name: clients
    device: "net_memif_clients,role=server,socket=$tag-clients,rsize=10"
    roles: [clients]
    queues: $lcores
    mtu: $mtu
$(fabric_ports)
services:
  - {name: e2e, address: $vip, port: $port, model: $model, max_request: $longest, max_reply: $longest}
lcores: [$lb_cpu]
idle: $idle
flows: 131072
memory: {mb: $lb_mb, hugepages: $([ $huge = yes ] && echo true || echo false)}
control: {socket: "$dir/control.sock", agents: "127.0.0.1:$agents_port"}
# A busy machine is not a dead worker.
workers: {timeout_ms: $timeout_ms, lease_ms: $lease_ms}
END
}

control() {
    "$cli" --socket "$dir/control.sock" "$@"
}

# On the first free port for agents.
start_lb() {
    local attempt
    for attempt in 1 2 3 4 5; do
        agents_port=$((20000 + RANDOM % 12000))
        write_config
        start lb "$lb" --config "$dir/lb.yaml"
        if wait_for 30 "the load balancer" "$pid" control version; then
            lb_pid=$pid
            return
        fi
        grep -qi 'in use' "$dir/lb.log" || break
    done
    die "the load balancer did not start (attempt $attempt)"
}

start_agent() {
    local n=${numbers[0]} where=()
    [ -z "$gpus" ] || where=(--gpu "$gpus")
    if [ ${#numbers[@]} -gt 1 ]; then
        n='{n}'
        [ -n "$gpus" ] || where=(--workers "$workers")
    fi
    start agent on "$agent_cpus" "$agent" --lb "127.0.0.1:$agents_port" --name e2e "${where[@]}" \
        --device "net_memif_agent$n,role=client,socket=$tag-fabric$n,rsize=10,bsize=$((fabric_mtu + 64))" \
        --address "10.201.$n.11/24" --queues "$lcores" --mtu "$fabric_mtu" --model "$plugin" "${agent_args[@]}"
    agent_pid=$pid
    wait_for 120 "the agents" "$agent_pid" all_are_active || die "the agent ended"
}

all_are_active() {
    [ "$(control workers list | grep -c ' active ')" -eq ${#numbers[@]} ]
}

run_client() {
    # In the background, so that a signal is acted upon at once.
    on "$client_cpu" "$client" --to "$vip:$port" \
        --device "net_memif_client,role=client,socket=$tag-clients,rsize=10,bsize=$((mtu + 64))" \
        "${client_args[@]}" </dev/null &
    pid=$!
    pids+=("$pid")
    wait "$pid"
}

# Neighbours on the agents' CPUs: all but one for each software RNIC, which spins.
start_hogs() {
    local list cpus
    [[ $agent_cpus != *-* ]] || die "--hogs: write --agent-cpus one by one, as 2,3,4"
    IFS=, read -ra cpus <<<"$agent_cpus"
    list=("${cpus[@]:workers}")
    [ ${#list[@]} -gt 0 ] || die "--hogs: the agents have no CPU of their own that is left; it takes $((lcores + threads + 2 * workers + 1)) CPUs"
    start hogs "$hogs_program" "${list[@]}"
    wait_for 60 "the hogs" "$pid" grep -q ready "$dir/hogs.log" || die "the hogs ended: $(cat "$dir/hogs.log")"
    echo "hogs: a thread on each of the CPUs ${list[*]}"
}

# CPU time of the workers' threads so far, us: of their software RNICs, each of which is DPDK's one lcore beside
# the main thread, and of all others. None of them ends before its process does. Not every kernel says.
agent_cpu() {
    local task name ns rnic=0 others=0 pid=$agent_pid processes=()
    [ ${#numbers[@]} -eq 1 ] || read -r pid <"/proc/$agent_pid/task/$agent_pid/children" 2>/dev/null || return 1
    read -ra processes <<<"$pid"
    for task in $(printf '/proc/%s/task/* ' "${processes[@]}"); do
        { read -r name <"$task/comm" && read -r ns _ <"$task/schedstat"; } 2>/dev/null || return 1
        case $name in
        rte-worker* | dpdk-worker*) rnic=$((rnic + ns / 1000)) ;;
        *) others=$((others + ns / 1000)) ;;
        esac
    done
    echo "$rnic $others"
}

# say_agent_cpu WHEN BEFORE MICROSECONDS: what it took since then
say_agent_cpu() {
    local rnic others rnic_now others_now now when=$1
    shift
    if [ -z "$1" ] || ! now=$(agent_cpu); then
        echo "agent's CPU time: unknown, this kernel has no /proc/PID/task/TID/schedstat"
        return
    fi
    read -r rnic others <<<"$1"
    read -r rnic_now others_now <<<"$now"
    echo "agent's CPU time $when, of $2 us: software RNIC $((rnic_now - rnic)) us, all else $((others_now - others)) us"
}

# --- one of several workers fails -------------------------------------------------------------------

# started NAME: the process ids that worker NAME has had, oldest first
started() {
    sed -n "s/.* worker=$1 pid=\([0-9]*\) address=.* started\$/\1/p" "$dir/agent.log"
}

# of_worker NAME FIELD: one of the numbers of doorbell workers show
of_worker() {
    control --json workers show "$1" | grep -oE "\"$2\": ?[0-9]+" | grep -oE '[0-9]+$' | head -n 1
}

has_served() {
    [ "$(of_worker "$1" requests)" -gt "$2" ]
}

# Makes the first worker fail when it is at work.
cause_fault() {
    local name
    name=$(control workers list | awk 'NR > 1 { print $1 }' | sort | head -n 1)
    wait_for 60 "requests on $name" "$lb_pid" has_served "$name" 20000
    case $fault in
    kill) kill -KILL "$(started "$name" | tail -n 1)" ;;
    halt) kill -STOP "$(started "$name" | tail -n 1)" ;;
    esac
}

# Checks what became of the workers, after the run.
check_fault() {
    local name victims=0
    wait_for 60 "all workers to be back" "$agent_pid" all_are_active
    for name in $(control workers list | awk 'NR > 1 { print $1 }'); do
        case $(started "$name" | wc -l) in
        1) [ "$(of_worker "$name" lost)" -eq 0 ] || die "$name, which did not fail, has lost requests" ;;
        *) victims=$((victims + 1)) victim=$name ;;
        esac
    done
    [ $victims -eq 1 ] || die "$victims workers have failed"
    grep "worker=$victim .*\(ended by\|killed\|sign of life\)" "$dir/agent.log" || true
    client_args+=(--requests 100000 --json "$dir/after.json")
    run_client || die "requests were lost after the fault"
    has_served "$victim" 1000 || die "$victim is back and does not serve"
}

# --- the load balancer is killed --------------------------------------------------------------------

# Ends the agent without a load balancer, and says how long that took.
leave_alone() {
    local least_ms=0 most_ms=1000 log="nothing is in hand" began_ms took_ms status=0
    if [ "$leave" = batch ]; then
        least_ms=1000 most_ms=3000 log="ran requests=1 "
        run_client >"$dir/client.log" 2>&1 &
        wait_for 60 "a request on the worker" "$agent_pid" has_served e2e 0
    fi
    kill -KILL "$lb_pid"
    began_ms=${EPOCHREALTIME/[.,]/}
    kill -TERM "$agent_pid"
    wait "$lb_pid" 2>/dev/null || true
    while is_running "$agent_pid" && ((${EPOCHREALTIME/[.,]/} - began_ms < 10000000)); do
        sleep 0.005
    done
    took_ms=$(((${EPOCHREALTIME/[.,]/} - began_ms) / 1000))
    ! is_running "$agent_pid" || die "the agent has not ended after $took_ms ms"
    wait "$agent_pid" || status=$?
    echo "leave $leave: the agent ended after $took_ms ms, exit status $status"
    grep -E "nothing is in hand|ran requests=" "$dir/agent.log" || true
    [ $status -eq 0 ] && ((took_ms >= least_ms && took_ms < most_ms)) && grep -q "$log" "$dir/agent.log" ||
        die "that is not as it must be"
}

# What is asked for, as arguments of all.
arrange() {
    local pages
    case $model in
    */*) plugin=$model model=$(basename "$model" .so) ;;
    *) plugin=$models/$model.so ;;
    esac
    [ -r "$plugin" ] || die "the model $model is not here: $plugin"
    case $model in
    mlp*)
        longest=72
        agent_args=(--model-args "weights=$digits/digits.safetensors")
        client_args+=(--data "$digits/digits.bin")
        [ $form_only = yes ] ||
            client_args+=(--model "$models/mlp.so" --weights "$digits/digits.safetensors")
        ;;
    *)
        longest=$((size > 1472 ? size : 1472))
        agent_args=(--model-args "max_request=$longest")
        ;;
    esac
    mtu=$((longest > 1472 ? longest + 28 : 1500))
    # Each lcore has packets for each of its ports' queues.
    lb_mb=$(((mtu > 4200 || fabric_mtu > 4200 ? 768 : 448) + (lcores * ${#numbers[@]} - 1) * 192))
    agent_mb=$((128 + (lcores - 1) * 32))
    agent_args+=(--memory-mb "$agent_mb")
    [[ ! $agent_text =~ --memory-mb[=\ ]+([0-9]+) ]] || agent_mb=${BASH_REMATCH[1]}
    [ "$idle" = sleep ] && client_args+=(--yield) || agent_args+=(--busy-poll)
    client_args+=(--threads "$threads")
    # One ring has to hold a thread's part of a window, and the default is 256.
    [ $((window / lcores)) -le 256 ] || agent_args+=(--slots 1024)
    # and the client's
    pages=$(((lb_mb + agent_mb * ${#numbers[@]} + 96 + (threads - 1) * 32) / 2 + 8))
    if [ $huge = yes ] && ! take_hugepages $pages; then
        echo "no hugepages to be had: running on 4 KiB pages" >&2
        huge=no
    fi
    [ $huge = yes ] || { client_args+=(--no-huge) && agent_args+=(--no-hugepages); }
    [ "$leave" != batch ] || agent_args+=(--model-args "max_request=$longest,kernel=1,delay_us=2000000" --max-run-ms 4000)
    # As a shell would split it, but nothing in it is run.
    [ -z "$agent_text" ] || mapfile -t -O ${#agent_args[@]} agent_args < <(xargs -n 1 <<<"$agent_text")
}

for program in "$lb" "$agent" "$cli" "$client"; do
    [ -x "$program" ] || die "$program is not there"
done
[ -n "$commit" ] || commit=$(cat "$here/commit" 2>/dev/null || echo unknown)
client_args+=(--commit "$commit" --machine "${machine:-$(machine)}")
tag=doorbell-e2e-$$
dir=$(mktemp -d "${TMPDIR:-/tmp}/$tag.XXXXXX")
# Where DPDK puts its sockets.
export RUNTIME_DIRECTORY=$dir
[ -n "$threads" ] || threads=$((lcores < window ? lcores : window))
if [ -n "$gpus" ]; then
    IFS=, read -ra numbers <<<"$gpus"
else
    mapfile -t numbers < <(seq 0 $((workers - 1)))
fi
workers=${#numbers[@]}
choose_cpus
arrange
start_lb
start_agent
case $leave in
'') ;;
idle | batch)
    leave_alone
    exit 0
    ;;
*) usage 2 >&2 ;;
esac
case $fault in '' | trap) ;; kill | halt) cause_fault & ;; *) usage 2 >&2 ;; esac
[ $hogs = no ] || start_hogs
status=0
before=$(agent_cpu) || before=''
began=${EPOCHREALTIME/[.,]/}
run_client || status=$?
echo "idle: $idle; CPUs: load balancer $lb_cpu, client ${client_cpu:-any}, agent ${agent_cpus:-any}${agent_text:+; agent: $agent_text}"
is_running "$lb_pid" || die "the load balancer ended during the run"
is_running "$agent_pid" || die "the agent ended during the run"
if [ -z "$fault" ]; then
    say_agent_cpu "while the client ran" "$before" $((${EPOCHREALTIME/[.,]/} - began))
    before=$(agent_cpu) || before=''
    began=${EPOCHREALTIME/[.,]/}
    sleep 1
    say_agent_cpu "in a second without requests" "$before" $((${EPOCHREALTIME/[.,]/} - began))
else
    check_fault
fi
control workers list
[ $stats = no ] || control stats
exit $status
