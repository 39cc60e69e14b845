#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# deploy/demo.sh --keep: each command that it offers runs as it is printed, a third worker joins in the place that is
# kept for it, and Ctrl-C leaves nothing behind.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

[ "$build" = "$root/build" ] || skip "the demo uses $root/build, not $build"
command -v tcpdump >/dev/null || skip "no tcpdump, which the demo offers"
dir=$(mktemp -d /tmp/doorbell-keep.XXXXXX)
"$root/deploy/demo.sh" --keep >"$dir/demo.log" 2>&1 </dev/null &
demo=$!
topology_pids+=("$demo")
patience_s=120 expect_log demo "Ctrl-C ends it."

# The first word of each line that has two blanks in front and is not a comment; the third worker runs in
# the background.
mapfile -t offered < <(sed -n '/^Still running/,$p' "$dir/demo.log" | sed -n 's/^  \([^ #]\)/\1/p')
expect "commands that the demo offers" "${#offered[@]}" -eq 10
for line in "${offered[@]}"; do
    case $line in
    export*)
        eval "$line"
        ;;
    *\&)
        eval "${line%&} >>$dir/w3.log 2>&1 </dev/null &"
        third=$!
        wait_for "w3 to be active" eval '[ "$("$build/control/doorbell" --json workers show w3 | jq -r .worker.state)" = active ]'
        ;;
    *tcpdump*)
        timeout 20 bash -c "$line" >"$dir/tcpdump.log" 2>&1 || fail "$line: $(tail -n 2 "$dir/tcpdump.log")"
        ;;
    *)
        timeout 60 bash -c "$line" >"$dir/said.log" 2>&1 || fail "$line: $(tail -n 3 "$dir/said.log")"
        ;;
    esac
done
expect "requests of the third worker" "$("$build/control/doorbell" --json workers show w3 | jq .worker.requests)" -gt 0
kill "$demo"
wait "$demo" || true
topology_pids=()
wait_for "the end of the third worker" eval '! is_running $third'
wait "$third" 2>/dev/null || true
expect "namespaces left" "$(ip netns list | grep -c "^demo$demo-")" -eq 0
echo "${#offered[@]} commands that the demo offers did what they say, and nothing is left"
