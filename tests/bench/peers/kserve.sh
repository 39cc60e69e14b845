# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Shared by the benches of KServe: loads by wrk and h2load, checked and with the CPU time that servers took;
# sourced, behind proxies.sh.

# cpu_ticks PID...: CPU time of the processes so far, in ticks
cpu_ticks() {
    local pid
    for pid; do
        sed 's/.*) //' "/proc/$pid/stat"
    done | awk '{ sum += $12 + $13 } END { print sum }'
}

# thread_ticks PID: the same of each of its threads: number and ticks
thread_ticks() {
    sed -E 's/^([0-9]+) .*\) /\1 /' /proc/"$1"/task/*/stat | awk '{ print $1, $13 + $14 }'
}

# wrong PART WHY: shows what there is to see, and ends the bench
wrong() {
    echo "$1: $2" >&2
    tail -n 5 "$dir"/*.log >&2 || true
    ! cli version >/dev/null 2>&1 || cli stats --all | grep -v '^ *0 ' >&2
    exit 1
}

# measured PART PID... -- COMMAND...: runs COMMAND in the clients' namespace, its output in $dir/asked and
# $dir/ask.log; $own_s is the CPU time that it took, $server_s a list of those of the PIDs, $busiest_s of the busiest
# thread of each.
measured() {
    local part=$1 pids=() before=() i hz
    hz=$(getconf CLK_TCK)
    shift
    while [ "$1" != -- ]; do
        pids+=("$1")
        before+=("$(cpu_ticks "$1")")
        thread_ticks "$1" >"$dir/threads.${#pids[@]}"
        shift
    done
    shift
    local TIMEFORMAT='%U %S'
    { time ip netns exec "$tag-client" "$@" >"$dir/asked" 2>"$dir/ask.log" || wrong "$part" "$* failed"; } 2>"$dir/took"
    own_s=$(awk '{ print $1 + $2 }' "$dir/took")
    server_s='' busiest_s=''
    for i in "${!pids[@]}"; do
        server_s+="${server_s:+,}$(awk -v hz="$hz" -v ticks=$(($(cpu_ticks "${pids[i]}") - before[i])) \
            'BEGIN { print ticks / hz }')"
        busiest_s+="${busiest_s:+,}$(awk -v hz="$hz" '
            NR == FNR { before[$1] = $2; next }
            { n = $2 - before[$1]; if (n > most) most = n }
            END { print most / hz }' "$dir/threads.$((i + 1))" <(thread_ticks "${pids[i]}"))"
    done
}

# ask_wrk PART ADDRESS BODY JSON-LENGTH TYPE PID...: a line of figures in $dir/figures. The last PID is the server's or
# the worker's, those before it are the proxy's.
ask_wrk() {
    local part=$1 to=$2 body=$3 json_length=$4 type=$5
    shift 5
    BODY=$body JSON_LENGTH=$json_length BODY_TYPE=$type measured "$part" "$@" -- \
        wrk --threads "$load_threads" --connections "$connections" --duration "${seconds}s" --timeout 20s \
        --script "$root/tests/bench/peers/kserve_wrk.lua" "http://$to:8500/v2/models/echo/infer"
    jq -e '.errors == 0 and .requests > 0' "$dir/ask.log" >/dev/null || wrong "$part" "$(cat "$dir/asked" "$dir/ask.log")"
    jq -c --arg part "$part" --argjson size "${size:-0}" --argjson own "$own_s" --argjson servers "[$server_s]" \
        --argjson busiest "[$busiest_s]" \
        '{part: $part, size: $size, rps: (.requests / .seconds), p50_us, p99_us, load_cpu: ($own / .seconds),
          busiest_cpu: (.seconds as $took | $busiest | map(. / $took)),
          cpu_s_per_million: ($servers | map(. * 1e6))} | .cpu_s_per_million |= map(. / '"$(jq .requests "$dir/ask.log")"')' \
        "$dir/ask.log" >>"$dir/figures"
}

# ask_h2load PART ADDRESS MESSAGE PID...: the same by gRPC; each answer must have as many bytes as the message, nearly
ask_h2load() {
    local part=$1 to=$2 message=$3 requests failed took bytes
    shift 3
    measured "$part" "$@" -- h2load --threads "$load_threads" --clients "$grpc_connections" \
        --max-concurrent-streams $((connections / grpc_connections)) --duration "$seconds" --data "$message" \
        --header "content-type: application/grpc" --header "te: trailers" --window-bits 24 --connection-window-bits 26 \
        "http://$to:8500/inference.GRPCInferenceService/ModelInfer"
    # requests, those that did not succeed, seconds, bytes of data
    read -r requests failed took bytes < <(awk '
        /^finished in/ { took = $3 + 0; if ($3 ~ /ms/) took /= 1000 }
        /^requests:/ { for (i = 3; i <= NF; i += 2) n[$i] = $(i - 1) }
        /^traffic:/ { for (i = 2; i < NF; i++) if ($(i + 1) ~ /^data/) bytes = substr($i, 2) + 0 }
        END { print n["done,"], n["failed,"] + n["errored,"] + n["timeout"], took, bytes }' "$dir/asked")
    if [ "${requests:-0}" -eq 0 ] || [ "$failed" -ne 0 ] || [ "$bytes" -lt $((requests * size)) ]; then
        wrong "$part" "$(cat "$dir/asked")"
    fi
    jq -nc --arg part "$part" --argjson size "$size" --argjson own "$own_s" --argjson servers "[$server_s]" \
        --argjson n "$requests" --argjson took "$took" --argjson busiest "[$busiest_s]" \
        '{part: $part, size: $size, rps: ($n / $took), load_cpu: ($own / $took), busiest_cpu: ($busiest | map(. / $took)),
          cpu_s_per_million: ($servers | map(. * 1e6 / $n))}' >>"$dir/figures"
}

# ask_once ADDRESS BODY JSON-LENGTH TYPE: one request by HTTP, its answer in $dir/answer
ask_once() {
    {
        printf 'POST /v2/models/echo/infer HTTP/1.1\r\nHost: %s:8500\r\nConnection: close\r\nContent-Type: %s\r\n' "$1" "$4"
        [ -z "$3" ] || printf 'Inference-Header-Content-Length: %d\r\n' "$3"
        printf 'Content-Length: %d\r\n\r\n' "$(stat -c %s "$2")"
        cat "$2"
    } >"$dir/asking"
    # shellcheck disable=SC2016
    ip netns exec "$tag-client" timeout 20 bash -c 'exec 3<>"/dev/tcp/$0/8500" && cat "$1" >&3 && cat <&3 >"$2"' \
        "$1" "$dir/asking" "$dir/answer" 2>"$dir/ask.log" && head -n 1 "$dir/answer" | grep -q "^HTTP/1.1 200 "
}
