#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Installs what is missing (Debian 12 or 13) and builds Doorbell, optimised, into build/.
#
#   deploy/setup.sh [--test] [--demo] [--no-build]
#
# --test installs what the tests need, too; --demo builds only what the demo needs. The packages are
# listed in packages.txt. Nothing is installed, and no network is used, when nothing is missing. May
# be run again any time.
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
        sed -n 's/^# \{0,1\}//; 3,10p' "$0"
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
    local names log
    log=$(mktemp)
    mapfile -t names < <(available "$@")
    if ! DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${names[@]}" \
        >"$log" 2>&1 </dev/null; then
        echo "  the package lists are old or absent: apt-get update"
        apt-get update >"$log" 2>&1
        mapfile -t names < <(available "$@")
        DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${names[@]}" \
            >"$log" 2>&1 </dev/null || {
            cat "$log" >&2
            echo "deploy/setup.sh: apt-get could not install: ${names[*]}" >&2
            exit 1
        }
    fi
    rm -f "$log"
}

mapfile -t missing < <(missing_packages)
if [ ${#missing[@]} -eq 0 ]; then
    echo "packages: all there"
elif ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
    echo "deploy/setup.sh: these are missing, and only root on Debian can install them here:" \
        "${missing[*]}" >&2
    exit 1
else
    echo "packages: installing ${missing[*]}"
    install_packages "${missing[@]}"
fi
[ $build = yes ] || exit 0

options=()
# The default wants AVX2, as every x86 server since 2013 has it; others build for themselves.
grep -qw avx2 /proc/cpuinfo || options=(-Dcpu=native)
log=$(mktemp)
child=
finish() {
    local code=$?
    trap - EXIT
    [ -z "$child" ] || kill "$child" 2>/dev/null || true
    wait
    rm -f "$log"
    exit $code
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# In the background, so that a signal ends it at once; output to $log.
quietly() {
    "$@" >"$log" 2>&1 </dev/null &
    child=$!
    wait $child || return 1
    child=
}

if [ ! -f "$root/build/build.ninja" ]; then
    echo "build: configuring build/"
    quietly meson setup "$root/build" "$root" --buildtype=release "${options[@]}" || {
        tail -n 30 "$log" >&2
        exit 1
    }
fi
echo "build: compiling into build/"
quietly ninja -C "$root/build" "${targets[@]}" || {
    grep -A20 'FAILED\|error' "$log" | head -n 60 >&2
    exit 1
}
echo "build: $(tail -n 1 "$log" | sed 's/^ninja: //')"
