#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Installs what is missing, builds, and runs every test there is:
#
#   unit     unit tests, built with warnings as errors
#   asan     the same under AddressSanitizer and UndefinedBehaviorSanitizer
#   race     threads against each other under ThreadSanitizer
#   fuzz     each fuzzer for 5 seconds, from its corpus; FUZZ_SEED=N: another order than 1's
#   story    each story of tests/net (and other folders' *_test.sh), against the release build; up to
#            three at a time those that say `# Runs beside another`
#   demo     deploy/demo.sh, and the figures that it writes
#
# While the stories run, the builds of asan, race and fuzz use what CPU time is left: their priority is the lowest that
# there is (SCHED_IDLE). What came of each is told under its name, as asan/build, where its tests begin.
#
#   deploy/test.sh [--quick] [--only PATTERN]
#
#   --quick          unit and story only
#   --only PATTERN   only tests whose name, such as unit/lb_parse or story/drain, has PATTERN in it
#                    (an extended regular expression)
#
# The last line counts: N passed, N failed, N skipped. Exit status 1 if any failed. What is skipped
# says why. Needs root on Debian 12 or 13.
set -euo pipefail
shopt -s extglob

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
kinds="unit asan race fuzz story demo" only=. targets=
while [ $# -gt 0 ]; do
    case $1 in
    --quick) kinds="unit story" ;;
    --only)
        only=${2:?--only needs a pattern}
        # A pattern that starts with a kind spares the builds of the others.
        [[ ! $only =~ ^\^?(unit|asan|race|fuzz|story|demo)(/|$) ]] || kinds=${BASH_REMATCH[1]}
        shift
        ;;
    *)
        sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit 2
        ;;
    esac
    shift
done

# A net test that takes longer hangs. tests/net/beside.sh has the same limit.
story_limit_s=300
passed=0 failed=0 skipped=0
failures=()
logs=$(mktemp -d /tmp/doorbell-test.XXXXXX)
builder=
finish() {
    local code=$?
    trap - EXIT
    [ -z "$builder" ] || kill -- -"$builder" 2>/dev/null || true
    jobs -p | xargs -r kill 2>/dev/null || true
    wait
    rm -rf "$logs"
    exit $code
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

title() {
    printf '\n== %s (%d s)\n' "$*" "$SECONDS"
}

# verdict NAME STATUS LOG [COUNT]: status 0 passed, 77 skipped, anything else failed. COUNT: how many
# test cases that were; without it one, that ends with a line worth printing.
verdict() {
    case $2 in
    0)
        passed=$((passed + ${4:-1}))
        echo "ok      $1: ${4:-$(tail -n 1 "$3")}"
        ;;
    77)
        skipped=$((skipped + 1))
        echo "skipped $1: $(tail -n 1 "$3")"
        ;;
    *)
        failed=$((failed + 1))
        failures+=("$1")
        printf 'FAILED  %s (status %s)\n' "$1" "$2"
        tail -n 120 "$3" | sed 's/^/    /'
        ;;
    esac
}

wanted() {
    [[ " $kinds " == *" ${1%%/*} "* && $1 =~ $only ]]
}

# configure_and_build FOLDER MESON-OPTIONS...: $targets, or everything
configure_and_build() {
    local folder=$root/$1
    shift
    if [ ! -f "$folder/build.ninja" ]; then
        meson setup "$folder" "$root" "$@" || return
    else
        meson configure "$folder" "$@" >/dev/null || return
    fi
    # shellcheck disable=SC2086
    ninja -C "$folder" $targets
}

# build KIND: what it says goes to $logs/build-KIND, then its exit status to $logs/built-KIND.
build() {
    local status=0
    case $1 in
    unit) configure_and_build build --buildtype=release -Dwerror=true ;;
    asan)
        configure_and_build build-asan --buildtype=debugoptimized -Dwerror=true -Dcuda=disabled -Dbenches=false \
            -Db_sanitize=address,undefined -Db_lundef=false
        ;;
    race)
        targets=race configure_and_build build-tsan --buildtype=debugoptimized -Dwerror=true \
            -Db_sanitize=thread -Db_lundef=false
        ;;
    fuzz)
        CC=clang targets=fuzz configure_and_build build-fuzz --buildtype=debugoptimized -Dfuzz=true -Dcuda=disabled \
            -Dtests=false -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-fsanitize=fuzzer-no-link
        ;;
    esac >"$logs/build-$1" 2>&1 || status=$?
    echo $status >"$logs/built-$1"
}

# The builds that come later, one after the other, with the CPU time that nothing else of this session wants. Its own
# process group, so that a signal reaches all of it.
build_ahead() {
    set -m
    (
        chrt --idle --pid 0 "$BASHPID" || exit
        for kind in asan race fuzz; do
            ! may_build $kind || build $kind
        done
    ) >"$logs/ahead" 2>&1 </dev/null &
    builder=$!
    set +m
}

# may_build KIND
may_build() {
    [[ $kinds == *$1* ]] && { [ "$1" != fuzz ] || command -v clang >/dev/null; }
}

# build_or_fail KIND: what build_ahead has not built is built now.
build_or_fail() {
    local status
    title "build $1"
    if [ -n "$builder" ]; then
        wait "$builder" || true
        builder=
    fi
    [ -f "$logs/built-$1" ] || build "$1"
    status=$(cat "$logs/built-$1")
    verdict "$1/build" "$status" "$logs/build-$1"
    return "$status"
}

# meson_tests KIND FOLDER: the tests of a build folder, which names suites where it has several
meson_tests() {
    local kind=$1 folder=$root/$2 names name status count
    mapfile -t names < <(meson test -C "$folder" --no-rebuild --list 2>/dev/null |
        sed 's/^.* \/ //' | while read -r name; do
        ! wanted "$kind/$name" || echo "$name"
    done)
    [ ${#names[@]} -gt 0 ] || return 0
    title "$kind: ${#names[@]} programs"
    rm -f "$folder/meson-logs/testlog.json"
    # One more than there are CPUs: some of them wait most of the time.
    meson test -C "$folder" --no-rebuild -t 4 --num-processes $(($(nproc) + 1)) "${names[@]}" \
        >"$logs/meson" 2>&1 </dev/null || true
    while read -r name status count; do
        jq -r --arg name "$name" 'select(.name | sub("^.* / "; "") == $name)
            | "\(.stdout // "")\n\(.stderr // "")"' "$folder/meson-logs/testlog.json" |
            grep . >"$logs/output" || true
        verdict "$kind/$name" "$status" "$logs/output" "$count"
    done < <(meson_results "$folder/meson-logs/testlog.json")
}

# A line per test: name, exit status (77: skipped), and its cases, as Criterion counts them; 1 for
# a program that does not.
meson_results() {
    jq -r '[(.name | sub("^.* / "; "")), ({OK: 0, EXPECTEDFAIL: 0, SKIP: 77}[.result] // 1),
        ([(.stdout, .stderr) // "" | match("Tested: \\D*(\\d+)").captures[0].string][0] // 1)]
        | join(" ")' "$1"
}

# Commands that run side by side. Each has its name in running, by process, until it has ended, and in queue until its verdict is told.
running=() queue=()
declare -A began=() result=()

# start NAME COMMAND...
start() {
    local name=$1
    shift
    "$@" >"$logs/${name//\//-}" 2>&1 </dev/null &
    running[$!]=$name
    queue+=("$name")
    began[$name]=$SECONDS
}

# at_most N: until no more than N are running. Verdicts come in the order of the starts.
at_most() {
    local process name status took
    while [ ${#running[@]} -gt "$1" ]; do
        status=0
        wait -n -p process "${!running[@]}" || status=$?
        name=${running[process]}
        unset "running[process]"
        result[$name]="$status $((SECONDS - began[$name]))"
    done
    while [ ${#queue[@]} -gt 0 ] && [ -n "${result[${queue[0]}]:-}" ]; do
        name=${queue[0]}
        queue=("${queue[@]:1}")
        read -r status took <<<"${result[$name]}"
        verdict "$name ($took s)" "$status" "$logs/${name//\//-}"
    done
}

# fuzz NAME BINARY. Told nothing else, a fuzzer exits with 77 for what it finds, which here means skipped. Without
# -entropic=0 it spends most of its first 100,000 executions on choosing inputs by how rare what they reach is.
fuzz() {
    local corpus=$logs/corpus-$1
    mkdir -p "$corpus"
    cd "$corpus"
    exec "$2" -seed="${FUZZ_SEED:-1}" -entropic=0 -max_total_time=5 -timeout=60 -rss_limit_mb=4096 -error_exitcode=1 \
        -artifact_prefix="$logs/" "$corpus" "$root/tests/fuzz/corpus/$1"
}

# Two at a time: each is one thread.
fuzz_all() {
    local binary name
    for binary in "$root"/build-fuzz/tests/fuzz/fuzz_+([a-z0-9_]); do
        [ -f "$binary" ] || continue
        name=${binary##*/fuzz_}
        wanted "fuzz/$name" || continue
        start "fuzz/$name" fuzz "$name" "$binary"
        at_most 1
    done
    at_most 0
}

# One after the other; those that say so up to three at a time, after the rest.
stories() {
    local path beside=() n=0
    for path in "$root"/tests/*/*_test.sh "$root"/tests/bench/*/*_test.sh; do
        wanted "$(story_name "$path")" || continue
        ((n++)) || title "stories"
        if grep -q '^# Runs beside' "$path"; then
            beside+=("$path")
            continue
        fi
        story_start "$path"
        at_most 0
    done
    for path in "${beside[@]}"; do
        story_start "$path"
        at_most 2
    done
    at_most 0
}

story_name() {
    local name=${1##*/}
    echo "story/${name%_test.sh}"
}

story_start() {
    DOORBELL_BUILD=$root/build start "$(story_name "$1")" timeout -k 15 $story_limit_s "$1"
}

demo() {
    local demo
    "$root/deploy/demo.sh" --json "$logs/demo.json" &
    demo=$!
    wait $demo || return 1
    if ip netns list | grep "^demo$demo-"; then
        echo "the demo left these namespaces behind"
        return 1
    fi
    jq -e '([keys[]] - ["requests", "answered", "lost", "accuracy", "p50_us", "p99_us", "rps",
        "workers"] == []) and .requests == 1797 and .answered == 1797 and .lost == 0
        and .accuracy >= 0.95 and .p50_us > 0 and .p99_us >= .p50_us and .rps > 0
        and (.workers | length == 2) and all(.workers[]; .requests > 0 and .name != "")' \
        "$logs/demo.json" >/dev/null || {
        echo "the figures are not as documented: $(cat "$logs/demo.json")"
        return 1
    }
    jq -c . "$logs/demo.json"
}

title "packages"
"$root/deploy/setup.sh" --test --no-build

if build_or_fail unit; then
    meson_tests unit build
    if wanted unit/gpu && ! command -v nvcc "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" >/dev/null; then
        echo "no nvcc: the CUDA sources were neither compiled nor run" >"$logs/output"
        verdict unit/gpu 77 "$logs/output"
    fi
    [[ $kinds != *story* ]] || build_ahead
    stories
else
    kinds=${kinds/story/} kinds=${kinds/demo/}
fi

if may_build asan && build_or_fail asan; then
    UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 meson_tests asan build-asan
fi

if may_build race && build_or_fail race; then
    meson_tests race build-tsan
fi

if may_build fuzz; then
    ! build_or_fail fuzz || fuzz_all
elif [[ $kinds == *fuzz* ]]; then
    echo "clang is not installed" >"$logs/output"
    verdict fuzz 77 "$logs/output"
fi

if wanted demo; then
    title "demo"
    status=0
    (demo) >"$logs/demo" 2>&1 </dev/null || status=$?
    verdict demo $status "$logs/demo"
fi

printf '\n'
[ $failed -eq 0 ] || printf 'failed: %s\n' "${failures[*]}"
echo "took $((SECONDS / 60)) min $((SECONDS % 60)) s"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
