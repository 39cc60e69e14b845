#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The programs of the client guide (deploy/docs/client.md), as they are printed there: each gets its answer,
# and each reports its notice when there is no worker.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

examples=$root/deploy/docs/examples
command -v cc >/dev/null || skip "no C compiler for first_request.c"

topology_up "story$$" 1
# Only the sample's services are used.
topology_config "$(sed -n '/^services:/,/^$/{/^services:/d;p}' "$root/deploy/sample/doorbell.yaml")"
start_lb
cc -Wall -Wextra -Werror -O2 -o "$dir/first_request" "$examples/first_request.c"

# example NAME: runs it; its output in $dir/NAME.said, its exit status in $status
example() {
    local name=$1 command=("$dir/$1")
    [ "${name%.py}" = "$name" ] || command=(python3 "$examples/$name")
    status=0
    ip netns exec "$tag-client" "${command[@]}" >"$dir/$name.said" 2>&1 || status=$?
}

for name in first_request first_request.py; do
    example "$name"
    expect "$name without a worker: exit status" "$status" -eq 1
    expect "$name without a worker" "$(cat "$dir/$name.said")" = "no reply: notice code 1"
done
example tagged_request.py
# The program cancels request 8 at once: where one burst brings both, the cancel comes before the refusal.
grep -qx "request 7: notice 1 request 8: notice [16]" <<<"$(sort "$dir/tagged_request.py.said" | paste -sd' ')" ||
    fail "tagged_request.py without a worker: $(cat "$dir/tagged_request.py.said")"

start_agents 1 mlp --model-args "weights=$root/gpu-agent/models/digits/digits.safetensors"
for name in first_request first_request.py; do
    example "$name"
    expect "$name: exit status" "$status" -eq 0
    expect "$name" "$(cat "$dir/$name.said")" = "this picture shows a 0"
done
example tagged_request.py
expect "tagged_request.py: exit status" "$status" -eq 0
grep -qx "request 7: reply of 52 bytes" "$dir/tagged_request.py.said" ||
    fail "tagged_request.py: $(cat "$dir/tagged_request.py.said")"
grep -qEx "request 8: (reply of 52 bytes|notice 6)" "$dir/tagged_request.py.said" ||
    fail "tagged_request.py: $(cat "$dir/tagged_request.py.said")"

# Without a load balancer no process listens: the program ends by itself and reports that.
stop "$pid_lb"
example first_request.py
expect "first_request.py without a load balancer: exit status" "$status" -ne 0
expect "first_request.py without a load balancer" "$(tail -n 1 "$dir/first_request.py.said")" = \
    "TimeoutError: timed out"
echo "$(cat "$dir/first_request.said"), from C and from Python; tagged: $(paste -sd, "$dir/tagged_request.py.said")"
