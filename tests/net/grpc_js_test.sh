#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# gRPC's client for Node.js (@grpc/grpc-js) asks by KServe's protocol: raw and typed contents, streams, deadlines, cancelled
# calls, 4 MiB, many calls at once; each answer is the model's own.
#
# No package of Debian has the client, and nothing is downloaded unasked. It is found through NODE_PATH, a folder where
# `npm install @grpc/grpc-js @grpc/proto-loader` ran before; or DOORBELL_NPM=1 lets this test run npm in a folder of its own.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

command -v node >/dev/null || skip "no nodejs"
[ "$(node -p 'process.versions.node.split(".")[0]')" -ge 18 ] || skip "nodejs is older than 18"
topology_up "story$$" 2
modules=${NODE_PATH:-}
if [ -n "${DOORBELL_NPM:-}" ]; then
    command -v npm >/dev/null || skip "no npm"
    npm install --prefix "$dir/npm" --ignore-scripts --no-audit --no-fund @grpc/grpc-js@1 @grpc/proto-loader@0.8 \
        >"$dir/npm.log" 2>&1 || skip "npm reaches no registry: $(tail -n 1 "$dir/npm.log")"
    modules=$dir/npm/node_modules
fi
NODE_PATH=$modules node -e 'require("@grpc/grpc-js"); require("@grpc/proto-loader")' 2>/dev/null ||
    skip "no @grpc/grpc-js: NODE_PATH names no folder with it, and DOORBELL_NPM=1 is not set"
topology_config "
  - {name: digits, address: $vip, port: 8500, model: mlp, max_request: 72, max_reply: 52}
  - {name: kserve, protocol: tcp, framing: kserve, address: $vip, port: 8501, model: mlp, max_request: 72, max_reply: 52}
  - {name: echo, protocol: tcp, framing: kserve, address: $vip, port: 8502, model: echo, max_request: 4MiB, max_reply: 4MiB}"
start_lb
start_agent 1 mlp --model-args "weights=$root/gpu-agent/models/digits/digits.safetensors"
start_agent 2 echo --model-args max_request=4194304
wait_for "w1 to be active" worker_is w1 active
wait_for "w2 to be active" worker_is w2 active
ip netns exec "$tag-client" /usr/bin/python3 "$root/tests/net/kserve/own_answer.py" "$dir" "$vip" 8500
NODE_PATH=$modules ip netns exec "$tag-client" timeout 120 node "$root/tests/net/kserve/grpc_js.js" "$root/tests/net/grpc/inference.proto" \
    "$vip" 8501 8502 "$dir/reply" "$pid_w2" >"$dir/js.log" 2>&1 || fail "$(tail -n 30 "$dir/js.log")"
# The one that the client gave up, and the one whose time it took: that is given up, too, or ends for its deadline here,
# whichever comes first.
cancelled=$(drops cancelled) deadline=$(drops deadline)
expect "cancelled requests" "$cancelled" -ge 1
expect "requests given up, or at their deadline" $((cancelled + deadline)) -eq 2
echo "@grpc/grpc-js $(NODE_PATH=$modules node -p 'require("@grpc/grpc-js/package.json").version'): raw, typed, streams, deadlines, cancels, 4 MiB"
