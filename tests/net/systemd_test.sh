#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Both daemons notify their service manager (sd_notify: ready, status, watchdog, reload, stop), and
# systemd-analyze finds no fault in their units.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

# listen NAME: writes datagrams to $dir/NAME.notify into $dir/NAME.said, a line each
listen() {
    start "listen-$1" lb python3 -u -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("ready", file=sys.stderr)
with open(sys.argv[2], "w", buffering=1) as out:
    while True:
        out.write(s.recv(4096).decode().replace("\n", " ") + "\n")' \
        "$dir/$1.notify" "$dir/$1.said"
    expect_log "listen-$1" ready
}

# said NAME TEXT: expects that it has sent TEXT, or does within the wait
said() {
    wait_for "'$2' from $1" grep -qE "$2" "$dir/$1.said" ||
        fail "$1 said: $(cat "$dir/$1.said")"
}

topology_up "story$$" 1
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}"
listen lb
NOTIFY_SOCKET=$dir/lb.notify WATCHDOG_USEC=200000 start_lb
said lb '^READY=1$'
said lb '^STATUS=1 service, 0 workers active$'
listen w1
NOTIFY_SOCKET=$dir/w1.notify start_agent 1 echo
said w1 '^READY=1 STATUS=model echo, 1 worker$'
said lb '^STATUS=1 service, 1 worker active$'
said lb '^WATCHDOG=1$'
kill -HUP "$pid_lb"
said lb '^RELOADING=1 MONOTONIC_USEC=[0-9]+$'
wait_for "READY=1 behind it" eval \
    '[ "$(sed -n "/^RELOADING/,\$p" "$dir/lb.said" | grep -c ^READY=1)" -ge 1 ]'
stop "$pid_w1"
said w1 '^STOPPING=1$'
stop "$pid_lb"
said lb '^STOPPING=1 '

if ! command -v systemd-analyze >/dev/null; then
    echo "units not checked: no systemd-analyze"
    exit 0
fi
for unit in doorbell-lb doorbell-agent@; do
    # The path of the program here, not of the installed one; an instance for the template.
    name=${unit/@/@0}.service
    sed -E "s#^(Exec[A-Za-z]+)=/[^ ]*/doorbell[a-z-]*#\1=/bin/true#" \
        "$build/deploy/$unit.service" >"$dir/$name"
    complaints=$(systemd-analyze verify --man=no "$dir/$name" 2>&1 | grep -F "$name" || true)
    [ -z "$complaints" ] || fail "systemd-analyze of $unit: $complaints"
done
echo "notified, and the units are well"
