#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Both daemons log JSON, one object per line, DPDK's lines too; the format and the level change while
# they run.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"
default_workers='' default_fabric=''

# json_lines NAME: expects every line of its log to be an object with time, level and module
json_lines() {
    jq -es 'all(.[]; (.time | test("^[0-9-]+T[0-9:.]+Z$")) and .level and .module)' \
        "$dir/$1.log" >/dev/null || fail "the log of $1 is not JSON throughout"
}

topology_up "story$$" 1
service="  - {name: echo, address: $vip, port: 8500, model: echo}"
topology_config "$service" "log: {format: json, level: debug}"
start_lb
start_agents 1 echo --log-format json
json_lines lb
json_lines w1
jq -es 'any(.[]; .module == "lb" and .worker == "w1" and .state == "active" and .number == 0)' \
    "$dir/lb.log" >/dev/null || fail "the worker's state is not a field"

cli log level lb error | grep -q 'doorbell.lb *error' || fail "level: $(cli log show)"
lines=$(wc -l <"$dir/lb.log")
topology_config "$service" "log: {format: json, level: debug}
workers: {timeout_ms: 600}"
cli config apply >/dev/null
expect "lines of a load balancer that logs errors only" "$(wc -l <"$dir/lb.log")" -eq "$lines"

topology_config "$service" "log: {format: logfmt, level: info}"
cli config apply >/dev/null
expect_log lb 'level=notice module=lb msg="config applied" changes=3'
echo "$lines lines of JSON, then logfmt"
