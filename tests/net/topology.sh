# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The network that the demo and the net tests run in, and the daemons in it; sourced, not run.
#
#   namespace <tag>-client           namespace <tag>-lb              namespaces <tag>-w1 ... <tag>-wN
#     c0 10.200.0.2/24  ──veth──  clients (VIPs 10.200.0.100)
#        fd00:200::2/64                    (fd00:200::100)
#                                 fabric (10.201.0.1)  ──bridge── w0: RNIC 10.201.0.1<i>
#                                   kernel 10.201.0.254             kernel 10.201.0.10<i>
#
# The DPDK programs own the addresses without a kernel behind them; the kernel's addresses on the
# fabric carry registration (TCP). Everything lives in namespaces that topology_down removes. The
# bridge's ports, in namespace <tag>-fabric, are lb and w1 ... wN: packets that cross the fabric can be seen
# there.
#
# A script that sources this sets $build, the build directory, first, and calls topology_down in a trap.

# After su without a login shell, root does not find ip and sysctl.
PATH=$PATH:/usr/sbin:/sbin
topology_pids=()
topology_namespaces=()
dir=

# topology_up TAG WORKERS: the namespaces, and $dir for logs and sockets. A tag that ends in the
# caller's process id keeps runs apart; leftovers of runs that were killed are removed here.
topology_up() {
    local workers=$2 i
    tag=$1
    topology_sweep "${tag%%[0-9]*}"
    dir=$(mktemp -d "/tmp/doorbell-$tag.XXXXXX")
    # In memory where that may be: a disk that builds keep busy holds up each line of a log, and the state
    # file for longer than the 1 s that a setting may take.
    mount -t tmpfs -o mode=700 doorbell "$dir" 2>/dev/null || true
    # Where DPDK puts its sockets; it leaves the folder behind.
    export RUNTIME_DIRECTORY=$dir
    # doorbell bench sends to addresses that this load balancer serves.
    export DOORBELL_SOCKET=$dir/control.sock
    for i in client lb fabric $(seq -f 'w%g' 1 "$workers"); do
        namespace_add "$tag-$i"
    done
    # Only clients use IPv6, without packets of their own, so that the load balancer counts only what was
    # sent.
    for i in lb fabric $(seq -f 'w%g' 1 "$workers"); do
        ip netns exec "$tag-$i" sysctl -qw net.ipv6.conf.{all,default}.disable_ipv6=1
    done
    ip netns exec "$tag-client" sysctl -qw net.ipv6.conf.{all,default}.router_solicitations=0
    veth "$tag-client" c0 "$tag-lb" clients
    ip -n "$tag-client" addr add 10.200.0.2/24 dev c0
    ip -n "$tag-client" addr add fd00:200::2/64 dev c0 nodad
    # By default a kernel drops all but a few hundred packets that wait for an address: raise that.
    ip netns exec "$tag-client" sysctl -qw net.ipv{4,6}.neigh.c0.unres_qlen_bytes=16777216
    # A switch of its own namespace joins the load balancer and the workers.
    ip -n "$tag-fabric" link add br0 type bridge mcast_snooping 0
    ip -n "$tag-fabric" link set br0 up
    veth "$tag-lb" fabric "$tag-fabric" lb
    ip -n "$tag-fabric" link set lb master br0
    ip -n "$tag-lb" addr add 10.201.0.254/24 dev fabric
    for i in $(seq 1 "$workers"); do
        veth "$tag-w$i" w0 "$tag-fabric" "w$i"
        ip -n "$tag-fabric" link set "w$i" master br0
        ip -n "$tag-w$i" addr add "10.201.0.$((100 + i))/24" dev w0
    done
}

namespace_add() {
    ip netns del "$1" 2>/dev/null || true
    ip netns add "$1"
    topology_namespaces+=("$1")
    ip -n "$1" link set lo up
}

# Removes namespaces (and their processes) and folders of earlier runs whose process is gone.
topology_sweep() {
    local name pid
    for name in $(ip netns list | awk '{ print $1 }'; ls /tmp); do
        pid=${name#doorbell-}
        pid=${pid#"$1"}
        pid=${pid%%[-.]*}
        [[ $name =~ ^(doorbell-)?"$1"[0-9]+[-.] && ! -d /proc/$pid ]] || continue
        if [[ $name == doorbell-* ]]; then
            remove_folder "/tmp/$name"
            continue
        fi
        for pid in $(ip netns pids "$name"); do
            kill -KILL "$pid" 2>/dev/null || true
        done
        ip netns del "$name" 2>/dev/null || true
    done
}

# veth NAMESPACE-A NAME-A NAMESPACE-B NAME-B
veth() {
    ip -n "$1" link add "$2" type veth peer name "$4" netns "$3"
    local ns if
    for ns_if in "$1 $2" "$3 $4"; do
        read -r ns if <<<"$ns_if"
        # Local senders leave checksums to hardware that a veth does not have; segments stay whole
        # only without offloads.
        ip netns exec "$ns" ethtool -K "$if" tx off tso off gso off gro off >/dev/null 2>&1 || true
        ip -n "$ns" link set "$if" up
    done
}

# cpu N: the N-th CPU, from 1, that this process may use; nothing if there are fewer.
cpu() {
    taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
        awk -F- -v n="$1" '{ for (c = $1; c <= $NF; c++) if (++i == n) print c }'
}

# topology_config SERVICES-YAML [EXTRA-YAML]: writes $dir/lb.yaml. May be set before: flows, lcores,
# device_kind (net_af_packet, or kernel; of the agents, too), device_frames and device_options (of both
# ports), and default_workers and default_fabric: lines for an EXTRA-YAML that has no key of that name.
topology_config() {
    local extra=${2:-} key value
    for key in workers fabric; do
        value=default_$key
        [ -z "${!value:-}" ] || grep -q "^$key:" <<<"$extra" || extra+=$'\n'"$key: ${!value}"
    done
    cat >"$dir/lb.yaml" <<END
ports:
  - name: clients
    device: "${device_kind:-net_af_packet}0,iface=clients${device_frames:-}${device_options:-}"
    roles: [clients]
  - name: fabric
    device: "${device_kind:-net_af_packet}1,iface=fabric${device_frames:-}${device_options:-}"
    roles: [fabric]
    address: 10.201.0.1/24
services:
$1
lcores: [${lcores:-$(cpu 1)}]
flows: ${flows:-65536}
memory: {hugepages: false}
control: {socket: "$dir/control.sock", state_file: "$dir/state.json", agents: "10.201.0.254:4790", allow_plain: true}
$extra
END
}

# start NAME PLACE COMMAND...: runs COMMAND in the background in namespace <tag>-PLACE, output to
# $dir/NAME.log, process id in $pid and $pid_NAME.
start() {
    local name=$1 place=$2
    shift 2
    ip netns exec "$tag-$place" "$@" >>"$dir/$name.log" 2>&1 </dev/null &
    pid=$!
    topology_pids+=("$pid")
    printf -v "pid_${name//-/_}" %s "$pid"
}

# stop PID [SIGNAL]: ends a process that start made, and waits for it. Its exit status is in $status,
# 137 when it did not end within $stop_s. (Not SIGINT: the shell makes background processes ignore it.)
stop_s=30
stop() {
    local i left=() end=$((SECONDS + stop_s))
    kill "-${2:-TERM}" "$1" 2>/dev/null || true
    while is_running "$1" && ((SECONDS <= end)); do
        sleep 0.02
    done
    kill -KILL "$1" 2>/dev/null || true
    status=0
    wait "$1" 2>/dev/null || status=$?
    for i in "${topology_pids[@]}"; do
        [ "$i" = "$1" ] || left+=("$i")
    done
    topology_pids=("${left[@]}")
}

start_lb() {
    start lb lb "$build/doorbell-lb" --config "$dir/lb.yaml"
    wait_for "the load balancer's control socket" cli version
}

# start_agent I MODEL [OPTIONS...]
start_agent() {
    local i=$1 model=$2
    shift 2
    start "w$i" "w$i" "$build/gpu-agent/doorbell-agent" --lb 10.201.0.254:4790 \
        --name "w$i" --device "${device_kind:-net_af_packet}0,iface=w0" --address "10.201.0.$((10 + i))/24" \
        --model "$model" --no-hugepages "$@"
}

# start_agents COUNT MODEL [OPTIONS...]: starts w1 ... wCOUNT, and waits until they are active
start_agents() {
    local count=$1 i
    shift
    for i in $(seq 1 "$count"); do
        start_agent "$i" "$@"
    done
    for i in $(seq 1 "$count"); do
        wait_for "w$i to be active" worker_is "w$i" active
    done
}

# start_pool COUNT EACH-US HEARTBEAT-MS [OPTIONS...]: starts bench-pool-workers with COUNT simulated workers
# in the place of w1, and waits until they are active. Its process is $pid_pool.
start_pool() {
    local count=$1 each_us=$2 heartbeat_ms=$3
    shift 3
    : >"$dir/pool.log"
    start pool w1 "$build/tests/bench/bench-pool-workers" --lb 10.201.0.254:4790 \
        --device net_af_packet0,iface=w0 --address 10.201.0.11/24 --workers "$count" --each-us "$each_us" \
        --heartbeat-ms "$heartbeat_ms" --control "$dir/control.sock" "$@"
    wait_for "$count workers to be active" grep -q '"event": "active"' "$dir/pool.log"
}

cli() {
    "$build/control/doorbell" --socket "$dir/control.sock" "$@"
}

client() {
    ip netns exec "$tag-client" "$build/tests/net/client/doorbell-client" "$@"
}

# wait_for WHAT COMMAND...: repeats COMMAND until it succeeds; fails the test after $patience_s
patience_s=60
wait_for() {
    local what=$1 end=$((SECONDS + patience_s))
    shift
    until "$@" >/dev/null 2>&1; do
        if ((SECONDS > end)); then
            echo "timed out waiting for $what" >&2
            return 1
        fi
        sleep 0.05
    done
}

# worker W FIELD: one of the fields of doorbell workers show
worker() {
    cli --json workers show "$1" | jq -r ".worker.$2"
}

worker_is() {
    [ "$(worker "$1" state)" = "$2" ]
}

remove_folder() {
    umount -l "$1" 2>/dev/null || true
    rm -rf "$1"
}

# Ends the processes that start made, agents before the load balancer; removes namespaces and $dir.
topology_down() {
    local i
    topology_stop
    for i in "${topology_namespaces[@]}"; do
        ip netns del "$i" 2>/dev/null || true
    done
    topology_namespaces=()
    [ -z "$dir" ] || remove_folder "$dir"
    dir=
}

topology_stop() {
    local i
    for ((i = ${#topology_pids[@]} - 1; i >= 0; i--)); do
        kill -CONT "${topology_pids[i]}" 2>/dev/null || true
        kill "${topology_pids[i]}" 2>/dev/null || true
    done
    topology_reap
}

# Waits for processes that were asked to end, and kills those that have not ended within 20 s.
topology_reap() {
    local i end=$((SECONDS + 20))
    for i in "${topology_pids[@]}"; do
        while is_running "$i" && ((SECONDS <= end)); do
            sleep 0.02
        done
        if is_running "$i"; then
            echo "process $i did not end when asked to; killed" >&2
            kill -KILL "$i"
        fi
        wait "$i" 2>/dev/null || true
    done
    topology_pids=()
}

# is_running PID: true unless the process has ended, zombies included
is_running() {
    [ "$(awk '{ print $3 }' "/proc/$1/stat" 2>/dev/null || echo Z)" != Z ]
}
