#!/usr/bin/env python3
"""Measures the search on the GPUs of this machine in one call and prints one table.

    scripts/measure_gpu.py BINARY [--before BINARY] [--seconds S] [--minute] [--runs R] [--only REGEX]
    scripts/measure_gpu.py kernels [--folder KERNELS] [--option=-D...] [--exact LAUNCHES] [--sanitize]

The first form runs `npubbot bench` of both binaries in turn, each row R times: one pattern, many,
with less shared memory, with less energy, whole keys, several GPUs, and the time from the prompt to
a key. `--minute` measures the first rows for a minute each. It fails at a wrong hit. The last column
has the share of a core that the busiest thread of the host takes.

The second form compiles `kernel_bench.cu` with nvcc (`NVCC`), and compares the hits of every variant
with those of keys computed in full (`--exact 17`: 10 million hits of each), checks them with
compute-sanitizer, and measures rate, energy and the real clock of each variant.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MIDDLE, SMALL = ["--shared-memory", "101376"], ["--shared-memory", "65536"]
# Name, arguments of `bench`, and whether `--minute` measures the row for a minute.
ROWS = [
    ("1 pattern", ["--patterns", "1"], True),
    ("1 pattern, --prefer energy", ["--patterns", "1", "--prefer", "energy"], True),
    ("16 intervals", ["~satosh"], False),
    ("1,000 patterns", ["--patterns", "1000"], False),
    ("10,000 patterns", ["--patterns", "10000"], True),
    ("10,000 patterns, --prefer energy", ["--patterns", "10000", "--prefer", "energy"], False),
    ("100,000 patterns", ["--patterns", "100000"], False),
    ("1 pattern, 99 KB", ["--patterns", "1", *MIDDLE], False),
    ("10,000 patterns, 99 KB", ["--patterns", "10000", *MIDDLE], False),
    ("1 pattern, 64 KB", ["--patterns", "1", *SMALL], False),
    ("*cafe7", ["*cafe7"], False),
    ("*cafe7, 99 KB", ["*cafe7", *MIDDLE], False),
    ("*cafe7, 64 KB", ["*cafe7", *SMALL], False),
    ("*cafe7, none of it", ["*cafe7", "--shared-memory", "0"], False),
    ("=7*", ["=7*"], False),
    ("=7*, 99 KB", ["=7*", *MIDDLE], False),
    ("*al7cet*", ["*al7cet*"], False),
    ("*al7cet*, 99 KB", ["*al7cet*", *MIDDLE], False),
    ("*al7cet*, none of it", ["*al7cet*", "--shared-memory", "0"], False),
]
# Starts of `mine` that are timed, after one that measures the GPU.
STARTS = 12


def gpu_count():
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True)
    return len(listed.stdout.strip().splitlines())


def bench(binary, gpus, arguments, seconds):
    """The benchmark's JSON object; `None` if this binary does not know the arguments."""
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))}
    command = [binary, "bench", "--device", "cuda", "--seconds", str(seconds), "--json", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as running:
        busiest = busiest_thread(running, seconds)
        out, errors = running.communicate()
    if running.returncode == 2:
        return None
    if running.returncode != 0:
        sys.exit(f"{' '.join(command)}: {errors}")
    row = json.loads(out) | {"busiest": busiest}
    if row["hits_wrong"]:
        sys.exit(f"wrong hits: {row}")
    return row


def busiest_thread(running, seconds):
    """Name and share of a core of the thread that works most in the last half of a run."""

    def times():
        found = {}
        for task in pathlib.Path(f"/proc/{running.pid}/task").glob("*"):
            try:
                used = int((task / "schedstat").read_text().split()[0]) / 1e9
                found[task.name] = ((task / "comm").read_text().strip(), used)
            except (OSError, IndexError):
                pass
        return found

    before, began, last = {}, time.monotonic(), ("", 0.0)
    while running.poll() is None:
        time.sleep(min(0.5, seconds / 8))
        now, passed = times(), time.monotonic() - began
        if not before and passed >= seconds / 2:
            before, began = now, time.monotonic()
        elif before and now and passed > 0.2:
            shares = [((used - before.get(task, ("", 0))[1]) / passed, name) for task, (name, used) in now.items()]
            share, name = max(shares)
            last = (name, share)
        if before and not now:
            break
    return last


def show(name, who, rows, note=""):
    rates = ", ".join(f"{row['candidates_per_second'] / 1e9:.1f}" for row in rows)
    gpus = max(len(row["gpus"]) for row in rows)
    watts = statistics.mean(row["watts"] or 0 for row in rows) / gpus
    joules = statistics.mean(row["candidates_per_joule"] or 0 for row in rows) / 1e6
    found, expected = (sum(row[key] for row in rows) for key in ("hits_found", "hits_expected"))
    off = (found - expected) / max(expected, 1) ** 0.5
    thread, share = max((row["busiest"] for row in rows), key=lambda busiest: busiest[1])
    print(
        f"| {name} | {who} | {rates} | {watts:.0f} | {joules:.0f} "
        f"| {found:,} / {expected:,.0f} ({off:+.1f} sd) | {note} | {thread} {100 * share:.0f} % |",
        flush=True,
    )


def in_turns(binaries, gpus, arguments, seconds, runs):
    """The rows of each binary, which run in turn."""
    rows = {who: [] for who, _ in binaries}
    for _ in range(runs):
        for who, binary in binaries:
            row = bench(binary, gpus, arguments, seconds)
            if row:
                rows[who].append(row | {"gpus": gpus})
    return rows


def starts(binaries):
    """Times `mine` from its start to the key and to its end, with a kept choice of the GPU's kernels."""
    for who, binary in binaries:
        with tempfile.TemporaryDirectory() as cache:
            environment = os.environ | {"XDG_CACHE_HOME": cache, "HOME": cache}
            times = []
            for _ in range(STARTS + 1):
                began = time.monotonic()
                command = [binary, "mine", "m0ctane", "--device", "cuda"]
                null = subprocess.DEVNULL
                with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=null, env=environment) as running:
                    running.stdout.readline()
                    key = time.monotonic() - began
                    running.stdout.read()
                times.append((1000 * key, 1000 * (time.monotonic() - began)))
                if running.returncode:
                    sys.exit(f"{' '.join(command)} failed")
        to_key, to_end = (sorted(one[at] for one in times[1:]) for at in (0, 1))
        print(
            f"| `mine m0ctane`, ms to the key | {who} | median {statistics.median(to_key):.0f} "
            f"({to_key[0]:.0f} to {to_key[-1]:.0f}; to its end {statistics.median(to_end):.0f}), "
            f"first {times[0][0]:.0f} | | | | | |",
            flush=True,
        )


def measure(options):
    binaries = [("before", options.before)] if options.before else []
    binaries.append(("now", options.binary))
    cards = ["nvidia-smi", "--query-gpu=name,driver_version,power.limit", "--format=csv,noheader"]
    print(subprocess.run(cards, capture_output=True, text=True, check=True).stdout.strip())
    print("| what | binary | G/s | W | M candidates a joule | hits found / expected | | busiest thread |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, arguments, is_long in ROWS:
        if not re.search(options.only, name):
            continue
        seconds = 60 if is_long and options.minute else options.seconds
        note = f"{seconds:g} s"
        for who, rows in in_turns(binaries, [0], arguments, seconds, options.runs).items():
            if rows:
                show(name, who, rows, note)
    count = gpu_count()
    for size in sorted({2, 4, 8, count}):
        for patterns in (1, 10000):
            name = f"{patterns:,} patterns, {size} GPUs"
            if size == 1 or size > count or not re.search(options.only, name):
                continue
            arguments = ["--patterns", str(patterns)]
            for who, binary in binaries:
                together, alone = [], []
                for _ in range(options.runs):
                    all_of_them = list(range(size))
                    together.append(bench(binary, all_of_them, arguments, options.seconds) | {"gpus": all_of_them})
                    alone += [bench(binary, [gpu], arguments, options.seconds) for gpu in all_of_them]
                rate = [statistics.mean(row["candidates_per_second"] for row in rows) for rows in (together, alone)]
                show(name, who, together, f"{rate[0] / rate[1]:.3f} times one")
    if re.search(options.only, "starts"):
        starts(binaries)


def kernels(options):
    nvcc = os.environ.get("NVCC", "nvcc")
    with tempfile.TemporaryDirectory() as work:

        def build(name, *more):
            command = [nvcc, "-arch=native", "-O3", "-std=c++17", "-I", options.folder, *options.option, *more]
            return subprocess.Popen([*command, "-o", f"{work}/{name}", str(HERE / "kernel_bench.cu"), "-ldl"])

        builds = [build("bench")]
        if options.sanitize:
            builds.append(build("small", "-DBLOCKS=1", "-DTABLE=64"))
        if any(one.wait() for one in builds):
            sys.exit("nvcc failed")
        program = f"{work}/bench"
        if options.exact:
            subprocess.run([program, "exact", str(options.exact)], check=True)
        if options.sanitize:
            for tool in ("memcheck", "synccheck", "initcheck", "racecheck"):
                checked = ["compute-sanitizer", "--error-exitcode", "1", "--tool", tool, f"{work}/small", "2", "1"]
                subprocess.run(checked, check=True, env=os.environ | {"COUNTS": "1 16 1000"}, stdout=subprocess.PIPE)
                print(f"{tool}: nothing found", flush=True)
        # With more intervals, or more centres, hits exceed the buffers.
        counts = os.environ | {"COUNTS": os.environ.get("COUNTS", "1 16 1000 10000")}
        subprocess.run([program, "6", "3", str(options.seconds), str(options.runs)], check=True, env=counts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", help="a program, or `kernels`")
    parser.add_argument("--before", help="another program, measured in turn")
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--minute", action="store_true")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="", help="rows whose name matches this")
    parser.add_argument("--folder", default=str(HERE.parent / "kernels"))
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--exact", type=int, default=0)
    parser.add_argument("--sanitize", action="store_true")
    options = parser.parse_args()
    (kernels if options.binary == "kernels" else measure)(options)


if __name__ == "__main__":
    main()
