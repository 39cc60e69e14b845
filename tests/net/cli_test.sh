#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The command line as people and scripts use it: errors without a daemon, JSON that parses, --watch
# that ends, completion that loads and offers real names.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1

# Without a daemon: exit status 1, and one line that names the socket.
status=0
text=$(cli stats 2>&1) || status=$?
expect "exit status without a daemon" "$status" -eq 1
expect "lines without a daemon" "$(wc -l <<<"$text")" -eq 1
[[ $text == *"$dir/control.sock"* ]] || fail "the error does not name the socket: $text"
status=0
cli workers lust >/dev/null 2>&1 || status=$?
expect "exit status of a wrong command" "$status" -eq 2

topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
"$build/doorbell-lb" --config "$dir/lb.yaml" --check >/dev/null || fail "--check refuses the file"
start_lb
start_agents 1 echo
load run echo --to "$vip:8500" --sockets 8 --requests 50 || true
expect_all run 400

for command in "flows list" "flows top" "flows count" "flows count --by worker" "workers list" \
    "workers show w1" "services list" "services show echo" stats version; do
    # shellcheck disable=SC2086
    cli --json $command | jq -e . >/dev/null || fail "--json $command is no JSON"
    # shellcheck disable=SC2086
    [ -n "$(cli $command)" ] || fail "$command prints nothing"
done
expect "flows in JSON" "$(cli --json flows list | jq '.flows | length')" -eq 8
expect "flows with a filter" "$(cli --json flows list --worker w1 --client 10.200.0.0/24 --limit 3 |
    jq '.flows | length')" -eq 3
expect "flows as lines" "$(cli --json flows list --stream | wc -l)" -eq 8
expect "the largest flow" "$(cli --json flows top --by requests --limit 1 | jq .flows[0].value)" -eq 50
expect "flows of the worker" "$(cli --json flows count --by worker | jq -c .groups)" = \
    '[{"name":"w1","count":8}]'
expect "established flows" "$(cli flows count --state udp-established)" -eq 8
wait_for "a rate of new flows" eval \
    'cli --json stats | jq -e ".lcores[0].new_flows_per_s != null" >/dev/null'
expect "requests in JSON" "$(cli --json services show echo | jq .service.requests)" -eq 400
status=0
cli workers show nobody >"$dir/nobody" 2>&1 || status=$?
expect "exit status for an unknown worker" "$status" -eq 1
grep -q nobody "$dir/nobody" || fail "the error does not name the worker: $(cat "$dir/nobody")"

# --watch: one line of JSON per round, until a signal.
start watch client "$build/control/doorbell" --socket "$dir/control.sock" --json --watch=1 stats
wait_for "two rounds" eval '[ "$(wc -l <"$dir/watch.log")" -ge 2 ]'
stop "$pid_watch"
expect "watched lines that are no JSON" "$(jq -e . "$dir/watch.log" >/dev/null || echo some)" = ""

# Completion: loaded by a separate bash, and called as the shell calls it.
offered=$(PATH="$build/control:$PATH" bash -c "
    . $root/deploy/doorbell.bash-completion
    COMP_WORDS=(doorbell --socket $dir/control.sock workers show '') COMP_CWORD=5
    _doorbell doorbell 2>/dev/null
    echo \"\${COMPREPLY[*]}\"")
expect "names offered after workers show" "$offered" = w1
echo "errors, JSON, --watch and completion are as documented"
