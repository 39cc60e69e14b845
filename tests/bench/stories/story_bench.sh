# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Benches that are figures of net stories source this: their options, where stories record, and the
# result. The caller sets <runs>, to its default, before story_bench_begin.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
# shellcheck source=tests/bench/live.sh
. "$root/tests/bench/live.sh"

# story_bench_begin OPTIONS...: reads them; from here on stories record to $STORY_FIGURES
story_bench_begin() {
    live_options runs "$@"
    STORY_FIGURES=$(mktemp)
    trap 'rm -f "$STORY_FIGURES"' EXIT
    export STORY_FIGURES DOORBELL_BUILD=${BUILD:-$root/build-bench}
}

# medians: of each figure that was recorded over the runs, and the lowest and highest
medians() {
    jq -Rn '
        [inputs | split(" ") | {key: .[0], value: (.[1] | tonumber)}] | group_by(.key) |
        map({key: .[0].key, value: (map(.value) | sort)}) |
        {metrics: (map({key, value: .value[(.value | length) / 2 | floor]}) | from_entries),
         spread: (map({key, value: [.value[0], .value[-1]]}) | from_entries)}' <"$STORY_FIGURES"
}

# story_bench_end NAME: {metrics, spread} on its standard input is printed, and written with --json
story_bench_end() {
    local result
    result=$(jq --arg name "$1" --arg commit "$commit" --arg machine "$machine" --argjson runs "$runs" \
        '{bench: $name, commit: $commit, machine: $machine, runs: $runs} + .')
    [ -z "$json" ] || echo "$result" >"$json"
    jq -r '.metrics as $m | .spread as $s | $m | keys[] |
        "\(.) \($m[.])" + if $s then " (\($s[.][0]), \($s[.][1]))" else "" end' <<<"$result"
}
