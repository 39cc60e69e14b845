#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A scrape with 512 workers: whole and clean, and how long the control thread lets others wait
# meanwhile, as seen by a call that is made again and again. Prints its figures.
. "$(dirname "$0")/../../net/story.sh"

workers=${WORKERS:-512}
[ -x "$build/tests/bench/bench-pool-workers" ] || fail "bench-pool-workers is not built"

topology_up "story$$" 1
# Calls per Unix socket while something else goes on or not: longest and 99th percentile in ms.
cat >"$dir/scrape.py" <<'END'
import json, socket, sys, threading, time, urllib.request

lines = socket.socket(socket.AF_UNIX)
lines.connect(sys.argv[1])
lines = lines.makefile("rw")


def call():
    begin = time.monotonic()
    print('{"jsonrpc":"2.0","id":1,"method":"version"}', file=lines, flush=True)
    lines.readline()
    return (time.monotonic() - begin) * 1e3


def watch(done):
    waited = []
    while not done():
        waited.append(call())
        time.sleep(0.0005)
    waited.sort()
    return {"calls": len(waited), "p99_ms": round(waited[len(waited) * 99 // 100], 2),
            "max_ms": round(waited[-1], 2)}


def get(path):
    begin = time.monotonic()
    wanted = urllib.request.Request("http://127.0.0.1:9180" + path,
                                    headers={"Accept": "application/openmetrics-text, application/json"})
    text = urllib.request.urlopen(wanted, timeout=30).read()
    return text, (time.monotonic() - begin) * 1e3


end = time.monotonic() + 3
report = {"quiet": watch(lambda: time.monotonic() > end)}
for name, path in (("metrics", "/metrics"), ("status", "/api/status.json")):
    took = []

    def scrape():
        for _ in range(10):
            text, ms = get(path)
            took.append(ms)
            report[name + "_bytes"] = len(text)
            open(f"{sys.argv[2]}/{name}", "wb").write(text)

    thread = threading.Thread(target=scrape)
    thread.start()
    report["during_" + name] = watch(lambda: not thread.is_alive())
    report[name + "_ms"] = [round(x, 1) for x in (min(took), sorted(took)[5], max(took))]
print(json.dumps(report))
END
topology_config "
  - {name: echo, address: $vip, port: 8500, model: echo, policy: least-outstanding}" "workers: {timeout_ms: 10000}"
start_lb
start_pool "$workers" 500 1000
report=$(ip netns exec "$tag-lb" python3 "$dir/scrape.py" "$dir/control.sock" "$dir")
stop "$pid_pool"
python3 "$root/tests/unit/openmetrics_lint.py" "$dir/metrics" >"$dir/lint" || fail "not clean: $(cat "$dir/lint")"
expect "workers in the metrics" "$(grep -c '^doorbell_worker_info' "$dir/metrics")" -eq "$workers"
expect "workers in the status" "$(jq '.workers | length' "$dir/status")" -eq "$workers"
echo "$report $(cat "$dir/lint")"
