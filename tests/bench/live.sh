# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Functions that benches in network namespaces share: their options and their priority; sourced.
# shellcheck disable=SC2034
json='' commit=unknown machine=$(uname -n)

# live_options NAMES OPTIONS...: sets the variable NAME to VALUE for each --NAME VALUE in OPTIONS. NAMES are
# the bench's own, parted by blanks; --json, --commit and --machine are everybody's. --help prints the
# comment at the top of the script. Skips the bench when this is not root.
live_options() {
    local names=" $1 json commit machine "
    shift
    while [ $# -gt 0 ]; do
        case $1 in
        -h | --help) sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0" && exit 0 ;;
        esac
        if [[ $1 != --* || $names != *" ${1#--} "* ]]; then
            echo "${0##*/}: no option '$1'; see --help" >&2
            exit 2
        fi
        printf -v "${1#--}" %s "$2"
        shift 2
    done
    [ "$(id -u)" -eq 0 ] || { echo "skipped: needs root for network namespaces" && exit 77; }
}

# live_begin: the rest runs in real time, where that is allowed, so that other programs are not measured;
# the network is removed at the end.
live_begin() {
    chrt --rr -p 1 $$ 2>/dev/null || echo "without real-time priority: other programs disturb this" >&2
    trap 'exit 130' INT
    trap 'exit 143' TERM
    trap topology_down EXIT
}
