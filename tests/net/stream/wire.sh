# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Functions for TCP over a bad wire between clients and load balancer, beside the kernel's own server that is
# reached over the same wire; sourced after topology.sh.
#
#   namespace <tag>-client       namespace <tag>-wire             namespace <tag>-lb
#     c0 10.200.0.2  ──veth── near  <- tcp-stream relay ->  far ──veth── clients  VIP, and $host of the kernel
# shellcheck disable=SC2154
host=10.200.0.99
host6=fd00:200::99
stream=$build/tests/net/stream/tcp-stream

# wire_up: puts the namespace of the wire in the place of the veth that topology_up made. (tcp-stream's sockets use
# CUBIC, which a namespace may not choose as its default everywhere.)
wire_up() {
    local place
    ip -n "$tag-client" link del c0
    namespace_add "$tag-wire"
    ip netns exec "$tag-wire" sysctl -qw net.ipv6.conf.{all,default}.disable_ipv6=1
    ip netns exec "$tag-lb" sysctl -qw net.ipv6.conf.default.disable_ipv6=0
    veth "$tag-client" c0 "$tag-wire" near
    veth "$tag-wire" far "$tag-lb" clients
    ip -n "$tag-client" addr add 10.200.0.2/24 dev c0
    ip -n "$tag-client" addr add fd00:200::2/64 dev c0 nodad
    ip -n "$tag-lb" addr add "$host/24" dev clients
    ip -n "$tag-lb" addr add "$host6/64" dev clients nodad
    for place in client lb; do
        # The kernel must not carry measurements of one connection over to the next ones.
        ip netns exec "$tag-$place" sysctl -qw net.ipv4.tcp_no_metrics_save=1
    done
}

# wire_start OPTIONS...: a relay that does to packets what OPTIONS say
wire_start() {
    : >"$dir/relay.log"
    start relay wire "$stream" relay --near near --far far "$@"
    wait_for "the wire" grep -q ready "$dir/relay.log"
}

# wire_stop: its report is in $wire_report. A frame that it had no room for is an error of the machine.
wire_stop() {
    stop "$pid_relay"
    wire_report=$(tail -n 1 "$dir/relay.log")
}

# kernel_serve ADDRESS OPTIONS...: the kernel's server in the load balancer's namespace
kernel_serve() {
    start kernel lb "$stream" serve --address "$1" "${@:2}"
    wait_for "the kernel's server" eval "ip netns exec $tag-lb ss -ltnH | grep -q :8500"
}

# stream_ask NAME OPTIONS...: a client's figures in $dir/NAME.json; its exit status
stream_ask() {
    ip netns exec "$tag-client" "$stream" ask "${@:2}" >"$dir/$1.json" 2>>"$dir/$1.log"
}
