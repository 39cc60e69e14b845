#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs a command of this repository in a Debian that has nothing but the base system: does the
# package list suffice?
#
#   deploy/fresh-root.sh [12|13] [COMMAND...]        default: 12 deploy/test.sh
#
# The command sees the committed files in /doorbell, the host's network, and a root folder made by
# debootstrap from the host's package source, with the host's apt configuration. Mounts and processes
# live in namespaces that end with the command; the folder is removed after it.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# The second half, in namespaces of its own: mounts, then the command.
if [ "${1:-}" = --inside ]; then
    fresh=$2
    shift 2
    mount --make-rprivate /
    mount --bind "$fresh" "$fresh"
    mount -t proc proc "$fresh/proc"
    for i in sys dev; do
        mount --rbind "/$i" "$fresh/$i"
    done
    # shellcheck disable=SC2016
    exec chroot "$fresh" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
        ${CI:+CI=$CI} ${http_proxy:+http_proxy=$http_proxy} ${https_proxy:+https_proxy=$https_proxy} \
        bash -c 'cd /doorbell && exec "$@"' - "$@"
fi

case ${1:-12} in
12) suite=bookworm ;;
13) suite=trixie ;;
*)
    sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- deploy/test.sh

for program in debootstrap unshare git; do
    command -v $program >/dev/null || {
        echo "deploy/fresh-root.sh: needs root and $program" >&2
        exit 1
    }
done

fresh=$(mktemp -d /tmp/doorbell-fresh.XXXXXX)
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'rm -rf --one-file-system "$fresh"' EXIT

# Where this host gets its Debian from.
source=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' |
    grep -m 1 '/debian/$')
echo "debootstrap $suite from $source"
log=$(mktemp -p "$fresh")
debootstrap --variant=minbase "$suite" "$fresh/root" "$source" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    exit 1
}
cp -a /etc/apt/apt.conf.d /etc/apt/auth.conf.d "$fresh/root/etc/apt/" 2>/dev/null || true
cp -L /etc/resolv.conf /etc/hosts "$fresh/root/etc/"
mkdir "$fresh/root/doorbell"
git -C "$root" archive HEAD | tar -x -C "$fresh/root/doorbell"

unshare --mount --pid --fork --kill-child "$0" --inside "$fresh/root" "$@"
