# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Hugepages of 2 MiB for the time of a bench, and the texts that name commit and machine; sourced.
hugepages=/proc/sys/vm/nr_hugepages
hugepages_before=

hugepages_free() {
    local name count
    while read -r name count; do
        [ "$name" != HugePages_Free: ] || echo "$count"
    done </proc/meminfo
}

# take_hugepages COUNT: false when they cannot be had
take_hugepages() {
    local free
    free=$(hugepages_free)
    [ "${free:-0}" -lt "$1" ] || return 0
    [ -n "$free" ] && [ -w "$hugepages" ] || return 1
    hugepages_before=$(cat "$hugepages")
    echo $((hugepages_before - free + $1)) >"$hugepages" || return 1
    [ "$(hugepages_free)" -ge "$1" ]
}

give_back_hugepages() {
    [ -z "$hugepages_before" ] || echo "$hugepages_before" >"$hugepages"
    hugepages_before=
}

commit() {
    git -C "$root" describe --always --abbrev=12 --dirty --exclude '*' 2>/dev/null || echo unknown
}

machine() {
    local model
    model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
    echo "${model:-$(uname -m)}, $(nproc) CPUs, Linux $(uname -r)"
}
