#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The second of a load balancer's two data-plane cores stands still while a worker behind a memif has hundreds of its
# requests. Their replies fill what there is for that core: its queue of the memif, the worker's transmit queue
# behind it, its queue pair's window. The first core's clients go on being served meanwhile; when the second core
# goes on, its clients get their replies, or a notice for what waited in its queue for too long.
. "$(dirname "$0")/story.sh"
. "$here/hold_core.sh"

[ -n "$(cpu 2)" ] || skip "needs two CPUs"
topology_up "story$$" 1
lcores="$(cpu 1), $(cpu 2)"
topology_config "  - {name: echo, address: $vip, port: 8500, model: echo, queue: 4096}"
memif="socket=$dir/memif.sock,socket-abstract=no,rsize=10"
sed -i "s|device: \".*iface=fabric.*\"|device: \"net_memif_fabric,role=server,$memif\"\n    queues: 2|" "$dir/lb.yaml"
start_lb
start w1 w1 "$build/gpu-agent/doorbell-agent" --lb 10.201.0.254:4790 --name w1 --queues 2 --slots 1024 \
    --device "net_memif_agent,role=client,$memif" --address 10.201.0.11/24 --no-hugepages \
    --model echo --model-args max_request=1472,delay_us=100,sleep=1 --max-batch 8
wait_for "w1 to be active" worker_is w1 active

# The replies of each core so far.
replies_of() {
    cli --json stats | jq ".lcores[$1].replies"
}
replies_above() {
    [ "$(replies_of "$1")" -gt "$2" ]
}
# No more than the ring takes by which the first core hands over the second one's: 1,024 of 64 sockets.
load_start run echo --to "$vip:8500" --sockets 64 --duration-s 3600 --window 15 --min-size 1400
wait_for "replies by the first core" replies_above 0 2000
wait_for "replies by the second core" replies_above 1 2000
hold_second_core
watch_delays
begin=$(date +%s%N)
before=$(replies_of 0) stands=$(replies_of 1)
wait_for "replies by the first core since" replies_above 0 $((before + 8000))
took=$((($(date +%s%N) - begin) / 1000000))
expect "replies by the second core since" "$(replies_of 1)" -eq "$stands"
stop "$pid_held"
wait_for "replies by the second core, which goes on" replies_above 1 $((stands + 2000))
load_end run
expect "requests without reply or notice" "$(figure run lost)" -eq 0
expect "wrong replies" "$(figure run wrong)" -eq 0
# Requests that waited for too long in the second core's queue got notices. The first core's requests, 480 at a time, may have waited for the
# worker on a busy machine, once.
expect "notices of the first core" "$(cli --json stats | jq '.lcores[0].notices')" -le 480
echo "8000 replies by one core in $took ms, while the other stood still"
