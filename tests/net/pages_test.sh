#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs every command on the pages for users that can run here: the blocks marked `sh` of README.md and
# deploy/docs, in order, with the programs installed in /usr/local, in the network of deploy/sample.
# All runs in a mount and a process namespace, so that nothing stays: neither files in
# /usr/local, /etc and /run, nor processes.
set -euo pipefail

story=pages
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(realpath "${DOORBELL_BUILD:-$root/build}")
pages=(README.md deploy/docs/client.md deploy/docs/install.md deploy/docs/model.md deploy/docs/symptoms.md)

skip() {
    echo "skipped $story: $*"
    exit 77
}

fail() {
    echo "FAILED $story: $*" >&2
    [ ! -s "$dir/output" ] || tail -n 20 "$dir/output" >&2
    grep -h " warning \| error " "$dir"/background.* | tail -n 5 >&2 || true
    tail -n 5 "$dir"/background.* >&2 2>/dev/null || true
    exit 1
}

# --- outside ------------------------------------------------------------------------------------------------------

if [ "${1:-}" != inside ]; then
    [ "$(id -u)" -eq 0 ] || skip "needs root for namespaces"
    command -v cc >/dev/null || skip "no C compiler for the examples"
    for program in python3 jq ip meson cc; do
        case $(readlink -f "$(command -v "$program")") in
        /usr/local/*) skip "$program is in /usr/local, which is another folder meanwhile" ;;
        esac
    done
    grep -q '"value": *"/usr/local"' <(meson introspect --buildoptions "$build" | jq '.[] | select(.name == "prefix")') ||
        skip "$build does not install into /usr/local"
    dir=$(mktemp -d /tmp/doorbell-pages.XXXXXX)
    trap 'rm -rf "$dir"' EXIT
    meson install -C "$build" --no-rebuild --destdir "$dir/root" >"$dir/install" 2>&1 ||
        fail "meson install: $(tail -n 3 "$dir/install")"
    status=0
    unshare --mount --pid --fork --kill-child --mount-proc "$0" inside "$dir" || status=$?
    exit $status
fi

# --- inside -------------------------------------------------------------------------------------------------------

dir=$2
cd "$root"
mount --bind "$dir/root/usr/local" /usr/local
mkdir -p "$dir/bin"
mount -t tmpfs tmpfs /run
# Files that the pages put into /etc/doorbell and /var/lib/doorbell exist in this namespace only.
for folder in /etc /var/lib; do
    mkdir -p "$dir/over$folder"/{upper,work}
    mount -t overlay overlay -o "lowerdir=$folder,upperdir=$dir/over$folder/upper,workdir=$dir/over$folder/work" \
        "$folder" 2>/dev/null || skip "no overlay file system for $folder"
done
printf '#!/bin/sh\nexec "$@"\n' >"$dir/bin/sudo"
chmod +x "$dir/bin/sudo"
PATH=$dir/bin:/usr/local/bin:/usr/sbin:/sbin:$PATH
export PATH
hash -r
patience_s=20 ran=0 last=()

# A line in the background goes on; any other may take some tries, as with a person.
run_line() {
    local line=$1 end=$((SECONDS + patience_s)) tries=0
    if [[ $line == *\& ]]; then
        bash -c "exec ${line%&}" >>"$dir/background.$ran" 2>&1 </dev/null &
        pids+=("$!")
        return
    fi
    until timeout 60 bash -ec "$line" >"$dir/output" 2>&1 </dev/null; do
        tries=$((tries + 1))
        [ $SECONDS -lt $end ] || fail "$page: $line (tried $tries times)"
        sleep 0.2
    done
}

run_page() {
    local line
    while IFS= read -r line <&3; do
        case $line in
        '#end') ;;
        # Other pages need the processes that this one ends.
        *network.sh\ down) last+=("$line") ;;
        *)
            ran=$((ran + 1))
            run_line "$line"
            ;;
        esac
    done 3< <(python3 tests/unit/pages_test.py --blocks "$page")
}

pids=()
for page in "${pages[@]}"; do
    run_page
done
for pid in "${pids[@]}"; do
    kill -0 "$pid" 2>/dev/null || fail "something that a page left in the background has ended"
done
[ ${#last[@]} -gt 0 ] || fail "no page ends what the first one begins"
for line in "${last[@]}"; do
    page=README.md run_line "$line"
done
[ -z "$(ip netns list)" ] || fail "these namespaces are left: $(ip netns list | paste -sd' ')"
echo "$ran commands of ${#pages[@]} pages did what they say"
