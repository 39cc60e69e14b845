# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Functions that benches in network namespaces share: their options and their priority; sourced.
# shellcheck disable=SC2034
json='' commit=unknown machine=$(uname -n)

# live_options NAMES OPTIONS...: sets the variable NAME to VALUE for each --NAME VALUE in OPTIONS. NAMES are
# the bench's own, parted by blanks; --json, --commit and --machine are everybody's. --help prints the
# comment at the top of the script. Skips the bench when this is not root.
live_options() {
    local names=" $1 json commit machine "
    shift
    while [ $# -gt 0 ]; do
        case $1 in
        -h | --help) sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0" && exit 0 ;;
        esac
        if [[ $1 != --* || $names != *" ${1#--} "* ]]; then
            echo "${0##*/}: no option '$1'; see --help" >&2
            exit 2
        fi
        printf -v "${1#--}" %s "$2"
        shift 2
    done
    [ "$(id -u)" -eq 0 ] || { echo "skipped: needs root for network namespaces" && exit 77; }
}

# live_begin: the rest runs in real time, where that is allowed, so that other programs are not measured;
# the network is removed at the end.
live_begin() {
    chrt --rr -p 1 $$ 2>/dev/null || echo "without real-time priority: other programs disturb this" >&2
    trap 'exit 130' INT
    trap 'exit 143' TERM
    trap topology_down EXIT
}

# memif_up DEVICE SERVICE SETTINGS BEFORE-LB BEFORE-WORKER MODEL-ARGS: the load balancer, whose clients port is DEVICE, and a
# worker with the model echo, joined by memif. SERVICE has more keys of the service, SETTINGS lines of the configuration,
# BEFORE-... what is in front of the commands.
memif_up() {
    local memif="socket=$dir/memif.sock,socket-abstract=no,rsize=10"
    rm -f "$dir/memif.sock"
    cat >"$dir/lb.yaml" <<END
ports:
  - {name: clients, device: "$1", roles: [clients]}
  - {name: fabric, device: "net_memif_fabric,role=server,$memif", roles: [fabric], mtu: 3300, address: 10.201.0.1/24}
services:
  - {name: echo, protocol: tcp, address: $vip, port: 8500, model: echo, $2}
control: {socket: "$dir/control.sock", state_file: off, agents: "10.201.0.254:4790", allow_plain: true}
$3
END
    : >"$dir/lb.log"
    # shellcheck disable=SC2086
    start lb lb $4 "$build/doorbell-lb" --config "$dir/lb.yaml"
    wait_for "the load balancer's control socket" cli version || { cat "$dir/lb.log" >&2 && exit 1; }
    # shellcheck disable=SC2086
    start w1 w1 $5 "$build/gpu-agent/doorbell-agent" --lb 10.201.0.254:4790 --name w1 --gpu none --mtu 3300 --no-hugepages \
        --device "net_memif_agent,role=client,$memif,bsize=3364" --address 10.201.0.11/24 --model echo --model-args "$6"
    wait_for "the worker to be active" worker_is w1 active || { cat "$dir/w1.log" "$dir/lb.log" >&2 && exit 1; }
}
