#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs net tests while N other processes use the CPUs all the time, to find the tests whose result
# depends on how busy the machine is.
#
#   tests/net/beside.sh N [--times T] TEST...
#
#   N          processes that only count, each at the priority of the test; 0 is allowed
#   --times T  each test T times (default 1)
#   TEST       the path of a *_test.sh, or its name: drain, pool_live
#
# Prints one line per run and the output of a run that failed. Each run has the time limit that it
# has in deploy/test.sh. Exit status 1 if any run failed.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
limit_s=300

usage() {
    sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit 2
}

# A burner ends with this script, also when the script is killed.
burn() {
    local i
    while kill -0 $$ 2>/dev/null; do
        for ((i = 0; i < 100000; i++)); do :; done
    done
}

burners=()
finish() {
    local code=$?
    trap - EXIT
    [ ${#burners[@]} -eq 0 ] || kill "${burners[@]}" 2>/dev/null
    [ -z "${test_pid:-}" ] || kill "$test_pid" 2>/dev/null
    wait
    rm -f "${log:-}"
    exit $code
}

# path_of TEST
path_of() {
    local paths
    if [ -x "$1" ]; then
        realpath "$1"
        return
    fi
    mapfile -t paths < <(find "$root/tests" -name "${1}_test.sh" -perm -u+x)
    [ ${#paths[@]} -gt 0 ] || {
        echo "beside.sh: no test is named '$1'; tests are NAME_test.sh below tests/" >&2
        exit 2
    }
    echo "${paths[0]}"
}

[[ ${1:-} =~ ^[0-9]+$ ]] || usage
n=$1 times=1
shift
if [ "${1:-}" = --times ]; then
    [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || usage
    times=$2
    shift 2
fi
[ $# -gt 0 ] || usage
paths=()
for name in "$@"; do
    path=$(path_of "$name")
    paths+=("$path")
done

trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
log=$(mktemp /tmp/beside.XXXXXX)
for ((i = 0; i < n; i++)); do
    burn &
    burners+=("$!")
done

failed=0
for path in "${paths[@]}"; do
    name=$(basename "$path" _test.sh)
    for ((i = 1; i <= times; i++)); do
        began=$SECONDS status=0
        timeout -k 15 $limit_s "$path" >"$log" 2>&1 </dev/null &
        test_pid=$!
        wait $test_pid || status=$?
        test_pid=
        case $status in
        0) verdict=ok ;;
        77) verdict=skipped ;;
        124) verdict="FAILED after the limit of $limit_s s" ;;
        *) verdict="FAILED with status $status" ;;
        esac
        echo "$name, run $i of $times beside $n: $verdict in $((SECONDS - began)) s: $(tail -n 1 "$log")"
        if [ $status -ne 0 ] && [ $status -ne 77 ]; then
            failed=1
            sed 's/^/    /' "$log"
        fi
    done
done
exit $failed
