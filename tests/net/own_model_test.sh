#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A user's own model: a plug-in that is built outside the tree, with nothing but what `meson install`
# put there, is loaded by path, by file and by name, and answers. The other files that a new
# user needs are installed as well.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
meson install -C "$build" --no-rebuild --destdir "$dir/stage" >"$dir/install.log" 2>&1 ||
    fail "meson install: $(tail -n 3 "$dir/install.log")"
stage=$dir/stage$(meson introspect "$build" --buildoptions | jq -r '.[] | select(.name == "prefix").value')
libraries=$(dirname "$(find "$stage" -name libdoorbell-agent.so)")

# Outside the tree, as the page for authors of models says.
mkdir "$dir/mine"
cd "$dir/mine"
cat >upper.c <<'END'
#include <ctype.h>
#include <doorbell/model.h>
static int upper_open(const char *arguments, uint32_t max_batch, struct agent_model_shape *shape,
                      void **state, char *error, size_t error_size)
{
    *shape = (struct agent_model_shape){.max_request = 1472, .max_reply = 1472, .max_batch = max_batch};
    return 0;
}
static void upper_run(void *state, struct agent_model_item *items, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < items[i].request_length; k++)
            ((char *)items[i].reply)[k] = toupper(((const char *)items[i].request)[k]);
        items[i].reply_length = items[i].request_length;
        items[i].status = 0;
    }
}
static void upper_close(void *state) {}
const struct agent_model agent_model = {.abi = AGENT_MODEL_ABI, .name = "upper",
    .open = upper_open, .run = upper_run, .close = upper_close};
END
pc() {
    PKG_CONFIG_PATH=$libraries/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dir/stage pkg-config "$@"
}
# shellcheck disable=SC2046
cc -O2 -shared -fPIC -fvisibility=hidden $(pc --cflags doorbell-model) -o upper.so upper.c ||
    fail "the plug-in does not compile"

topology_config "  - {name: upper, address: $vip, port: 8500, model: upper}"
start_lb

# ask WORD: prints the reply to it
ask() {
    ip netns exec "$tag-client" python3 -c '
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.sendto(sys.argv[2].encode(), (sys.argv[1], 8500))
print(s.recv(64).decode())' "$vip" "$1"
}

# serves MODEL: expects that the installed agent takes --model MODEL, and its worker answers rightly
serves() {
    start w1 w1 "$stage/bin/doorbell-agent" --lb 10.201.0.254:4790 --name w1 --no-hugepages \
        --device net_af_packet0,iface=w0 --address 10.201.0.11/24 --gpu none --model "$1"
    wait_for "a worker with --model $1" worker_is w1 active
    expect "the reply of --model $1" "$(ask 'doorbell, 1')" = 'DOORBELL, 1'
    stop "$pid"
    expect "the agent's exit status" "$status" -eq 0
}
serves "$dir/mine/upper.so"
serves upper.so
mv upper.so "$(pc --variable=modelsdir doorbell-model)"
serves upper
serves upper.so

# For a name that does not exist the error names both folders and the fix.
status=0
"$stage/bin/doorbell-agent" --lb 127.0.0.1:1 --device net_ring0 --address 10.201.0.11/24 --gpu none \
    --model lower >"$dir/lower.log" 2>&1 || status=$?
expect "exit status without the plug-in" "$status" -ne 0
expect_log lower "there is no model 'lower': no file lower.so in $libraries/doorbell/models, "
expect_log lower 'or the path of a .so'

# One for GPUs only, which has no run(): on a CPU the agent says so, whatever chose the CPU.
sed 's/\.run = upper_run/.capture = upper_capture/; s/^static void upper_close.*/&\nstatic int upper_capture(void *state, struct agent_model_gpu *gpu, char *error, size_t size) { return 0; }/' \
    upper.c >gpu.c
# shellcheck disable=SC2046
cc -O2 -shared -fPIC $(pc --cflags doorbell-model) -o gpu.so gpu.c || fail "the plug-in does not compile"
status=0
"$stage/bin/doorbell-agent" --lb 127.0.0.1:1 --device net_ring0 --address 10.201.0.11/24 --no-hugepages --gpu none \
    --model ./gpu.so >"$dir/gpu.log" 2>&1 || status=$?
expect "exit status with a plug-in for GPUs on a CPU" "$status" -eq 1
expect_log gpu "--model: model 'upper' has no run(), which a CPU needs"

# The worker's side of Python finds its library; the name doorbell is left to clients.
module=$(find "$stage" -name doorbell_agent.py -not -path '*/share/*')
[ -n "$module" ] || fail "doorbell_agent.py is not where Python looks"
expect "modules called doorbell" "$(find "$stage" -name doorbell.py | wc -l)" -eq 0
/usr/bin/python3 -c 'import sys; sys.exit(sys.argv[1] not in sys.path)' \
    "$(dirname "${module#"$dir/stage"}")" || fail "Debian's Python does not look where $module is"
grep -qxF "LIBRARY_FOLDER = \"${libraries#"$dir/stage"}\"  # meson writes here where it installs the library" \
    "$module" || fail "$module does not know where its library is"
multiarch=$(cc -print-multiarch)
expect "folder of the library" "${libraries#"$stage/"}" = "lib${multiarch:+/$multiarch}"

for file in doorbell.yaml agent.env make-ca.sh grafana/doorbell.json; do
    [ -s "$stage/share/doorbell/$file" ] || fail "$file is not installed"
done
[ -x "$stage/share/doorbell/make-ca.sh" ] || fail "make-ca.sh cannot be run"
"$stage/share/doorbell/make-ca.sh" "$dir/ca" token >/dev/null
# The agent accepts the sample for systemd, up to the load balancer, which does not exist here.
# shellcheck source=/dev/null
words=$(. "$stage/share/doorbell/agent.env" && echo "$OPTIONS")
status=0
# shellcheck disable=SC2086
"$stage/bin/doorbell-agent" ${words//10.201.0.254:4790/127.0.0.1:1} --help >/dev/null || status=$?
expect "exit status with the sample's options" "$status" -eq 0
echo "a model of 20 lines, built with what is installed, answers by path, file and name"
