# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What every net story starts with; sourced. A story is one behaviour, seen from outside: the real
# daemons in namespaces of their own, kernel sockets as clients. It exits 0 when all it expected
# came true, 1 after saying what did not, 77 with the reason when it cannot be told here.
#
#   DOORBELL_BUILD=/path/to/build tests/net/echo_v4_v6_test.sh
#
# With DOORBELL_KEEP set, a story that failed stops with everything still up, to look around.
set -euo pipefail

story=$(basename "$0" _test.sh)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=${here%/tests/net}
build=$(realpath "${DOORBELL_BUILD:-$root/build}")
vip=10.200.0.100
vip6=fd00:200::100

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

# expect_log NAME TEXT: NAME has said TEXT, or does within the wait
expect_log() {
    wait_for "'$2' in the log of $1" grep -qF -- "$2" "$dir/$1.log" || fail "$1 did not say: $2"
}

# load NAME ARGUMENTS...: doorbell-client with its figures in $dir/NAME.json. Its exit status tells
# of lost and wrong replies; stories that allow some use `|| true` and look at the figures.
load() {
    local name=$1
    shift
    client "$@" --json "$dir/$name.json" >>"$dir/$name.log" 2>&1
}

# load_start NAME ARGUMENTS...: the same in the background; load_wait NAME waits for its end, load_end
# NAME lets it send nothing more and waits for its replies.
load_start() {
    local name=$1
    shift
    start "$name" client "$build/tests/net/client/doorbell-client" "$@" --json "$dir/$name.json"
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

# record KEY VALUE: a figure for tests/bench/run.sh pool-faults, which names the file
record() {
    echo "$1 $2" >>"${STORY_FIGURES:-/dev/null}"
}

# figure NAME JQ: from the figures of a load
figure() {
    jq -r ".$2" "$dir/$1.json"
}

# expect_all NAME COUNT: COUNT requests, all answered with the right bytes
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

# drops REASON: how often, over all lcores
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

# What a build with sanitizers has to say, which some of it says at the end.
sanitizer_reports() {
    [ -n "$dir" ] && grep -E -A40 'Sanitizer: |runtime error: ' "$dir"/*.log 2>/dev/null
}

story_end() {
    local code=$? log
    trap - EXIT INT TERM
    trap '' PIPE # what was started must end even when nobody reads on
    if [ $code -ne 0 ] && [ $code -ne 77 ] && [ -n "$dir" ]; then
        for log in "$dir"/*.log; do
            [ ! -s "$log" ] || printf -- '--- %s\n%s\n' "${log##*/}" "$(tail -n 25 "$log")" >&2 || true
        done
        cli stats 2>/dev/null >&2 || true
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
