#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Installs what is missing (Debian 12 or 13) and builds Doorbell, optimised, into build/.
#
#   deploy/setup.sh [--test] [--demo] [--no-build]
#
# --test installs what the tests need, too; --demo builds only what the demo needs. The packages are
# listed in packages.txt. Nothing is installed, and no network is used, when nothing is missing. May
# be run again any time. Where it takes long it says how far it is: on a terminal in one line that changes, else
# a line every ten seconds.
set -euo pipefail

# After su without a login shell, root does not find what apt needs.
export PATH=$PATH:/usr/sbin:/sbin
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
groups="build run" build=yes targets=()
for option; do
    case $option in
    --test) groups="build run test" ;;
    --demo)
        targets=(doorbell-lb gpu-agent/doorbell-agent control/doorbell
            tests/net/client/doorbell-client gpu-agent/models/mlp.so)
        ;;
    --no-build) build=no ;;
    *)
        sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"
        exit 2
        ;;
    esac
done

# installed PACKAGE
installed() {
    [ "$(dpkg-query -Wf '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# The packages of our groups of which no alternative is installed.
missing_packages() {
    local line word package
    while read -r line; do
        [[ " $groups " == *" ${line%% *} "* ]] || continue
        for word in ${line#* }; do
            for package in ${word//|/ }; do
                installed "$package" && continue 2
            done
            echo "$word"
        done
    done < <(grep -v '^#' "$root/deploy/packages.txt")
}

# The alternatives that this release has.
available() {
    local word package
    for word; do
        for package in ${word//|/ }; do
            if apt-cache show "$package" >/dev/null 2>&1; then
                echo "$package"
                continue 2
            fi
        done
        echo "${word%%|*}"
    done
}

install_packages() {
    local names
    mapfile -t names < <(available "$@")
    if ! quietly packages_done env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        "${names[@]}"; then
        echo "packages: the lists are old or absent: apt-get update"
        quietly last_line apt-get update || true
        mapfile -t names < <(available "$@")
        quietly packages_done env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
            "${names[@]}" || {
            cat "$log" >&2
            echo "deploy/setup.sh: apt-get could not install: ${names[*]}" >&2
            exit 1
        }
    fi
}

# --- how far it is, from what a command has written to $log so far --------------------------------

packages_done() {
    local new fetched unpacked set_up
    new=$(grep -om1 '[0-9]* newly installed' "$log" | cut -d' ' -f1)
    fetched=$(grep -c '^Get:' "$log" || true)
    unpacked=$(grep -c '^Unpacking ' "$log" || true)
    set_up=$(grep -c '^Setting up ' "$log" || true)
    [ -z "$new" ] || echo "packages: of $new $fetched fetched, $unpacked unpacked, $set_up set up"
}

files_compiled() {
    grep -oE '^\[[0-9]+/[0-9]+\]' "$log" | tail -n 1 | sed 's/^/build: step /'
}

last_line() {
    tail -n 1 "$log" | cut -c1-80
}

# report PROGRESS: once a second what it prints, on a terminal; elsewhere every ten seconds. Until it is killed.
report() {
    local began=$SECONDS never line
    exec {never}<> <(:)
    until read -rt 1 -u "$never"; do
        # It may look at the log when that is gone: a look that was begun goes on when this is killed.
        line=$("$1" 2>/dev/null || true)
        [ -n "$line" ] || continue
        line+=" ($((SECONDS - began)) s)"
        if [ -t 1 ]; then
            printf '\r\033[K%s' "$line"
        elif (((SECONDS - began) % 10 == 0)); then
            echo "$line"
        fi
    done
}

# quietly PROGRESS COMMAND...: in the background, so that a signal ends it at once; output to $log. PROGRESS prints a
# line about how far it is.
quietly() {
    local progress=$1 status=0
    shift
    "$@" >"$log" 2>&1 </dev/null &
    child=$!
    report "$progress" &
    reporter=$!
    wait $child || status=$?
    child=
    kill $reporter
    wait $reporter 2>/dev/null || true
    reporter=
    [ ! -t 1 ] || printf '\r\033[K'
    return $status
}

log=$(mktemp)
child='' reporter=''
finish() {
    local code=$?
    trap - EXIT
    # shellcheck disable=SC2086
    [ -z "$child$reporter" ] || kill $child $reporter 2>/dev/null || true
    wait
    rm -f "$log"
    exit $code
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

mapfile -t missing < <(missing_packages)
if [ ${#missing[@]} -eq 0 ]; then
    echo "packages: all there"
elif ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
    echo "deploy/setup.sh: these are missing, and only root on Debian can install them here:" \
        "${missing[*]}" >&2
    exit 1
else
    echo "packages: installing ${missing[*]} (a minute or so)"
    install_packages "${missing[@]}"
fi
[ $build = yes ] || exit 0

options=()
# The default wants AVX2, as every x86 server since 2013 has it; others build for themselves.
grep -qw avx2 /proc/cpuinfo || options=(-Dcpu=native)

if [ ! -f "$root/build/build.ninja" ]; then
    echo "build: configuring build/"
    quietly last_line meson setup "$root/build" "$root" --buildtype=release "${options[@]}" || {
        tail -n 30 "$log" >&2
        exit 1
    }
fi
echo "build: compiling into build/ (the first time two minutes on two cores)"
quietly files_compiled ninja -C "$root/build" "${targets[@]}" || {
    grep -A20 'FAILED\|error' "$log" | head -n 60 >&2
    exit 1
}
echo "build: $(tail -n 1 "$log" | sed 's/^ninja: //')"
