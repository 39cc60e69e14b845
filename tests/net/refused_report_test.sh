#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# An agent's session goes on after a refused report, an answer for which there was no memory, a line
# that is no message, and a connection that ends while the agent attaches. Only a load balancer that has no such worker ends it.
#
# Runs beside another: it measures no time.
. "$(dirname "$0")/story.sh"

topology_up "story$$" 1
start refusing_lb lb /usr/bin/python3 "$here/refusing_lb.py" 10.201.0.254 4791
wait_for "the load balancer that refuses" grep -q listening "$dir/refusing_lb.log"
start_agent 1 echo --lb 10.201.0.254:4791
expect_log refusing_lb "no worker: "
cat >"$dir/expected" <<'END'
listening
begin: agent.hello agent.register agent.ready, renews with a report
report refused: goes on, renews with a report
report refused: goes on, renews with a report
report refused: goes on, renews with a report
renewal refused: goes on, renews without a report
renewed: goes on, renews without a report
no memory: goes on, renews without a report
not JSON: closed agent.attach, renews without a report
attach: closed agent.attach, renews without a report
no worker: closed agent.hello agent.register agent.ready, renews with a report
END
diff "$dir/expected" "$dir/refusing_lb.log" || fail "the agent did something else"
expect "lines on the refused report" "$(grep -c 'report_refused="params.report.gpu.utilization: cannot use 101' "$dir/w1.log")" -eq 1
expect "ends of the worker" "$(grep -c 'ran requests=' "$dir/w1.log")" -eq 1
# It would wait for the load balancer, which has ended.
stop "$pid_w1" KILL
echo "the session went on but for the one that ended the worker"
