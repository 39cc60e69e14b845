# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Functions for net tests; sourced by each. A net test checks one behaviour from outside: the real
# daemons in namespaces of their own, kernel sockets as clients. It exits with 0 when every expectation
# held, with 1 after naming the one that did not, and with 77 and the reason when it cannot run here.
#
#   DOORBELL_BUILD=/path/to/build tests/net/echo_v4_v6_test.sh
#
# With DOORBELL_KEEP set, a test that failed stops with everything still up, to look around.
#
# A net test must give the same result on a busy machine: it waits for events and never for a time,
# compares what happened at the same time, and has a limit in ms only where the product promises one,
# by expect_ms. tests/net/beside.sh runs it beside other load.
set -euo pipefail

story=$(basename "$0" _test.sh)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${here%/tests/net}
build=$(realpath "${DOORBELL_BUILD:-$root/build}")
vip=10.200.0.100
vip6=fd00:200::100

# A busy machine may halt a process for a second. Then a worker is neither doubted nor lost, its queue
# pair does not give up (0.5 s x 8), and what comes to a port meanwhile finds room. Tests of how soon
# a failure is noticed set default_workers or default_fabric to nothing, which means the product's
# own times, or give theirs to topology_config.
# shellcheck disable=SC2034
default_workers="{timeout_ms: 5000, suspect_ms: 0}" default_fabric="{ack_timeout: 17}"
# shellcheck disable=SC2034
device_frames=,framecnt=4096
# device_kind=kernel in the environment runs a test over AF_XDP.
[ "${device_kind:-}" != kernel ] || device_frames=

# shellcheck source=tests/net/topology.sh
. "$here/topology.sh"

skip() {
    echo "skipped $story: $*"
    exit 77
}

fail() {
    echo "FAILED $story: $*" >&2
    exit 1
}

# expect WHAT LEFT OPERATOR RIGHT: as in test(1)
expect() {
    # shellcheck disable=SC2172
    if ! test "$2" "$3" "$4"; then
        fail "$1: '$2', expected $3 '$4'"
    fi
}

# tell_client SCRIPT ARGUMENT...: starts a client of tests/net/told.py, which tell() speaks to.
tell_client() {
    told_log=$dir/${1%.py}.log
    coproc told { exec ip netns exec "$tag-client" /usr/bin/python3 "$here/$1" "${@:2}" 2>"$told_log"; }
    told_to=${told[1]} told_from=${told[0]}
}

# tell COMMAND...: its answer is in $answer
tell() {
    echo "$*" >&"$told_to"
    read -r answer <&"$told_from" || fail "the client has ended: $(cat "$told_log")"
}

# delays: how long each thread of the processes that start made was ready to run and had no CPU, in us,
# a line "thread us" each; and what the hypervisor took from this machine.
delays() {
    local pid
    for pid in "${topology_pids[@]}"; do
        awk '{ split(FILENAME, part, "/"); print part[5], int($2 / 1000) }' \
            "/proc/$pid"/task/*/schedstat 2>/dev/null || true
    done
    awk -v hz="$(getconf CLK_TCK)" '$1 == "cpu" { print "stolen", int($9 * 1e6 / hz) }' /proc/stat
}

# watch_delays: remembers the delays so far, for expect_ms
watch_delays() {
    delays >"$dir/delays"
}

# delayed_ms: prints for how many ms threads waited for a CPU since watch_delays
delayed_ms() {
    delays | awk 'NR == FNR { was[$1] = $2; next } { us += $2 - was[$1] } END { print int(us / 1000) }' \
        "$dir/delays" -
}

# in_time WHAT TOOK LIMIT: checks that TOOK ms, counted from watch_delays, are less than LIMIT. It fails
# the test when the machine's delays do not explain the excess; when they do, there is no verdict: it
# returns 1 with the reason in $disturbed.
in_time() {
    local delayed
    [ "$2" -ge "$3" ] || return 0
    delayed=$(delayed_ms)
    [ $(($2 - delayed)) -lt "$3" ] ||
        fail "$1: $2 ms, expected less than $3; processes waited $delayed ms for a CPU meanwhile"
    disturbed="$1: $2 ms, expected less than $3, while processes waited $delayed ms for a CPU"
    return 1
}

# After a check without a verdict the test goes on, and counts as skipped in the end, with the reasons.
excuses=
excuse() {
    excuses+="${excuses:+; }$1"
}

# expect_ms WHAT TOOK LIMIT: as in_time, and notes the reason of a check without a verdict
expect_ms() {
    in_time "$@" || excuse "$disturbed"
}

# measure COMMAND...: runs COMMAND, and again when the machine disturbed it, three times at most.
# COMMAND begins with watch_delays and ends with in_time.
measure() {
    for try in 1 2 3; do
        ! "$@" || return 0
    done
    excuse "$disturbed"
}

# expect_log NAME TEXT: expects TEXT in the log of NAME, now or within the wait
expect_log() {
    wait_for "'$2' in the log of $1" grep -qF -- "$2" "$dir/$1.log" || fail "$1 did not say: $2"
}

# expect_check STATUS TEXT: expects doorbell-lb --check of the configuration to end with STATUS and print TEXT
expect_check() {
    local code=0
    "$build/doorbell-lb" --config "$dir/lb.yaml" --check >"$dir/check" 2>&1 || code=$?
    expect "exit status of --check" "$code" -eq "$1"
    grep -qF -- "$2" "$dir/check" || fail "--check says: $(cat "$dir/check")"
}

# load NAME COMMAND ARGUMENTS...: runs doorbell-client with its figures in $dir/NAME.json. Its exit
# status tells of lost and wrong replies; tests that allow some use `|| true` and check the figures. A
# request without an answer within 10 s is lost, unless ARGUMENTS say otherwise.
load() {
    local name=$1 command=$2
    shift 2
    client "$command" --timeout-ms 10000 "$@" --json "$dir/$name.json" >>"$dir/$name.log" 2>&1
}

# load_start NAME ARGUMENTS...: the same in the background; load_wait NAME waits for its end, load_end
# NAME stops its sending and waits for its replies.
load_start() {
    local name=$1 command=$2
    shift 2
    start "$name" client "$build/tests/net/client/doorbell-client" "$command" --timeout-ms 10000 "$@" \
        --json "$dir/$name.json"
}

load_wait() {
    local p=pid_$1
    while is_running "${!p}"; do
        sleep 0.05
    done
    stop "${!p}"
}

load_end() {
    local p=pid_$1
    is_running "${!p}" || fail "the load $1 ended by itself"
    kill "${!p}"
    load_wait "$1"
}

# record KEY VALUE: writes a figure for tests/bench/run.sh pool-faults, which names the file
record() {
    echo "$1 $2" >>"${STORY_FIGURES:-/dev/null}"
}

# figure NAME JQ: prints one of the figures of a load
figure() {
    jq -r ".$2" "$dir/$1.json"
}

# expect_all NAME COUNT: expects COUNT requests, all answered with the right bytes
expect_all() {
    [ -s "$dir/$1.json" ] || fail "the client wrote no figures: $(tail -n 3 "$dir/$1.log")"
    expect "$1: requests" "$(figure "$1" requests)" -eq "$2"
    expect_none_lost "$1"
}

expect_none_lost() {
    local what
    [ -s "$dir/$1.json" ] || fail "the client wrote no figures: $(tail -n 3 "$dir/$1.log")"
    for what in lost refused wrong duplicates unreachable; do
        expect "$1: $what" "$(figure "$1" $what)" -eq 0
    done
    expect "$1: answered" "$(figure "$1" answered)" -eq "$(figure "$1" requests)"
}

# drops REASON: prints the number of drops for REASON, over all lcores
drops() {
    cli --json stats --all | jq "[.lcores[].drops.$1 // 0] | add"
}

worker_known() {
    cli workers show "$1" >/dev/null 2>&1
}

# requests_above W N
requests_above() {
    [ "$(worker "$1" requests)" -gt "$2" ]
}

# fault_wire W OPTIONS...: instead of the bridge, a bad wire joins the load balancer and worker W.
# Its process is $pid_wire_W; SIGUSR1 cuts the wire, SIGUSR2 mends it.
fault_wire() {
    local w=$1
    shift
    ip -n "$tag-fabric" link set lb nomaster
    ip -n "$tag-fabric" link set "$w" nomaster
    start "wire-$w" fabric "$build/tests/rdma/fault-wire" "$@" lb "$w"
    expect_log "wire-$w" ready
}

# Prints the reports of sanitizers, some of which come at the end of a process; false if there are none.
sanitizer_reports() {
    [ -n "$dir" ] && grep -E -A40 'Sanitizer: |runtime error: ' "$dir"/*.log 2>/dev/null
}

story_end() {
    local code=$? log
    trap - EXIT INT TERM
    if [ $code -eq 0 ] && [ -n "$excuses" ]; then
        echo "skipped $story: the machine was too busy: $excuses"
        code=77
    fi
    trap '' PIPE # the processes must be ended even when the reader of the output has gone
    if [ $code -ne 0 ] && [ $code -ne 77 ] && [ -n "$dir" ]; then
        for log in "$dir"/*.log; do
            [ ! -s "$log" ] || printf -- '--- %s\n%s\n' "${log##*/}" "$(tail -n 25 "$log")" >&2 || true
        done
        cli stats >&2 2>/dev/null || true
        if [ -n "${DOORBELL_KEEP:-}" ]; then
            echo "kept: $dir, namespaces $tag-*; Enter ends" >&2
            read -r || true
        fi
    fi
    topology_stop
    if sanitizer_reports >&2; then
        code=1
    fi
    topology_down
    exit $code
}

[ "$(id -u)" -eq 0 ] || skip "needs root for network namespaces"
for program in doorbell-lb gpu-agent/doorbell-agent control/doorbell; do
    [ -x "$build/$program" ] || fail "$build/$program is not built"
done
trap story_end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# certificate NAME: $dir/NAME.pem and NAME.key, signed by the authority of the story ($dir/ca.pem), for the services' address
certificate() {
    [ -f "$dir/ca.pem" ] ||
        openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=authority -days 2 -keyout "$dir/ca.key" -out "$dir/ca.pem" 2>/dev/null
    openssl req -newkey rsa:2048 -nodes -subj "/CN=$1" -keyout "$dir/$1.key" -out "$dir/$1.csr" 2>/dev/null
    openssl x509 -req -in "$dir/$1.csr" -CA "$dir/ca.pem" -CAkey "$dir/ca.key" -CAcreateserial -days 2 \
        -extfile <(echo "subjectAltName=IP:$vip") -out "$dir/$1.pem" 2>/dev/null
    chmod 600 "$dir/$1.key"
}
