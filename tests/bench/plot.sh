#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Draw what benches wrote with --json: one SVG for each file.
#
#   tests/bench/plot.sh [--to DIRECTORY] [FILE.json]...
#
# Without files: those of tests/bench/results that it knows how to draw. They are drawn into
# tests/bench/results, unless --to says otherwise. It knows conntrack, conntrack-traffic,
# conntrack-scale, gpu and gpu-models. Points are medians, bars go from p10 to p90. Needs jq and gnuplot-nox
# (deploy/packages.txt, group bench).
set -euo pipefail

to=$(cd "$(dirname "$0")" && pwd)/results
work=$(mktemp -d /tmp/doorbell-plot.XXXXXX)
trap 'rm -rf "$work"' EXIT

# series FILE PATTERN FILTER: "x median p10 p90" of each metric that matches; x is what FILTER makes
# of the pattern's group x.
series() {
    jq -r --arg pattern "$2" '. as $file | .metrics | keys[] | . as $name | capture($pattern)
        | [(.x | '"$3"'), $file.metrics[$name], $file.spread[$name][]] | map(tostring)
        | join(" ")' "$1" | sort -g
}

# What was measured, of what and where.
title() {
    jq -r '"tests/bench/run.sh \(.bench) --runs \(.runs), commit \(.commit)\n\(.machine), \(.pages)"' \
        "$1" | tr -d '"\\' | sed ':a; N; s/\n/\\n/; ba'
}

# begin FILE WIDTH PANELS
begin() {
    cat <<END
set terminal svg size $2,460 noenhanced font "sans,11" background "white"
set linetype 1 lc rgb "#0072b2" lw 2 pt 7 ps 0.5
set linetype 2 lc rgb "#d55e00" lw 2 pt 5 ps 0.5
set linetype 3 lc rgb "#009e73" lw 2 pt 9 ps 0.5
set linetype 4 lc rgb "#cc79a7" lw 2 pt 13 ps 0.5
set pointintervalbox 0
set grid ytics lc rgb "#dddddd"
set key top left Left reverse samplen 2
set offsets graph 0.06, graph 0.06, graph 0.25, 0
set yrange [0:*]
set multiplot layout 1,$3 title "$(title "$1")"
END
}

# add_curve DATA LINETYPE NAME: one more for the next panel, if there is such data
curves=
add_curve() {
    [ -s "$1" ] || return 0
    curves+="${curves:+, }'$1' using 1:2 with linespoints linetype $2 title '$3'"
    curves+=", '$1' using 1:2:3:4 with yerrorbars linetype $2 notitle"
}

# panel TITLE: the curves added since the last one
panel() {
    echo "set title '$1'"
    echo "${curves:+plot $curves}"
    [ -n "$curves" ] || echo "set multiplot next"
    curves=
}

conntrack_panel() {
    local file=$1 suffix=$3 number=1 what side data
    local flows='{"64k": 65536, "1m": 1000000, "8m": 8000000, "30m": 30000000}[.]'
    for what in hit step; do
        for side in "" rte_hash_; do
            data=$work/$side$what$suffix
            series "$file" "^$side${what}_cycles_(?<x>64k|1m|8m|30m)$suffix\$" "$flows" >"$data"
            if [ -z "$side" ]; then
                add_curve "$data" $number "$what"
            else
                add_curve "$data" $number "$what, bare rte_hash"
            fi
            number=$((number + 1))
        done
    done
    panel "$2"
}

draw_conntrack() {
    begin "$1" 1320 3
    echo 'set logscale x
        set xtics ("64 k" 65536, "1 M" 1000000, "8 M" 8000000, "30 M" 30000000)
        set xlabel "flows, at 80 % load"
        set ylabel "TSC cycles per packet, bursts of 32"'
    conntrack_panel "$1" "IPv4, uniform" ""
    conntrack_panel "$1" "IPv4, Zipf 1.1" _zipf
    conntrack_panel "$1" "IPv6, uniform" _v6
}

# scale_panel FILE TITLE METRIC: its curve for each part
scale_panel() {
    local file=$1 metric=$3
    series "$file" "^${metric}_(?<x>[0-9]+)_lcores?\$" tonumber >"$work/$metric.1024b"
    series "$file" "^${metric}_64b_(?<x>[0-9]+)_lcores?\$" tonumber >"$work/$metric.64b"
    series "$file" "^new_${metric}_(?<x>[0-9]+)_lcores?\$" tonumber >"$work/$metric.new"
    add_curve "$work/$metric.1024b" 1 "1024 B"
    add_curve "$work/$metric.64b" 2 "64 B"
    add_curve "$work/$metric.new" 3 "64 B, every request a new flow"
    [ "$metric" != mpps ] || add_ideal "$work/$metric"
    panel "$2"
}

# What as many lcores would do if each did what one alone does.
add_ideal() {
    local number=1 part one
    for part in 1024b 64b new; do
        one=$(awk '$1 == 1 { print $2 }' "$1.$part")
        [ -z "$one" ] || curves+=", $one * x with lines linetype $number dashtype 2 linewidth 1 notitle"
        number=$((number + 1))
    done
}

draw_conntrack_scale() {
    begin "$1" 1320 3
    echo 'set xtics 1
        set xlabel "load balancer lcores"
        set ylabel "million requests per second"'
    scale_panel "$1" "as measured" mpps
    echo 'set ylabel "rate / (lcores x rate of one)"'
    scale_panel "$1" "share of linear" linear
    echo 'set ylabel "TSC cycles per request, its reply included"'
    scale_panel "$1" "cost" cycles_per_request
}

draw_conntrack_traffic() {
    begin "$1" 780 1
    jq -r '. as $file | [["insert_only_1010b", "flows only begin,\\n1010 B"],
            ["with_deletion_1010b", "begin and end,\\n1010 B"],
            ["with_deletion_980b", "begin and end,\\n980 B"], ["forward", "5-tuple swap,\\n1010 B"]][]
        | . as [$name, $text] | ({forward: "forward_gbps_1010b"}[$name] // "gbps_\($name)")
        | [$file.metrics[.], $file.spread[.][0], $file.spread[.][1], "\"\($text)\""]
        | map(tostring) | join(" ")' "$1" >"$work/traffic"
    echo 'set style fill solid 0.8
        set boxwidth 0.6
        unset key
        set bmargin 4
        set ylabel "Gbit/s on one lcore, frames without FCS"'
    echo "plot '$work/traffic' using 0:1:xticlabel(4) with boxes linetype 1," \
        "'' using 0:2:(0):(\$3 - \$2) with vectors heads size 0.06,90 linecolor rgb 'black'," \
        "'' using 0:1:(sprintf('%.1f', \$1)) with labels offset 3,0.7"
}

# gpu_panel FILE TITLE MODEL PEER
gpu_panel() {
    local sizes='{"64b": 64, "1kib": 1024, "16kib": 16384, "256kib": 262144, "588kib": 602112,
        "1mib": 1048576, "4mib": 4194304}[.]'
    series "$1" "^$3_p50_us_(?<x>[0-9a-z]+)\$" "$sizes" >"$work/$3"
    series "$1" "^$4_p50_us_(?<x>[0-9a-z]+)\$" "$sizes" >"$work/peer_$3"
    add_curve "$work/$3" 1 "posted by the GPU"
    add_curve "$work/peer_$3" 2 "mediated by a CPU, the strongest peer"
    panel "$2"
}

draw_gpu() {
    begin "$1" 1040 2
    echo 'set logscale xy
        set yrange [4:400]
        set xtics ("64 B" 64, "1 KiB" 1024, "16 KiB" 16384, "256 KiB" 262144, "4 MiB" 4194304)
        set xlabel "bytes of request and of reply"
        set ylabel "p50, us, mark in the ring to doorbell"'
    gpu_panel "$1" "gather, a kernel, scatter" echo strongest_peer
    gpu_panel "$1" "a kernel in place" in_place peer_in_place_in_place
}

# Results of --quick have neither eager PyTorch nor aiohttp.
draw_gpu_models() {
    begin "$1" 1040 2
    jq -r '. as $f | ["mlp", "superres", "squeezenet", "resnet50"][] | . as $m
        | [$m] + [("", "strongest_peer_", "plain_", "http_") | $f.metrics["\(.)\($m)_p50_us"]]
        | map(. // "nan" | tostring) | join(" ")' "$1" >"$work/models"
    jq -r '. as $f | ["mlp", "superres", "squeezenet", "resnet50"][] | . as $m
        | $f.metrics["\($m)_alone_us"] as $alone
        | [$m] + [("", "strongest_peer_") | $f.metrics["\(.)\($m)_p50_us"] - $alone]
        | map(tostring) | join(" ")' "$1" >"$work/overheads"
    echo 'set style data histogram
        set style histogram clustered gap 1
        set style fill solid 0.8
        set boxwidth 0.9
        set logscale y
        set yrange [10:30000]
        set ylabel "p50 of one request, us"
        set title "from request to reply"'
    echo "plot '$work/models' using 2:xticlabel(1) linetype 1 title 'posted by the GPU'," \
        "'' using 3 linetype 2 title 'CPU-mediated, CUDA graph'" \
        "$(jq -r --arg file "$work/models" '.metrics
            | (if has("plain_mlp_p50_us") then ", \"\($file)\" using 4 linetype 3 title \"eager PyTorch, same rings\"" else "" end)
            + (if has("http_mlp_p50_us") then ", \"\($file)\" using 5 linetype 4 title \"aiohttp, eager PyTorch\"" else "" end)' "$1")"
    echo 'unset logscale y
        set yrange [0:80]
        set ylabel "us beside the graph itself"
        set title "overhead"'
    echo "plot '$work/overheads' using 2:xticlabel(1) linetype 1 title 'posted by the GPU'," \
        "'' using 3 linetype 2 title 'CPU-mediated, CUDA graph'"
}

# known FILE: of a bench that can be drawn
known() {
    [[ $(jq -r .bench "$1") =~ ^(conntrack(-scale|-traffic)?|gpu(-models)?)$ ]]
}

# draw FILE
draw() {
    local bench svg
    bench=$(jq -r .bench "$1")
    svg=$to/$(basename "$1" .json).svg
    "draw_${bench//-/_}" "$1" >"$work/commands"
    gnuplot "$work/commands" >"$work/svg"
    cp "$work/svg" "$svg"
    echo "$svg"
}

if [ "${1:-}" = --to ]; then
    to=${2:?--to needs a directory}
    shift 2
fi
case ${1:-} in
-*)
    sed -n '4,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
if ! command -v gnuplot >/dev/null || ! command -v jq >/dev/null; then
    echo "plot.sh needs gnuplot-nox and jq" >&2
    exit 1
fi
if [ $# -eq 0 ]; then
    for file in "$to"/*.json; do
        ! known "$file" || draw "$file"
    done
    exit 0
fi
for file; do
    if ! known "$file"; then
        echo "$file: not of a bench that can be drawn" >&2
        exit 1
    fi
    draw "$file"
done
