#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Metrics and status over HTTP: they report what clients and workers did, in Prometheus' format.
# Requests that waited for a credit are counted as waiting; the parts of the latency add up to it.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

# get PATH: reads it from the load balancer's own loopback
get() {
    ip netns exec "$tag-lb" python3 -c "
import sys, urllib.request
sys.stdout.write(urllib.request.urlopen(urllib.request.Request('http://127.0.0.1:9180$1',
    headers={'Accept': 'application/openmetrics-text'}), timeout=10).read().decode())"
}

# metric SAMPLE: prints its value
metric() {
    get /metrics | grep -F -- "$1 " | awk '{ print $NF }'
}

topology_up "story$$" 2
# a worker that is slow to be scheduled would leave, and take its counters with it
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo}" "workers: {timeout_ms: 10000}"
start_lb
start_agents 2 echo --slots 2
expect "health" "$(get /healthz)" = ok
load run echo --to "$vip:8500" --sockets 32 --requests 50 || true
expect_all run 1600

expect "requests" "$(metric 'doorbell_service_requests_total{service="echo"}')" -eq 1600
expect "replies of both workers" "$(($(metric 'doorbell_worker_replies_total{worker="w1"}') + \
    $(metric 'doorbell_worker_replies_total{worker="w2"}')))" -eq 1600
counted() {
    metric "doorbell_service_$1_seconds_count{service=\"echo\"}"
}
for part in request queue reply; do
    expect "$part: replies counted" "$(counted "$part")" -eq 1600
done
# An lcore that is halted within a turn takes replies at a time before the worker's; they have no
# such parts.
unsplit=$((1600 - $(counted wire)))
expect "replies without parts" "$unsplit" -le 16
for part in gpu_wait gpu_run; do
    expect "$part: replies counted" "$(counted "$part")" -eq $((1600 - unsplit))
done
# 32 sockets and 4 slots: most requests wait in the queue
queued=$(metric 'doorbell_service_queue_seconds_bucket{service="echo",le="4.096e-06"}')
expect "requests that did not wait" "$queued" -lt 1600
get /metrics | awk -v unsplit="$unsplit" '
    match($1, /^doorbell_service_(request|queue|wire|gpu_wait|gpu_run|reply)_seconds_sum/) {
        split($1, part, "_"); sum[part[3]] += $NF }
    END { rest = sum["request"] - sum["queue"] - sum["wire"] - sum["gpu"] - sum["reply"]
          most = 0.001 + (unsplit > 0 ? sum["request"] / 100 : 0)
          exit !(rest < most && rest > -0.001 && sum["request"] > 0) }' ||
    fail "the parts do not make the whole: $(get /metrics | grep seconds_sum)"
get /metrics | python3 "$root/tests/unit/openmetrics_lint.py" - >"$dir/lint" ||
    fail "the metrics are not clean: $(cat "$dir/lint")"
expect "workers in the status" "$(get /api/status.json | jq -c '[.workers[].name] | sort')" = '["w1","w2"]'
expect "status by RPC" "$(cli --json top | jq '.services[0].requests')" -eq 1600

# A request whose Host is not a loopback name is refused.
! ip netns exec "$tag-lb" python3 -c "
import urllib.request as r
r.urlopen(r.Request('http://127.0.0.1:9180/metrics', headers={'Host': 'example.org'}))" 2>/dev/null ||
    fail "a foreign Host was served"
! ip netns exec "$tag-w1" python3 -c "
import urllib.request as r
r.urlopen('http://10.201.0.254:9180/healthz', timeout=2)" 2>/dev/null ||
    fail "it listens beyond loopback"
echo "metrics say what happened, and are clean"
