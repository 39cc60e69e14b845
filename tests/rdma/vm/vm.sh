# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Virtual machines for net tests: Debian's kernel with rdma_rxe, booted by QEMU in a few seconds without
# KVM. Sourced after tests/net/story.sh; ../README.md says how to use it.
#
# A machine lives in a namespace of its own, <tag>-NAME, where commands reach it through a card of
# their own; its other cards are tap devices in the namespaces that the test names. QEMU is a process
# of the topology, and ends with it.

# shellcheck disable=SC2034 # of wait_for
patience_s=60 # an emulated CPU is slow

vm_folder=$root/tests/rdma/vm
vm_cache=$build/vm-cache
vm_guest=169.254.7.2 # the same for all machines: each has its own namespace
vm_port=7100         # the next that vm_socket uses there
# the arguments of vm_start for each machine, by its name
declare -A vm_image vm_memory vm_smp vm_mtu vm_nics vm_pci vm_number vm_accel

# Skips the test with the reason where something that a machine needs is missing.
vm_check() {
    local program
    for program in qemu-system-x86_64 dpkg-deb apt-get rdma; do
        command -v $program >/dev/null || skip "needs $program"
    done
    [ -e /dev/net/tun ] || skip "needs /dev/net/tun"
    [ -x "$build/tests/rdma/vm/vm-exec" ] || fail "$build/tests/rdma/vm/vm-exec is not built"
    compgen -G "/usr/lib/*/libibverbs/librxe-rdmav*.so" >/dev/null ||
        skip "needs libibverbs' provider for rdma_rxe (ibverbs-providers)"
    vm_kernel
}

# Sets $kernel to the folder of an unpacked kernel: of the version that this Debian has now, or if
# that cannot be had, of the newest that was ever unpacked. One test at a time.
vm_kernel() {
    local package lock
    mkdir -p "$vm_cache"
    exec {lock}>"$vm_cache/lock"
    flock "$lock"
    package=$(vm_kernel_package)
    kernel=$vm_cache/$package
    # Unpacked by an older kernel.py, it lacks modules.
    [ -e "$kernel/modules/vfio-pci.ko" ] || [ -z "$package" ] || rm -rf "$kernel"
    if [ -z "$package" ] || { [ ! -d "$kernel" ] && ! vm_fetch "$package"; }; then
        kernel=$(find "$vm_cache" -mindepth 1 -maxdepth 1 -name 'linux-image-*' 2>/dev/null |
            sort -V | tail -n 1)
        [ -n "$kernel" ] || skip "cannot download a kernel package"
    fi
    exec {lock}>&-
}

# linux-image-amd64 depends on the real one, as linux-image-6.1.0-56-amd64; answers NAME_VERSION.
# apt-cache reads all package lists at each call: call it once until they change.
vm_kernel_package() {
    local known=$vm_cache/package package version
    if [ ! -s "$known" ] || [ /var/lib/apt/lists -nt "$known" ]; then
        package=$(apt-cache depends linux-image-amd64 2>/dev/null |
            sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
        [ -n "$package" ] || return 0
        version=$(apt-cache show "$package" 2>/dev/null | sed -n 's/^Version: //p' | head -n 1)
        echo "${package}_$version" >"$known"
    fi
    cat "$known"
}

# vm_fetch NAME_VERSION: download and unpack. An unfinished folder has another name.
vm_fetch() {
    local work
    work=$(mktemp -d "$vm_cache/fetch.XXXXXX")
    (
        cd "$work" &&
            { vm_download "$1" || { apt-get update && vm_download "$1"; }; } &&
            "$vm_folder/kernel.py" linux-image-*.deb busybox-static_*.deb "$work/kernel"
    ) >"$work/log" 2>&1 || {
        tail -n 3 "$work/log" >&2
        rm -rf "$work"
        return 1
    }
    mv -T "$work/kernel" "$vm_cache/$1" 2>/dev/null || [ -d "$vm_cache/$1" ]
    rm -rf "$work"
}

vm_download() {
    apt-get download "${1%%_*}" busybox-static
}

# vm_build NAME [PATH|PATH=GUEST-PATH|--module=NAME]...: makes the content of machine NAME's only file
# system. Call it before vm_start; once for several machines that start alike: vm_start --image.
vm_build() {
    local name=$1
    shift
    vm_check
    "$vm_folder/initramfs.py" "$dir/$name.cpio" "$kernel" "$build/tests/rdma/vm/vm-exec" "$@" ||
        fail "no file system for machine $name"
}

# The drivers that a DPDK program on a tap device loads, for vm_build.
vm_dpdk_drivers() {
    local folder name
    for folder in /usr/lib/*/dpdk/pmds-*; do
        for name in bus_vdev mempool_ring net_af_packet; do
            echo "$folder/librte_$name.so"
        done
    done
}

# The drivers that a DPDK program opens by name for the cards of --pci. The buses are not among them:
# libraries that the drivers are linked with bring those, and a second copy of one stops the EAL.
vm_pci_drivers() {
    local folder name
    for folder in /usr/lib/*/dpdk/pmds-*; do
        for name in mempool_ring net_virtio net_e1000 net_vmxnet3; do
            echo "$folder/librte_$name.so"
        done
    done
}

# vm_start NAME [--image NAME] [--memory MB] [--smp N] [--mtu M] [--nic PLACE:TAP[=ADDRESS,...]]...
#          [--pci PLACE:TAP=SLOT,QUEUES,DEVICE]...
#
# Boots the machine. Each --nic is a card of it, eth0, eth1 ..., with these addresses (as 10.0.0.2/24),
# an rdma_rxe device (rxe0, rxe1 ...) on it, and a tap device at its other end in namespace
# <tag>-PLACE.
#
# Each --pci is a card that the guest's kernel need not have a driver for: DEVICE is QEMU's, with its
# options, at PCI address 0000:00:SLOT.0 behind an emulated IOMMU; its tap device has QUEUES queues.
vm_start() {
    vm_power "$@"
    vm_ready "$1"
}

# vm_power NAME [OPTIONS]...: the beginning of vm_start, so that several machines boot at once;
# vm_ready NAME is the rest of it.
vm_power() {
    local name=$1 accel=tcg i
    shift
    vm_image[$name]=$name vm_memory[$name]=192 vm_smp[$name]=1 vm_mtu[$name]=1500 vm_nics[$name]=
    vm_pci[$name]=
    while [ $# -gt 0 ]; do
        case $1 in
        --image) vm_image[$name]=$2 ;;
        --memory) vm_memory[$name]=$2 ;;
        --smp) vm_smp[$name]=$2 ;;
        --mtu) vm_mtu[$name]=$2 ;;
        --nic) vm_nics[$name]+=" $2" ;;
        --pci) vm_pci[$name]+=" $2" ;;
        *) fail "vm_start: $1?" ;;
        esac
        shift 2
    done
    vm_number[$name]=${#vm_image[@]}
    namespace_add "$tag-$name"
    vm_tap "$name" control
    ip -n "$tag-$name" addr add 169.254.7.1/30 dev control
    for i in ${vm_nics[$name]}; do
        i=${i%%=*}
        vm_tap "$name" "${i#*:}"
    done
    for i in ${vm_pci[$name]}; do
        vm_tap_pci "$name" "$i"
    done
    # Only real KVM: another driver at /dev/kvm may emulate, and then a kernel does not boot.
    if [ -w /dev/kvm ] && [[ -d /sys/module/kvm_intel || -d /sys/module/kvm_amd ]]; then
        accel=kvm
    fi
    vm_qemu "$name" $accel
}

vm_tap() {
    ip -n "$tag-$1" tuntap add "$2" mode tap
    ip netns exec "$tag-$1" sysctl -qw "net.ipv6.conf.$2.disable_ipv6=1"
    ip -n "$tag-$1" link set "$2" mtu "${vm_mtu[$1]}" up
}

# vm_tap_pci NAME PLACE:TAP=SLOT,QUEUES,DEVICE: QEMU opens it in the machine's namespace
vm_tap_pci() {
    local tap=${2%%=*} queues
    IFS=, read -r _ queues _ <<<"${2#*=}"
    tap=${tap#*:}
    if [ "$queues" -gt 1 ]; then
        ip -n "$tag-$1" tuntap add "$tap" mode tap multi_queue
    else
        ip -n "$tag-$1" tuntap add "$tap" mode tap
    fi
    ip netns exec "$tag-$1" sysctl -qw "net.ipv6.conf.$tap.disable_ipv6=1"
    ip -n "$tag-$1" link set "$tap" mtu "${vm_mtu[$1]}" up
}

# vm_ready NAME: waits until it has booted, and plugs in its cards.
vm_ready() {
    local name=$1 nic i=0
    if ! vm_wait "$name" "$([ "${vm_accel[$name]}" = kvm ] && echo 10 || echo 60)" &&
        [ "${vm_accel[$name]}" = kvm ]; then
        stop "$(vm_pid "$name")"
        vm_qemu "$name" tcg
        vm_wait "$name" 60 || true
    fi
    grep -q '^vm: ready' "$dir/$name-console.log" || fail "machine $name does not boot;" \
        "the end of its console: $(tail -n 15 "$dir/$name-console.log" "$dir/$name-qemu.log")"
    for nic in ${vm_nics[$name]}; do
        vm_plug "$name" $((i++)) "$nic"
    done
    for nic in ${vm_pci[$name]}; do
        nic=${nic%%=*}
        vm_move "$name" "${nic%%:*}" "${nic#*:}"
    done
}

# vm_pid NAME: prints the process id of its QEMU
vm_pid() {
    local pid=pid_${1//-/_}_qemu
    echo "${!pid}"
}

# Switches off work that a kernel need not do at its start on an emulated CPU: patch itself for this
# CPU, test its ciphers, split its pages to protect itself, interpret ACPI code for interrupts that
# nothing uses (the cards have MSI-X), doubt its clocks, which is wrong on a busy machine, or clear
# memory twice.
vm_hurry="quiet nokaslr mitigations=off noreplace-smp cryptomgr.notests rodata=off acpi=noirq"
vm_hurry+=" tsc=reliable no_timer_check init_on_alloc=0"

# vm_qemu NAME ACCELERATOR
#
# Debian 12's QEMU emits no memory barriers for a machine that can have one CPU only, though its devices
# run on threads of their own: a virtio card then misses a doorbell now and then, and sends nothing any
# more (the guest's "TX timeout"). So each machine could have a second CPU.
vm_qemu() {
    local name=$1 cards=() i=0 tap card cpu=max slot queues iommu=
    [ "$2" != kvm ] || cpu=host
    for tap in control ${vm_nics[$name]}; do
        tap=${tap%%=*}
        # No offloads: frames on the tap are as on a wire, checksums included.
        card=virtio-net-pci,netdev=n$i,csum=off,gso=off,guest_csum=off,romfile=
        card+=,host_mtu=${vm_mtu[$name]}
        cards+=(-netdev "tap,id=n$i,ifname=${tap#*:},script=no,downscript=no"
            -device "$card,mac=$(printf '02:00:00:%02x:00:%02x' "${vm_number[$name]}" $i)")
        i=$((i + 1))
    done
    for tap in ${vm_pci[$name]}; do
        IFS=, read -r slot queues card <<<"${tap#*=}"
        tap=${tap%%=*}
        card+=,mac=$(printf '02:00:00:%02x:00:%02x' "${vm_number[$name]}" $i)
        # shellcheck disable=SC2054 # commas of QEMU's
        cards+=(-netdev "tap,id=n$i,ifname=${tap#*:},queues=$queues,script=no,downscript=no"
            -device "$card,netdev=n$i,id=${tap#*:},addr=$slot,romfile=")
        i=$((i + 1))
        iommu=intel_iommu=on
    done
    [ -z "$iommu" ] || cards=(-machine q35 -device intel-iommu "${cards[@]}")
    vm_accel[$name]=$2
    : >"$dir/$name-console.log"
    start "$name-qemu" "$name" qemu-system-x86_64 -accel "$2" -cpu $cpu -m "${vm_memory[$name]}" \
        -smp "${vm_smp[$name]},maxcpus=$((vm_smp[$name] > 1 ? vm_smp[$name] : 2))" -nographic -nodefaults -no-reboot \
        -serial "file:$dir/$name-console.log" -kernel "$kernel/vmlinux" \
        -initrd "$dir/${vm_image[$name]}.cpio" "${cards[@]}" -append \
        "console=ttyS0 panic=-1 $vm_hurry $iommu vm.control=$vm_guest/30" \
        -qmp "unix:$dir/$name-qmp.sock,server=on,wait=off"
}

# vm_link NAME TAP on|off: the cable of one of its cards of --pci
vm_link() {
    "$vm_folder/link.py" "$dir/$1-qmp.sock" "$2" "$3" || fail "the cable of $2"
}

# vm_wait NAME SECONDS: waits until it is ready; false if it is not by then, or has ended
vm_wait() {
    local end=$((SECONDS + $2))
    until grep -q '^vm: ready' "$dir/$1-console.log"; do
        ((SECONDS <= end)) && is_running "$(vm_pid "$1")" || return 1
        sleep 0.05
    done
}

# vm_move NAME PLACE TAP: moves the tap device to the namespace that the test names
vm_move() {
    ip -n "$tag-$1" link set "$3" netns "$tag-$2"
    ip netns exec "$tag-$2" sysctl -qw "net.ipv6.conf.$3.disable_ipv6=1"
    ip -n "$tag-$2" link set "$3" mtu "${vm_mtu[$1]}" up
}

# vm_plug NAME I NIC: its tap device moved; the card up, with its addresses.
vm_plug() {
    local place=${3%%:*} tap=${3#*:} mtu=${vm_mtu[$1]} address commands
    tap=${tap%%=*}
    vm_move "$1" "$place" "$tap"
    commands="set -e
        echo 0 >/proc/sys/net/ipv6/conf/eth$2/accept_dad
        ip link set eth$2 mtu $mtu up"
    for address in $(tr , ' ' <<<"${3#"${3%%=*}"}" | tr -d =); do
        commands+="
        ip addr add $address dev eth$2"
    done
    vm_run "$1" "$commands
        rdma link add rxe$2 type rxe netdev eth$2" || fail "card $2 of machine $1"
}

# vm_run NAME COMMAND: the output and the exit status of a shell COMMAND; 125: the machine has gone.
vm_run() {
    vm_exec "$1" "$2" </dev/null
}

# The same, with our standard input.
vm_exec() {
    ip netns exec "$tag-$1" "$build/tests/rdma/vm/vm-exec" run "$vm_guest" "$2"
}

# vm_put NAME FILE GUEST-PATH, vm_get NAME GUEST-PATH FILE
vm_put() {
    vm_exec "$1" "cat >'$3' && chmod $(stat -c %a "$2") '$3'" <"$2"
}

vm_get() {
    vm_run "$1" "cat '$2'" >"$3"
}

# vm_background NAME PROCESS COMMAND: one program in the guest, as if it ran here: its output in
# $dir/PROCESS.log, $pid and $pid_PROCESS for stop, which passes the signal on. It ends with the
# topology.
vm_background() {
    start "$2" "$1" "$build/tests/rdma/vm/vm-exec" run "$vm_guest" "exec $3"
}

# vm_socket NAME GUEST-PATH PATH: forwards connections to the UNIX socket PATH here to GUEST-PATH there.
vm_socket() {
    local port=$((vm_port++))
    vm_background "$1" "$1-socket" "vm-exec relay $vm_guest:$port $2"
    start "$1-relay" "$1" "$build/tests/rdma/vm/vm-exec" relay "$3" "$vm_guest:$port"
    expect_log "$1-socket" listening
    expect_log "$1-relay" listening
}

# vm_stop NAME: as if its plug were pulled.
vm_stop() {
    local nic
    stop "$(vm_pid "$1")"
    for nic in ${vm_nics[$1]} ${vm_pci[$1]}; do
        nic=${nic%%=*}
        ip -n "$tag-${nic%%:*}" link del "${nic#*:}"
    done
    ip netns del "$tag-$1"
}
