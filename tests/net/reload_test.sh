#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The configuration changes 24 times under a steady load: another service comes and goes, policy,
# queue and times change, and every third file is broken. No packet is lost; a broken file, or one
# that needs a restart, changes nothing and the error says why. Clients of a removed service get a
# notice.
#
# Runs beside another: no limit of it is a time.
. "$(dirname "$0")/story.sh"

vip2=10.200.0.101
policies=(round-robin maglev least-outstanding)

# config I: the I-th configuration, with service extra when I is even
config() {
    local i=$1 extra=
    ((i % 2)) || extra="  - {name: extra, address: $vip2, port: 8600, model: echo}"
    topology_config "  - {name: echo, address: $vip, port: 8500, model: echo,
     policy: ${policies[i % 3]}, affinity: $( ((i % 4 < 2)) && echo request || echo flow),
     queue: $((64 + i * 32)), queue_timeout_ms: $((900 + i)), request_timeout_ms: $((9000 + i)),
     flow_timeout_ms: $((20000 + i))}
$extra" "workers: {timeout_ms: $((2000 + i)), suspect_ms: 0}"
}

running() {
    cli --json services show echo | jq -c '.service | [.policy, .affinity, .queue, .queue_timeout_ms]'
}

applied() {
    grep -c 'config applied' "$dir/lb.log" || true
}

applied_above() {
    [ "$(applied)" -gt "$1" ]
}

# refused TEXT: expects that the file cannot be applied, with TEXT as the reason, and changes nothing
refused() {
    local before output
    before=$(running)
    if output=$(cli config apply 2>&1); then
        fail "was applied: $output"
    fi
    [[ $output == *"$1"* ]] || fail "'$1' is not why: $output"
    expect "what runs" "$(running)" = "$before"
}

topology_up "story$$" 2
# With two CPUs, two data-plane cores change over one after the other.
[ -z "$(cpu 2)" ] || lcores="$(cpu 1), $(cpu 2)"
device_options=",qpairs=$( [ -z "$(cpu 2)" ] && echo 1 || echo 2)"
config 1
start_lb
start_agents 2 echo

load_start steady echo --to "$vip:8500" --sockets 32 --duration-s 3600 --rate 3000
wait_for "requests" requests_above w1 500
for i in $(seq 2 25); do
    config "$i"
    if ((i % 3 == 0)); then
        sed -i 's/^flows: .*/flows: many/' "$dir/lb.yaml"
        refused "lb.yaml:$(grep -n '^flows:' "$dir/lb.yaml" | cut -d: -f1): flows: 'many' is not"
    elif ((i % 5 == 0)); then
        before=$(applied)
        kill -HUP "$pid_lb"
        wait_for "the $i. configuration by SIGHUP" applied_above "$before"
    else
        cli config apply >/dev/null || fail "the $i. configuration"
    fi
    ((i % 3 == 0)) || expect "policy of configuration $i" \
        "$(cli --json services show echo | jq -r .service.policy)" = "${policies[i % 3]}"
    if ((i % 2 == 0 && i % 3)); then
        load extra echo --to "$vip2:8600" --sockets 2 --window 1 --requests 5 || true
        expect_all extra 10
    fi
done

# The error names a change that needs a restart, and nothing else of the file is applied.
config 26
sed -i 's/^flows: .*/flows: 1000/' "$dir/lb.yaml"
refused "flows changed from '65536' to '1000': needs a restart"
code=0
cli config check >"$dir/said" || code=$?
expect "exit status of a check of what needs a restart" "$code" -eq 3
grep -q 'good, but cannot be applied now: flows' "$dir/said" || fail "check: $(cat "$dir/said")"
cli config diff | grep -q 'flows.*65536.*1000.*restart' || fail "diff: $(cli config diff)"

# A service that workers cannot serve is refused.
sed -i 's/^flows: .*/flows: 65536/; s/model: echo,/model: echo, max_reply: 100,/' "$dir/lb.yaml"
sed -i '/name: extra/d' "$dir/lb.yaml"
refused ", worker w"

load_end steady
expect_none_lost steady

# A service removed under load sends notices to its clients, answers its open requests, and is then gone.
config 28
cli config apply >/dev/null
load_start extra echo --to "$vip2:8600" --sockets 8 --rate 2000 --duration-s 4 --timeout-ms 500
wait_for "requests to extra" eval \
    '[ "$(cli --json services show extra | jq .service.requests)" -gt 500 ]'
config 29
cli config apply >/dev/null
wait_for "extra to be gone" eval '! cli services show extra 2>/dev/null'
load_wait extra || true
expect "wrong answers of extra" "$(figure extra wrong)" -eq 0
expect "requests to extra that it refused" "$(figure extra refused)" -gt 0
expect "flows of extra" "$(cli --json flows count --client 10.200.0.2 --by service |
    jq '[.groups[] | select(.name != "echo") | .count] | add // 0')" -eq 0
echo "$(figure steady answered) requests answered over $(applied) changes and $(grep -c \
    'config refused' "$dir/lb.log") refusals, none lost"
