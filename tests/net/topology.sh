# SPDX-License-Identifier: BSD-3-Clause
#
# The network that the demo and the net stories run in; sourced, not run.
#
#   namespace <tag>-client           namespace <tag>-lb              namespaces <tag>-w1 ... <tag>-wN
#     c0 10.200.0.2/24  ──veth──  clients (VIPs 10.200.0.100)
#        fd00:200::2/64                    (fd00:200::100)
#                                 fabric (10.201.0.1)  ──bridge── w0: RNIC 10.201.0.1<i>
#                                   kernel 10.201.0.254             kernel 10.201.0.10<i>
#
# The DPDK programs own the addresses without a kernel behind them; the kernel's addresses on the
# fabric carry registration (TCP). Everything lives in namespaces that topology_down removes.

topology_pids=()
topology_namespaces=()

# topology_up TAG WORKERS
topology_up() {
    local tag=$1 workers=$2 i
    tag_=$tag
    dir=$(mktemp -d "/tmp/doorbell-$tag.XXXXXX")
    for i in client lb fabric $(seq -f 'w%g' 1 "$workers"); do
        ip netns del "$tag-$i" 2>/dev/null || true
        ip netns add "$tag-$i"
        topology_namespaces+=("$tag-$i")
        ip -n "$tag-$i" link set lo up
    done
    veth "$tag-client" c0 "$tag-lb" clients
    ip -n "$tag-client" addr add 10.200.0.2/24 dev c0
    ip -n "$tag-client" addr add fd00:200::2/64 dev c0 nodad
    # A switch of its own namespace joins the load balancer and the workers.
    ip -n "$tag-fabric" link add br0 type bridge
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

# veth NAMESPACE-A NAME-A NAMESPACE-B NAME-B
veth() {
    ip -n "$1" link add "$2" type veth peer name "$4" netns "$3"
    local ns if
    for ns_if in "$1 $2" "$3 $4"; do
        read -r ns if <<<"$ns_if"
        # Local senders leave check sums to hardware that a veth does not have; segments stay whole
        # only without offloads.
        ip netns exec "$ns" ethtool -K "$if" tx off tso off gso off gro off >/dev/null 2>&1
        ip netns exec "$ns" sysctl -qw "net.ipv6.conf.$if.accept_dad=0" 2>/dev/null || true
        ip -n "$ns" link set "$if" up
    done
}

# topology_config SERVICES-YAML [EXTRA-YAML]: writes $dir/lb.yaml
topology_config() {
    cat >"$dir/lb.yaml" <<EOF
ports:
  - name: clients
    device: "net_af_packet0,iface=clients"
    roles: [clients]
  - name: fabric
    device: "net_af_packet1,iface=fabric"
    roles: [fabric]
    address: 10.201.0.1/24
services:
$1
lcores: [0]
flows: ${flows:-65536}
memory: {hugepages: false}
control: {socket: "$dir/control.sock", agents: "10.201.0.254:4790"}
${2:-}
EOF
}

# start NAME NAMESPACE COMMAND...: in the background, output to $dir/NAME.log
start() {
    local name=$1 ns=$2
    shift 2
    ip netns exec "$ns" "$@" >"$dir/$name.log" 2>&1 </dev/null &
    pid=$!
    topology_pids+=("$pid")
    eval "pid_${name//-/_}=$pid"
}

start_lb() {
    start lb "$tag_-lb" "$build/doorbell-lb" --config "$dir/lb.yaml"
    wait_for "the load balancer's control socket" test -S "$dir/control.sock"
}

# start_agent I MODEL [OPTIONS...]
start_agent() {
    local i=$1 model=$2
    shift 2
    start "w$i" "$tag_-w$i" "$build/gpu-agent/doorbell-agent" --lb 10.201.0.254:4790 \
        --name "w$i" --device "net_af_packet0,iface=w0" --address "10.201.0.$((10 + i))/24" \
        --model "$model" --no-hugepages "$@"
}

cli() {
    "$build/control/doorbell" --socket "$dir/control.sock" "$@"
}

# wait_for WHAT COMMAND...: until it succeeds, or fail after 20 s
wait_for() {
    local what=$1 n=0
    shift
    until "$@" >/dev/null 2>&1; do
        n=$((n + 1))
        if [ $n -gt 400 ]; then
            echo "timed out waiting for $what" >&2
            return 1
        fi
        sleep 0.05
    done
}

worker_is() {
    [ "$(cli --json workers show "$1" | python3 -c 'import json,sys; d = json.load(sys.stdin); print(d.get("worker", d)["state"])')" = "$2" ]
}

topology_down() {
    local p ns
    for p in "${topology_pids[@]}"; do
        kill "$p" 2>/dev/null || true
    done
    for p in "${topology_pids[@]}"; do
        wait "$p" 2>/dev/null || true
    done
    for ns in "${topology_namespaces[@]}"; do
        ip netns del "$ns" 2>/dev/null || true
    done
    topology_pids=()
    topology_namespaces=()
    [ -z "${dir:-}" ] || [ -n "${keep:-}" ] || rm -rf "$dir"
}
