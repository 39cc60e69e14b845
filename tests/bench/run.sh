#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Build and run a bench.
#
#   tests/bench/run.sh list
#   tests/bench/run.sh walk [--json FILE] [--runs N]
#   tests/bench/run.sh walk-budget [--update] [--functions] [--json FILE]
#   tests/bench/run.sh walk-ab OLD NEW [--rounds N] [--only SCENARIO]
#   tests/bench/run.sh tcp [--only 16k|1m] [--json FILE] [--runs N]
#   tests/bench/run.sh conntrack [--only 64k|1m|8m|30m] [--json FILE] [--runs N]
#   tests/bench/run.sh conntrack-traffic [--json FILE] [--runs N]
#   tests/bench/run.sh conntrack-traffic --write TRACE.pcap [PACKETS [MEAN BYTES]]
#   tests/bench/run.sh wire-100g [--json FILE] [--runs N] [--lcores N] [--gen-cores N] [--smoke]
#   tests/bench/run.sh flows [--flows N] [COMMAND...]
#   tests/bench/run.sh conntrack-scale [--json FILE] [--runs N] [--lcores-list 1,2,4] [--smoke]
#   tests/bench/run.sh rdma [--json FILE] [--runs N] [--only cycles|wire|loss] [--verify] [--smoke]
#   tests/bench/run.sh gpu [--runs N] [--json FILE] [--only PART] ...
#   tests/bench/run.sh e2e [--window N] [--size BYTES] [--requests N] [--agent-args TEXT] [--help] ...
#   tests/bench/run.sh pool [--only pick|maglev|sim] [--runs N] [--json FILE]
#   tests/bench/run.sh size [--rounds N] [--seconds S] [--loads "30 50 70 85"] [--only single|batch] ...
#   tests/bench/run.sh pool-faults [--runs N] [--json FILE]
#   tests/bench/run.sh stop [--runs N] [--json FILE]
#   tests/bench/run.sh isolation [--runs N] [--json FILE]
#   tests/bench/run.sh pool-live [--workers N] [--events N] [--seconds S] [--rate N] [--only PART] ...
#   tests/bench/run.sh udp-peers [--rounds N] [--seconds S] [--only "nft doorbell"] [--json FILE] ...
#   tests/bench/run.sh tcp-peers [--rounds N] [--seconds S] [--only "haproxy doorbell"] [--json FILE] ...
#   tests/bench/run.sh kserve-peers [--rounds N] [--seconds S] [--only "nginx doorbell"] [--sizes "1024"] ...
#   tests/bench/run.sh kserve-json [--rounds N] [--seconds S] [--only "plain doorbell"] [--json FILE] ...
#   tests/bench/run.sh tcp-loss [--rounds N] [--seconds S] [--size BYTES] [--lose PERCENT] [--json FILE] ...
#   tests/bench/run.sh tcp-attack [--rounds N] [--seconds S] [--only "flood drip readers"] [--json FILE] ...
#   tests/bench/run.sh kserve-abuse [--rounds N] [--seconds S] [--only "heads bombs shut"] [--json FILE] ...
#   tests/bench/run.sh predictable [--rounds N] [--seconds S] [--loads "50 90 120"] [--size BYTES] [--json FILE] ...
#   tests/bench/run.sh soak [--minutes N] [--json FILE] ...
#   tests/bench/run.sh bundle DIRECTORY [--without-mlp]
#   tests/bench/run.sh bundle-net DIRECTORY
#
# bundle puts the benches and programs there, what they need on a machine without DPDK, and the commit.
# The model mlp wants OpenBLAS, which is large: --without-mlp leaves both out.
#
# bundle-net makes a build directory for udp-peers, tcp-peers, kserve-peers, kserve-json, kserve-abuse, tcp-loss, tcp-attack and predictable, and for
# net tests, on a machine without packages: DPDK inside, and the tools that they call, Debian's Python with uvicorn too, if it
# is here. DIRECTORY.tgz has all of it, to be carried. On that machine, beside a checkout of the same commit:
#
#   BUILD=DIRECTORY tests/bench/run.sh tcp-attack
#   DIRECTORY/with-tools env DOORBELL_BUILD=DIRECTORY tests/net/tcp_loss_test.sh
#
# BUILD is the build directory (default: build-bench, made when it is not there). Hugepages are
# reserved for the run and given back after it; without the right to do so the bench runs on 4 KiB
# pages, and says so.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-$root/build-bench}
# shellcheck source=tests/bench/hugepages.sh
. "$root/tests/bench/hugepages.sh"

usage() {
    sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"
}

list() {
    cat <<END
walk               cycles per packet of the load balancer's walk, stage by stage
walk-budget        instructions per packet of the same, exact, beside their budget
walk-ab            cycles of the walk of two builds, in turn: their ratio
tcp                cycles of the TCP endpoint on the walk, beside UDP's; a million connections
conntrack          cycles of the flow table's operations, beside rte_hash, 64 k to 30 M flows
conntrack-traffic  Gbps of the walk under campus-like traffic, with flows expiring; 8 M flows
wire-100g          Gbit/s per core from end to end, generator and load balancer joined by memif
conntrack-scale    the same with 1 to N cores, and with every request opening a flow
rdma               the RoCEv2 endpoint: cycles, Gbit/s to the software RNIC, goodput against loss
flows              seconds and memory of doorbell's view of ten million flows
gpu                the loop on a GPU beside a CPU-mediated peer: posting, echo by size, the perceptron
e2e                latency and requests/s through doorbell-lb and doorbell-agent, joined by memif
pool               what choosing a worker costs, and what policies do to latency (simulated)
size               what doorbell size predicts beside what doorbell bench measures, at four loads
pool-faults        what kill -9, a halt, 100 comings and goings, and three times the load cost clients
isolation          what eight saturated services cost a ninth with a worker of its own
stop               how many requests end in silence when the load balancer is stopped under load
udp-peers          requests/s of kernel sockets through Doorbell, beside nft's DNAT to a kernel's server
tcp-peers          requests/s and CPU time of kernel TCP clients through Doorbell, HAProxy and nginx
kserve-peers       requests/s and CPU time of KServe's clients through Doorbell, HAProxy, nginx; beside a gRPC server
kserve-json        requests/s of KServe's JSON through Doorbell, and to uvicorn
tcp-loss           goodput of TCP services over a lossy wire, beside a server of the kernel's sockets
tcp-attack         what clients of a TCP service notice of a SYN flood, dripping clients and slow readers
kserve-abuse       what clients by HTTP notice of others that attack by HTTP/1.1 and gRPC
predictable        replies in time of requests with deadlines, beside a central controller
soak               what is left of an hour of mixed load with workers that come and go: nothing, if nothing leaks
pool-live          hundreds of workers that register, come, go and die, and a restarted load balancer
END
}

# build TARGET...
build() {
    [ ! -e "$build/carried" ] || return 0
    if [ ! -f "$build/build.ninja" ]; then
        meson setup --buildtype=release "$build" "$root" >&2
    fi
    ninja -C "$build" "$@" >&2
}

# run_bench NAME HUGEPAGES OPTION...
run_bench() {
    local name=$1 pages=$2
    local options=(--commit "$(commit)" --machine "$(machine)")
    shift 2
    build "tests/bench/bench-$name"
    if ! take_hugepages "$pages"; then
        echo "no hugepages to be had: running on 4 KiB pages" >&2
        options+=(--no-huge)
    fi
    "$build/tests/bench/bench-$name" "${options[@]}" "$@"
}

# has_target TARGET: can it be built here?
has_target() {
    ninja -C "$build" -t query "$1" >/dev/null 2>&1
}

# Without clang or libbpf there is none, and ports are af_packet.
build_steering() {
    ! has_target workers/runtime/steer.bpf.o || build workers/runtime/steer.bpf.o
}

programs=(doorbell-lb gpu-agent/doorbell-agent control/doorbell)

# carry_libraries PROGRAM DIRECTORY: shared libraries that do not belong to libc
carry_libraries() {
    local name arrow path rest
    while read -r name arrow path rest; do
        case $name in
        libc.so.* | libm.so.* | libdl.so.* | libpthread.so.* | librt.so.* | libresolv.so.* | linux-vdso.so.* | /*) continue ;;
        esac
        if [ "$arrow $path" = "=> not" ]; then
            echo "$1 wants $name, which is not here" >&2
            return 1
        fi
        cp -L "$path" "$2/$name"
    done < <(ldd "$1")
}

# bundle DIRECTORY [--without-mlp]
bundle() {
    local static=$root/build-static to=${1:?bundle needs a directory} name models=(echo words mlp) plugins targets=() for_gpus=()
    case ${2:-} in
    '') ;;
    --without-mlp) models=(echo words) ;;
    *)
        usage >&2
        return 2
        ;;
    esac
    if [ ! -f "$static/build.ninja" ]; then
        meson setup --buildtype=release -Dstatic=true -Dxdp=disabled "$static" "$root" >&2
    fi
    for name in walk tcp conntrack conntrack-traffic wire-100g conntrack-scale rdma e2e hogs; do
        targets+=("tests/bench/bench-$name")
    done
    targets+=("${programs[@]}")
    if has_cuda "$static"; then
        targets+=(tests/bench/bench-gpu tests/gpu/{loop,steps}_test)
        for_gpus=(tests/gpu/trap.so tests/bench/mediated_echo.so)
    fi
    plugins=("${models[@]/#/gpu-agent/models/}")
    ninja -C "$static" "${targets[@]}" "${plugins[@]/%/.so}" "${for_gpus[@]}" >&2
    mkdir -p "$to/models" "$to/digits"
    [ ${#for_gpus[@]} -eq 0 ] || cp "${for_gpus[@]/#/$static/}" "$to/models/"
    for name in "${targets[@]}"; do
        cp "$static/$name" "$to/"
        carry_libraries "$static/$name" "$to"
    done
    for name in "${models[@]}"; do
        cp "$static/gpu-agent/models/$name.so" "$to/models/"
        carry_libraries "$static/gpu-agent/models/$name.so" "$to/models"
    done
    cp "$root"/gpu-agent/models/digits/digits.{bin,safetensors} "$to/digits/"
    cp "$root"/tests/{bench/e2e/e2e,bench/hugepages,gpu/one_fault}.sh "$to/"
    commit >"$to/commit"
    [ -r "$to/models/mlp.so" ] || echo "without the model mlp, which needs OpenBLAS" >&2
    ls "$to" "$to/models"
}

net_programs=("${programs[@]}" gpu-agent/models/echo.so tests/net/stream/{tcp-stream,stream.so}
    tests/bench/bench-{tcp,tcp-load,wire-100g,udp-peers,controller,http-respond,grpc-echo} tests/bench/timed_{small,middle,large}.so
    workers/runtime/steer.bpf.o)
net_tools=(ip ss ethtool jq nft haproxy nginx wrk h2load)

# carry_python DIRECTORY: Debian's Python there, with what kserve-json's peer needs
carry_python() {
    local modules=(uvicorn uvloop httptools starlette click h11 asgiref anyio sniffio idna typing_extensions.py) name python to=$1 at
    python=$(realpath /usr/bin/python3)
    /usr/bin/python3 -c "import uvicorn, uvloop, httptools, starlette, ujson" 2>/dev/null ||
        { echo "without uvicorn, which is not here" >&2 && return; }
    mkdir -p "$to/lib/${python##*/}" "$to/packages"
    cp "$python" "$to/python3"
    (cd "/usr/lib/${python##*/}" && tar --exclude=test --exclude=__pycache__ --exclude='config-*' --exclude=idlelib \
        --exclude=lib2to3 --exclude=pydoc_data -cf - .) | tar -C "$to/lib/${python##*/}" -xf -
    for name in "${modules[@]}"; do
        at=/usr/lib/python3/dist-packages/$name
        [ ! -e "$at" ] || (cd /usr/lib/python3/dist-packages && tar --exclude=__pycache__ -cf - "$name") | tar -C "$to/packages" -xf -
    done
    cp /usr/lib/python3/dist-packages/ujson.*.so "$to/packages/"
    # Its libraries may want a newer libc than that machine has, so it brings its own.
    mkdir -p "$to/libc"
    cp -L /lib64/ld-linux-x86-64.so.2 /lib/x86_64-linux-gnu/lib{c,m,dl,pthread,rt,util,resolv}.so.[0-9] "$to/libc/"
    carry_libraries "$python" "$to/../tools"
    find "$to" -name '*.so' -exec sh -c 'ldd "$1"' sh {} \; | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
        grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv)\.so' | xargs -r cp -Lt "$to/../tools"
}

# bundle-net DIRECTORY
bundle_net() {
    local static=$root/build-static to=${1:?bundle-net needs a directory} name path
    [ -f "$static/build.ninja" ] || meson setup --buildtype=release -Dstatic=true "$static" "$root" >&2
    meson configure "$static" -Dxdp=enabled
    ninja -C "$static" "${net_programs[@]}" >&2
    mkdir -p "$to/tools"
    for name in "${net_programs[@]}"; do
        mkdir -p "$(dirname "$to/$name")"
        cp "$static/$name" "$to/$name"
        [[ $name == *.o ]] || carry_libraries "$static/$name" "$to/tools"
    done
    for name in "${net_tools[@]}"; do
        path=$(command -v "$name") || { echo "without $name, which is not here" >&2 && continue; }
        cp -L "$path" "$to/tools/"
        carry_libraries "$path" "$to/tools"
    done
    carry_python "$to/python"
    cp -L /usr/lib/nginx/modules/ngx_stream_module.so "$to/tools/" || echo "without nginx's stream module" >&2
    cat >"$to/with-tools" <<'END'
#!/bin/bash
# with-tools COMMAND...: finds the tools of this folder, and their libraries
here=$(cd "$(dirname "$0")" && pwd)
export PATH=$here/tools:$PATH LD_LIBRARY_PATH=$here/tools NGINX_STREAM_MODULE=$here/tools/ngx_stream_module.so
if [ -e "$here/python/python3" ]; then
    # The machine's own Python, if it has one, must not see these.
    cat >"$here/tools/bench-python" <<WRAPPER
#!/bin/sh
PYTHONHOME=$here/python PYTHONPATH=$here/python/packages:\$PYTHONPATH exec $here/python/libc/ld-linux-x86-64.so.2 \
    --library-path $here/python/libc:$here/tools $here/python/python3 "\$@"
WRAPPER
    chmod +x "$here/tools/bench-python"
    export BENCH_PYTHON=$here/tools/bench-python
fi
exec "$@"
END
    chmod +x "$to/with-tools"
    find "$to" -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF && strip --strip-unneeded "$1"' sh {} \; || true
    commit >"$to/carried"
    tar -C "$to" -czf "${to%/}.tgz" .
    du -sh "$to" "${to%/}.tgz"
}

# Was there an nvcc when the folder was configured?
has_cuda() {
    ninja -C "$1" build.ninja >/dev/null
    ninja -C "$1" -t query tests/bench/bench-gpu >/dev/null 2>&1
}

gpu() {
    build gpu-agent/models/{echo,mlp}.so
    if ! has_cuda "$build"; then
        echo "skipped: built without CUDA"
        return 77
    fi
    build tests/bench/bench-gpu
    "$build/tests/bench/bench-gpu" --commit "$(commit)" "$@"
}

e2e() {
    build tests/bench/bench-{e2e,hogs} "${programs[@]}" gpu-agent/models/{echo,mlp}.so
    # It has hugepages of its own to give back.
    BUILD=$build exec "$root/tests/bench/e2e/e2e.sh" --commit "$(commit)" "$@"
}

pool() {
    build tests/bench/bench-pool
    "$build/tests/bench/bench-pool" --commit "$(commit)" --machine "$(machine)" "$@"
}

size() {
    build "${programs[@]}" gpu-agent/models/echo.so
    BUILD=$build exec "$root/tests/bench/stories/size.sh" --commit "$(commit)" --machine "$(machine)" "$@"
}

flows() {
    build tests/bench/bench-flows
    "$build/tests/bench/bench-flows" "$@"
}

# A folder of bundle-net brings its tools.
if [ -e "$build/carried" ] && [ -z "${NGINX_STREAM_MODULE:-}" ]; then
    exec "$build/with-tools" "$0" "$@"
fi

trap give_back_hugepages EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

case ${1:-} in
walk)
    shift
    # 1792 MiB and a few pages that the EAL wants on top
    run_bench walk 1024 "$@"
    ;;
walk-ab)
    shift
    take_hugepages 1024 || set -- "$@" --no-huge
    "$root/tests/bench/walk/walk_ab.sh" "$@"
    ;;
walk-budget)
    shift
    build tests/bench/bench-walk-budget
    "$root/tests/bench/walk/walk_budget.py" "$build/tests/bench/bench-walk-budget" "$@"
    ;;
conntrack)
    shift
    # 8 million flows in three tables, or 30 million in two
    run_bench conntrack 5200 "$@"
    ;;
tcp)
    shift
    # 2560 MiB and a few pages that the EAL wants on top
    run_bench tcp 1400 "$@"
    ;;
conntrack-traffic)
    shift
    if [ "${1:-}" = --write ]; then
        build tests/bench/bench-conntrack-traffic
        "$build/tests/bench/bench-conntrack-traffic" "$@"
    else
        run_bench conntrack-traffic 1700 "$@"
    fi
    ;;
wire-100g | conntrack-scale | rdma)
    name=$1
    shift
    build "tests/bench/bench-$name"
    run_bench "$name" "$("$build/tests/bench/bench-$name" "$@" --print-pages 2>/dev/null)" "$@"
    ;;
bundle)
    shift
    bundle "$@"
    ;;
bundle-net)
    shift
    bundle_net "$@"
    ;;
pool-faults)
    shift
    build "${programs[@]}" gpu-agent/models/echo.so tests/net/client/doorbell-client
    BUILD=$build exec "$root/tests/bench/stories/pool_faults.sh" --commit "$(commit)" --machine "$(machine)" "$@"
    ;;
isolation)
    shift
    build "${programs[@]}" gpu-agent/models/echo.so
    BUILD=$build exec "$root/tests/bench/stories/isolation.sh" --commit "$(commit)" --machine "$(machine)" "$@"
    ;;
stop)
    shift
    build "${programs[@]}" gpu-agent/models/echo.so tests/net/client/doorbell-client
    BUILD=$build exec "$root/tests/bench/stories/stop.sh" --commit "$(commit)" --machine "$(machine)" "$@"
    ;;
pool-live)
    shift
    build "${programs[@]}" tests/bench/bench-pool-workers
    BUILD=$build exec "$root/tests/bench/pool/pool_live.sh" --commit "$(commit)" --machine "$(machine)" "$@"
    ;;
udp-peers)
    shift
    build "${programs[@]}" gpu-agent/models/echo.so tests/bench/bench-udp-peers
    build_steering
    BUILD=$build exec "$root/tests/bench/peers/udp_peers.sh" --commit "$(commit)" --machine "$(machine)" "$@"
    ;;
soak)
    shift
    build "${programs[@]}" gpu-agent/models/echo.so
    build_steering
    BUILD=$build exec "$root/tests/bench/soak/soak.sh" --commit "$(commit)" --machine "$(machine)" "$@"
    ;;
predictable)
    shift
    build "${programs[@]}" tests/bench/bench-controller tests/bench/timed_{small,middle,large}.so
    build_steering
    BUILD=$build exec "$root/tests/bench/predictable/predictable.sh" --commit "$(commit)" --machine "$(machine)" "$@"
    ;;
kserve-peers | kserve-json)
    name=$1
    shift
    build "${programs[@]}" gpu-agent/models/echo.so tests/bench/bench-http-respond
    ! has_target tests/bench/bench-grpc-echo || build tests/bench/bench-grpc-echo
    build_steering
    BUILD=$build exec "$root/tests/bench/peers/${name/-/_}.sh" --commit "$(commit)" --machine "$(machine)" "$@"
    ;;
tcp-peers | tcp-loss | tcp-attack)
    name=$1
    shift
    build doorbell-lb gpu-agent/doorbell-agent control/doorbell gpu-agent/models/echo.so \
        tests/net/stream/tcp-stream tests/net/stream/stream.so
    build_steering
    BUILD=$build exec "$root/tests/bench/peers/${name/-/_}.sh" --commit "$(commit)" --machine "$(machine)" "$@"
    ;;
kserve-abuse)
    shift
    build "${programs[@]}" gpu-agent/models/echo.so tests/bench/bench-tcp-load
    build_steering
    BUILD=$build exec "$root/tests/bench/peers/kserve_abuse.sh" --commit "$(commit)" --machine "$(machine)" "$@"
    ;;
flows | pool)
    "$@"
    ;;
e2e | gpu | size)
    "$@"
    ;;
list)
    list
    ;;
-h | --help)
    usage
    ;;
*)
    usage >&2
    exit 2
    ;;
esac
