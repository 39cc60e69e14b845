#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The control plane where things are broken: the state file's disk is full or read-only, the control socket is removed,
# two operators replace one worker at once, one drains the new worker of the other, a reload comes in the middle of a
# drain, and the load balancer is killed while it reloads. Each ends with a message or as asked, and with a worker.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 3
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, policy: round-robin}"
mkdir "$dir/disk"
mount -t tmpfs -o size=16k doorbell "$dir/disk" || skip "cannot mount a tmpfs"
sed -i "s|state_file: \"[^\"]*\"|state_file: \"$dir/disk/state.json\", read_only_socket: \"$dir/reader.sock\"|" "$dir/lb.yaml"
start_lb
start_agents 3 echo

# refused TEXT COMMAND...: expects doorbell to end with 1 and to say TEXT
refused() {
    local text=$1 code=0
    shift
    cli "$@" >"$dir/said" 2>&1 || code=$?
    expect "status of $*" "$code" -eq 1
    grep -qF -- "$text" "$dir/said" || fail "$* said: $(cat "$dir/said")"
}

# A full disk refuses what it cannot keep, names the fix, and leaves the file whole.
cli workers set w3 weight=3 >/dev/null
dd if=/dev/zero of="$dir/disk/fill" bs=4k count=9 2>/dev/null || true
for change in "drain w1" "replace w1 w2" "set w1 weight=2"; do
    # shellcheck disable=SC2086
    refused "$dir/disk/state.json: cannot be written: No space left on device; nothing was set" workers $change
done
worker_is w1 active || fail "w1 is $(worker w1 state) after a replacement that was refused"
expect "the state file" "$(jq -c .workers "$dir/disk/state.json")" = '[{"name":"w3","weight":3}]'

# A new worker that goes gives its place back also when that cannot be saved.
rm "$dir/disk/fill"
stop "$pid_w1"
start_agent 1 echo --model-args delay_us=2000000 --max-run-ms 3000
wait_for "w1 to be active" worker_is w1 active
load_start last echo --to "$vip:8500" --sockets 3 --requests 1
wait_for "a request on w1" requests_above w1 0
code=0
cli workers replace w1 w2 >"$dir/said" 2>&1 &
replacing=$!
wait_for "w1 to be draining" worker_is w1 draining
dd if=/dev/zero of="$dir/disk/fill" bs=4k count=9 2>/dev/null || true
cli workers list >/dev/null
stop "$pid_w2"
wait "$replacing" || code=$?
expect "a replacement whose new worker went" "$code $(cat "$dir/said")" \
    = "3 worker w1: active, as it was resumed meanwhile, or its successor does not serve"
expect_log lb "the end of its replacement is not in the state file until the next change"
rm "$dir/disk/fill"
load_wait last || true
cli workers set w1 weight=2 >/dev/null
expect "the state file" "$(jq -c '[.version, (.workers | map(.name) | sort)]' "$dir/disk/state.json")" = '[1,["w1","w3"]]'

mount -o remount,ro "$dir/disk"
refused "$dir/disk/state.json: cannot be written: Read-only file system; nothing was set" workers drain w1
mount -o remount,rw "$dir/disk"

# Operators are not locked out when the sockets are removed.
rm "$dir/control.sock" "$dir/reader.sock"
wait_for "the control socket" cli version
wait_for "the read-only socket" "$build/control/doorbell" --socket "$dir/reader.sock" workers list
expect "their modes" "$(stat -c %a "$dir/control.sock" "$dir/reader.sock" | tr '\n' ' ')" = "660 660 "
expect_log lb "event=socket_restored socket=$dir/control.sock"

# Two operators at once.
stop "$pid_w1"
start_agent 1 echo
start_agent 2 echo
for i in 1 2; do
    wait_for "w$i to be active" worker_is "w$i" active
done
cli workers replace w1 w2 >"$dir/one" 2>&1 &
one=$!
cli workers replace w1 w3 >"$dir/two" 2>&1 &
wait "$one" || fail "the first said: $(cat "$dir/one")"
wait $! || fail "the second said: $(cat "$dir/two")"
expect "what both said" "$(sort -u "$dir/one" "$dir/two")" = "worker w1: drained"
expect "who serves" "$(cli --json workers list | jq -c '[.workers[] | select(.state == "active") | .name] | sort')" = '["w2","w3"]'
cli workers resume w1 >/dev/null

# One drains what another's replacement relies on: the old worker goes on.
stop "$pid_w1"
start_agent 1 echo --model-args delay_us=2000000 --max-run-ms 3000
wait_for "w1 to be active" worker_is w1 active
load_start last echo --to "$vip:8500" --sockets 3 --requests 1
wait_for "a request on w1" requests_above w1 0
cli workers replace w1 w2 >"$dir/one" 2>&1 &
one=$!
wait_for "w1 to be draining" worker_is w1 draining
cli workers drain w2 --no-wait >/dev/null
code=0
wait "$one" || code=$?
expect "a replacement whose new worker was drained" "$code" -eq 3
wait_for "w1 to be active" worker_is w1 active
load_wait last || true
cli workers resume w2 >/dev/null

# A reload in the middle of a drain.
load_start last echo --to "$vip:8500" --sockets 3 --requests 1
wait_for "a request on w1" eval '[ "$(worker w1 outstanding)" -gt 0 ]'
cli workers drain w1 >"$dir/one" 2>&1 &
one=$!
wait_for "w1 to be draining" worker_is w1 draining
sed -i "s|port: 8500, model: echo, policy: round-robin}|port: 8509, model: echo, policy: round-robin}\n  - {name: more, address: $vip, port: 8600, model: echo}|" "$dir/lb.yaml"
cli config apply >/dev/null
wait "$one" || fail "the drain said: $(cat "$dir/one")"
expect "the drain" "$(cat "$dir/one")" = "worker w1: drained"
load_wait last
expect_all last 3
cli workers resume w1 >/dev/null

# Killed while it reloads: the next one has the file as it is then, and the workers.
for ms in 0 1 2 4 8 16; do
    sed -i "s|port: 86..|port: 86$((10 + ms))|" "$dir/lb.yaml"
    cli config apply >/dev/null 2>&1 &
    sleep "0.$(printf %03d "$ms")"
    stop "$pid_lb" KILL
    wait $! || true
    start_lb
    wait_for "w2 to be active" worker_is w2 active
    expect "the service's port" "$(cli --json services show more | jq .service.port)" -eq $((8610 + ms))
done
umount "$dir/disk"
echo "full and read-only disks, removed sockets, operators against each other and reloads left workers and messages"
