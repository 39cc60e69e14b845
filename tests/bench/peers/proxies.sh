# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Shared by the benches of Doorbell beside proxies: the network's settings, and Doorbell with its worker in it;
# sourced. The script has sourced live.sh and net/topology.sh, and set $build.

host=10.200.0.99 # the kernel's own address on the clients' side
vip=10.200.0.100

trap 'exit 130' INT
trap 'exit 143' TERM
trap tidy EXIT

tidy() {
    topology_down
    [ -z "$allowed" ] || sysctl -qw net.ipv4.tcp_allowed_congestion_control="$allowed"
}

# need PROGRAM...: skips the bench if one is not there
need() {
    local program
    for program; do
        command -v "$program" >/dev/null || { echo "skipped: $program is not installed" && exit 77; }
    done
}

# All sockets use CUBIC: BBR, the default of some kernels, paces by timers, which costs a proxy twice the CPU
# time. A namespace may choose what the first one allows; it is asked to for the run.
allowed=
choose_cubic() {
    local place
    for place in client lb w1; do
        ip netns exec "$tag-$place" sysctl -qw net.ipv4.tcp_congestion_control=cubic 2>/dev/null && continue
        allowed=$(sysctl -n net.ipv4.tcp_allowed_congestion_control)
        sysctl -qw net.ipv4.tcp_allowed_congestion_control="$allowed cubic"
        ip netns exec "$tag-$place" sysctl -qw net.ipv4.tcp_congestion_control=cubic
    done
}

# proxies_up TAG: the network, with the kernel's own address for proxies; checksums and large segments are left to
# the veths between proxy and server
proxies_up() {
    local place name interface
    topology_up "$1$$" 1
    choose_cubic
    ip -n "$tag-lb" addr add "$host/24" dev clients
    # The switch between proxy and server forwards frames, and does not filter them.
    [ ! -e /proc/sys/net/bridge ] || ip netns exec "$tag-fabric" sysctl -qw net.bridge.bridge-nf-call-iptables=0
    for place in "lb fabric" "fabric lb" "fabric w1" "w1 w0"; do
        read -r name interface <<<"$place"
        offload "$name" "$interface" on
    done
}

# offload NAMESPACE DEVICE on|off
offload() {
    ip netns exec "$tag-$1" ethtool -K "$2" tx "$3" tso "$3" gso "$3" gro "$3" >/dev/null 2>&1
}

# client_offload on|off: of both ends of the clients' veth
client_offload() {
    offload client c0 "$1"
    offload lb clients "$1"
}

listens() {
    ip netns exec "$tag-$1" ss -ltnH | grep -q ":8500"
}

# client_queues N: of both ends of the clients' veth; after a load balancer, when the kernel has let go of its sockets
client_queues() {
    wait_for "$1 queues of clients" queues_are lb clients "$1"
    wait_for "$1 queues of c0" queues_are client c0 "$1"
}

# queues_are NAMESPACE DEVICE N: sets them; ethtool's status tells of no change, too
queues_are() {
    ip netns exec "$tag-$1" ethtool -L "$2" rx "$3" tx "$3" || true
    ip netns exec "$tag-$1" ethtool -l "$2" | awk -v n="$3" '/^RX:/ { rx = $2 } /^TX:/ { tx = $2 } END { exit rx != n || tx != n }'
}

# receive_apart LCORES: kernels receive packets of clients and servers (at c0 and w0) on CPUs of the kernel's choice (RPS) and not
# on the sender's, as if they were machines of their own; the first LCORES CPUs are left out if there are others
receive_apart() {
    local place name interface n=$1 mask
    [ -n "$(cpu $((n + 1)))" ] || n=0
    mask=$(printf %x $(((1 << $(nproc --all)) - 1 & ~((1 << n) - 1))))
    for place in "client c0" "w1 w0"; do
        read -r name interface <<<"$place"
        ip netns exec "$tag-$name" sh -c "for queue in /sys/class/net/$interface/queues/rx-*; do echo $mask >\$queue/rps_cpus; done"
    done
}

# doorbell_up KIND LIMITS FRAMING MODEL-ARGS [LCORES]: the load balancer with a clients port of that kind, and a worker
# with the model echo, joined by memif. LIMITS are keys of the service. A worker that a busy machine halts is not
# doubted.
doorbell_up() {
    local cpus n
    cpus=$(cpu 1)
    for ((n = 2; n <= ${5:-1}; n++)); do
        cpus+=", $(cpu "$n")"
    done
    memif_up "${1}0,iface=clients" "framing: $3, $2" "lcores: [$cpus]
flows: 65536
memory: {hugepages: false, mb: 1536}
workers: {timeout_ms: 5000, suspect_ms: 0}
fabric: {ack_timeout: 17}" "" "" "$4"
}

doorbell_down() {
    [ -z "${KEEP_STATS:-}" ] || cli --json stats --all >"$KEEP_STATS"
    stop "$pid_w1"
    stop "$pid_lb"
}

# each_lcores PART ASK KIND ARGUMENTS...: asks Doorbell with each number of $lcores; the part's name then says how many, if
# not 1. ARGUMENTS are those of doorbell_up.
each_lcores() {
    local part=$1 ask=$2 kind=$3 n name
    shift 3
    for n in $lcores; do
        name=$part
        [ "$n" -eq 1 ] || name+=_${n}_lcores
        client_queues "$n"
        doorbell_up "$kind" "$@" "$n"
        [ "$kind" != kernel ] || grep -q "port=clients .*driver=net_af_xdp" "$dir/lb.log" ||
            { cat "$dir/lb.log" >&2 && exit 1; }
        "$ask" "$name" "$vip" "$pid_lb" "$pid_w1"
        doorbell_down
    done
}

# For jq, the parts of these benches' results: series of figures by round.
# shellcheck disable=SC2034
proxies_jq='
    def median: sort | .[length / 2 | floor];
    def named: if . >= 1024 then "\(. / 1024 | floor)kib" else "\(.)b" end;
    def over($a; $b; figure): [$a, $b] | map(map(figure)) | transpose | map(.[0] / .[1]);
    def report($bench; $commit; $machine; $rounds):
        {bench: $bench, commit: $commit, machine: $machine, runs: $rounds,
         metrics: (map(.value |= median) | from_entries),
         spread: (map(.value |= [min, max]) | from_entries)};'

# report RESULT: into the file $json, if there is one, and as text
report() {
    [ -z "$json" ] || echo "$1" >"$json"
    jq -r 'def short: . * 1000 | round / 1000;
        .spread as $spread | .metrics | to_entries[] |
        "\(.key) \(.value | short) (\($spread[.key][0] | short), \($spread[.key][1] | short))"' <<<"$1"
}

# ask_nginx: by $dir/nginx.conf, in front of the server, which is there, and ends with it; the script's ask() asks
ask_nginx() {
    local workers
    start nginx lb nginx -c "$dir/nginx.conf" -e "$dir/nginx.log"
    wait_for "nginx" listens lb
    wait_for "nginx's workers" eval "[ \$(pgrep -c -P $pid_nginx) -eq $threads ]"
    mapfile -t workers < <(pgrep -P "$pid_nginx")
    ask nginx "$host" "${workers[@]}" "$pid_server"
    stop "$pid_nginx"
    stop "$pid_server"
}
