#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What doorbell size says beside what reads and calls measured.

    compare.py DOORBELL DIRECTORY [--json FILE] [--commit TEXT] [--machine TEXT]

DIRECTORY has what `reads` printed (reads) and what `calls` wrote (measured, NAME.trace).
"""
import argparse
import json
import pathlib
import statistics
import subprocess

KNEE = 0.8  # of the highest throughput of a size: beyond, the link or the tags are the bound


def size(doorbell, *words):
    done = subprocess.run([doorbell, "size", *words, "--json"], stdout=subprocess.PIPE, text=True)
    if done.returncode > 1:
        raise SystemExit(f"doorbell size {' '.join(words)} failed")
    return json.loads(done.stdout)


def percent(predicted, measured):
    return (predicted - measured) / measured * 100


def reads(doorbell, folder):
    """The round trip comes from one warp that reads 128 bytes at a time; all else is predicted."""
    rows = [list(map(float, line.split())) for line in (folder / "reads").read_text().splitlines()]
    rtt_us = next(row[3] for row in rows if row[0] == 128 and row[1] == 1)
    points = []
    for read_bytes, warps, gbs, us, least, most in rows:
        rate = size(doorbell, "reads", "--tags", str(warps), "--read-bytes", str(read_bytes), "--rtt-us", str(rtt_us))
        best = max(row[2] for row in rows if row[0] == read_bytes)
        points.append({"read_bytes": int(read_bytes), "outstanding": int(warps), "gbytes_per_s": gbs, "read_us": us,
                       "read_us_least": least, "read_us_most": most,
                       "predicted_gbytes_per_s": rate["bytes_per_second"] / 1e9,
                       "error_pct": percent(rate["bytes_per_second"] / 1e9, gbs),
                       "below_knee": rate["bytes_per_second"] / 1e9 <= KNEE * best,
                       "used_to_fit": read_bytes == 128 and warps == 1})
    return rtt_us, points


def calls(doorbell, folder):
    """Send and receive come from sockets alone, a trace's times from its calls beside the GPU."""
    lines = [line.split() for line in (folder / "measured").read_text().splitlines()]
    (_, send_us, receive_us), lines = lines[0], lines[1:]
    points = []
    for name, rtt_us, gbps, local, remote, least, most in lines:
        trace = folder / f"{name}.trace"
        repeat = int(trace.read_text().split()[1])
        said = size(doorbell, "calls", str(trace), "--rtt-us", rtt_us, "--gbps", gbps, "--send-us", send_us,
                    "--receive-us", receive_us)
        local, remote = float(local), float(remote)
        point = {"program": name, "rtt_us": float(rtt_us), "gbps": float(gbps), "local_us": local, "remote_us": remote,
                 "remote_us_least": float(least), "remote_us_most": float(most), "slow_down": remote / local}
        for model, prefix in (("queues", ""), ("published", "published_")):
            predicted = said[prefix + "remote_us"] / said["local_us"]
            point[model] = {"remote_us": said[prefix + "remote_us"] / repeat, "local_us": said["local_us"] / repeat,
                            "slow_down": predicted, "error_pct": percent(predicted, remote / local)}
        points.append(point)
    return float(send_us), float(receive_us), points


def worst(errors):
    return max(map(abs, errors))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("doorbell")
    parser.add_argument("directory", type=pathlib.Path)
    for option in ("json", "commit", "machine"):
        parser.add_argument("--" + option, default="")
    o = parser.parse_args()
    rtt_us, read_points = reads(o.doorbell, o.directory)
    below = [p["error_pct"] for p in read_points if p["below_knee"] and not p["used_to_fit"]]
    metrics = {"reads_rtt_us": rtt_us, "reads_error_pct_median": statistics.median(map(abs, below)),
               "reads_error_pct_worst": worst(below), "reads_points": len(below)}
    send_us, receive_us, call_points = calls(o.doorbell, o.directory)
    metrics |= {"calls_send_us": send_us, "calls_receive_us": receive_us}
    for model in ("queues", "published"):
        for name in sorted({p["program"] for p in call_points}):
            errors = [p[model]["error_pct"] for p in call_points if p["program"] == name]
            metrics[f"calls_{model}_{name}_error_pct_median"] = statistics.median(map(abs, errors))
            metrics[f"calls_{model}_{name}_error_pct_worst"] = worst(errors)
    for p in call_points:
        print(f"{p['program']:7} rtt {p['rtt_us']:4.0f} us, {p['gbps']:4.0f} Gbit/s: {p['local_us']:7.1f} -> "
              f"{p['remote_us']:8.1f} us, {p['slow_down']:6.2f} times; with queues {p['queues']['slow_down']:6.2f} "
              f"({p['queues']['error_pct']:+6.1f} %), published {p['published']['slow_down']:6.2f} "
              f"({p['published']['error_pct']:+6.1f} %); local predicted {p['queues']['local_us']:.1f}")
    for key, value in metrics.items():
        print(f"{key} {value:.2f}")
    if o.json:
        result = {"bench": "remote", "commit": o.commit, "machine": o.machine, "metrics": metrics,
                  "points": {"reads": read_points, "calls": call_points}}
        pathlib.Path(o.json).write_text(json.dumps(result, indent=1) + "\n")


main()
