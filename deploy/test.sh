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
        [[ ! $only =~ ^(unit|asan|race|fuzz|story|demo)(/|$) ]] || kinds=${BASH_REMATCH[1]}
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
finish() {
    local code=$?
    trap - EXIT
    jobs -p | xargs -r kill 2>/dev/null
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
        meson setup "$folder" "$root" "$@"
    else
        meson configure "$folder" "$@" >/dev/null
    fi
    # shellcheck disable=SC2086
    ninja -C "$folder" $targets
}

# build_or_fail KIND FOLDER OPTIONS...
build_or_fail() {
    local status=0
    title "build $1"
    (configure_and_build "${@:2}") >"$logs/build" 2>&1 || status=$?
    verdict "$1/build" $status "$logs/build"
    return $status
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
    meson test -C "$folder" --no-rebuild -t 4 "${names[@]}" >"$logs/meson" 2>&1 </dev/null || true
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

fuzz() {
    local name=$1 binary=$2 corpus=$logs/corpus-$1
    mkdir -p "$corpus"
    (cd "$corpus" && "$binary" -seed="${FUZZ_SEED:-1}" -max_total_time=5 -timeout=60 -rss_limit_mb=4096 \
        -artifact_prefix="$logs/" "$corpus" "$root/tests/fuzz/corpus/$name") >"$logs/fuzz-$name" 2>&1
}

# Two at a time: each is one thread.
fuzz_all() {
    local binary name running=() status
    for binary in "$root"/build-fuzz/tests/fuzz/fuzz_+([a-z0-9_]); do
        [ -f "$binary" ] || continue
        name=${binary##*/fuzz_}
        wanted "fuzz/$name" || continue
        fuzz "$name" "$binary" &
        running+=("$!:$name")
        [ ${#running[@]} -lt 2 ] || fuzz_one
    done
    while [ ${#running[@]} -gt 0 ]; do
        fuzz_one
    done
}

# Waits for the first of running.
fuzz_one() {
    local name=${running[0]#*:}
    status=0
    wait "${running[0]%%:*}" || status=$?
    running=("${running[@]:1}")
    # A skip is a matter of the tools, never of a fuzzer.
    [ $status -ne 77 ] || status=1
    verdict "fuzz/$name" $status "$logs/fuzz-$name"
}

# One after the other; those that say so up to three at a time, after the rest.
stories() {
    local path beside=() running=() queue=() n=0
    local -A began=() result=()
    for path in "$root"/tests/*/*_test.sh "$root"/tests/bench/*/*_test.sh; do
        wanted "$(story_name "$path")" || continue
        ((n++)) || title "stories"
        if grep -q '^# Runs beside' "$path"; then
            beside+=("$path")
            continue
        fi
        story_start "$path"
        story_wait
    done
    for path in "${beside[@]}"; do
        story_start "$path"
        [ ${#running[@]} -lt 3 ] || story_wait
    done
    while [ ${#running[@]} -gt 0 ]; do
        story_wait
    done
}

story_name() {
    local name=${1##*/}
    echo "story/${name%_test.sh}"
}

# Its name is in running, by process, until it has ended, and in queue until its verdict is told.
story_start() {
    local name
    name=$(story_name "$1")
    DOORBELL_BUILD=$root/build timeout -k 15 $story_limit_s "$1" >"$logs/${name//\//-}" 2>&1 </dev/null &
    running[$!]=$name
    queue+=("$name")
    began[$name]=$SECONDS
}

# Until one of those running has ended. Verdicts come in the order of the starts.
story_wait() {
    local process name status=0 took
    wait -n -p process "${!running[@]}" || status=$?
    name=${running[process]}
    unset "running[process]"
    result[$name]="$status $((SECONDS - began[$name]))"
    while [ ${#queue[@]} -gt 0 ] && [ -n "${result[${queue[0]}]:-}" ]; do
        name=${queue[0]}
        queue=("${queue[@]:1}")
        read -r status took <<<"${result[$name]}"
        verdict "$name ($took s)" "$status" "$logs/${name//\//-}"
    done
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

if build_or_fail unit build --buildtype=release -Dwerror=true; then
    meson_tests unit build
    if wanted unit/gpu && ! command -v nvcc "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" >/dev/null; then
        echo "no nvcc: the CUDA sources were neither compiled nor run" >"$logs/output"
        verdict unit/gpu 77 "$logs/output"
    fi
    stories
else
    kinds=${kinds/story/} kinds=${kinds/demo/}
fi

if [[ $kinds == *asan* ]]; then
    if build_or_fail asan build-asan --buildtype=debugoptimized -Dwerror=true \
        -Dcuda=disabled -Dbenches=false \
        -Db_sanitize=address,undefined -Db_lundef=false; then
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 meson_tests asan build-asan
    fi
fi

if [[ $kinds == *race* ]]; then
    if targets=race build_or_fail race build-tsan --buildtype=debugoptimized -Dwerror=true \
        -Db_sanitize=thread -Db_lundef=false; then
        meson_tests race build-tsan
    fi
fi

if [[ $kinds == *fuzz* ]]; then
    if ! command -v clang >/dev/null; then
        echo "clang is not installed" >"$logs/output"
        verdict fuzz 77 "$logs/output"
    elif CC=clang targets=fuzz build_or_fail fuzz build-fuzz --buildtype=debugoptimized -Dfuzz=true \
        -Dcuda=disabled \
        -Dtests=false -Db_sanitize=address,undefined -Db_lundef=false \
        -Dc_args=-fsanitize=fuzzer-no-link; then
        fuzz_all
    fi
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
