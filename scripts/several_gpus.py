#!/usr/bin/env python3
"""Measures several GPUs of one host beside each of them alone, with `npubbot bench`.

    scripts/several_gpus.py BINARY [--patterns N] [--seconds S] [--runs R] [--also GPUS]

Each run measures all GPUs together, then each alone, so that both meet the same machine. `--also 2`
measures the first two together as well. Prints rate, hits against their expectation in standard
deviations, watts, clock, processor time in percent of a core for each GPU, and the seconds before
the measurement began; then the rate of all over the mean of one. Fails at a wrong hit.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time


def gpu_count():
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True)
    return len(listed.stdout.strip().splitlines())


def bench(binary, gpus, patterns, seconds):
    """Runs the benchmark on these GPUs; returns its JSON object with more fields."""
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))}
    command = [binary, "bench", "--device", "cuda", "--patterns", str(patterns)]
    command += ["--seconds", str(seconds), "--json"]
    clocks = ["nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits", "-lms", "500"]
    clocks += ["-i", ",".join(map(str, gpus))]
    sampler = subprocess.Popen(clocks, stdout=subprocess.PIPE, text=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    wall = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    sampler.terminate()
    samples = sorted(int(line) for line in sampler.stdout.read().split() if line.isdigit())
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    row = json.loads(done.stdout)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    row["host"] = 100 * used / wall / len(gpus)
    row["start"] = wall - row["seconds"]
    row["clock"] = samples[len(samples) // 2] if samples else 0
    row["gpus"] = gpus
    expected = row["hits_expected"]
    row["deviation"] = (row["hits_found"] - expected) / expected**0.5
    if row["hits_wrong"]:
        sys.exit(f"wrong hits: {row}")
    return row


def show(run, row):
    gpus = ",".join(map(str, row["gpus"]))
    rate, watts = row["candidates_per_second"] / 1e9, row["watts"] or 0
    print(
        f"{run:3} {gpus:16} {row['patterns']:6} {rate:8.1f} G/s {row['deviation']:+5.1f} sd "
        f"{watts / len(row['gpus']):5.0f} W a GPU {row['clock']:5} MHz {row['host']:5.1f} % "
        f"{row['start']:5.2f} s",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary")
    parser.add_argument("--patterns", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--also", type=int, action="append", default=[])
    options = parser.parse_args()
    count = gpu_count()
    together = sorted({count, *options.also}, reverse=True)
    rates = {size: [] for size in together}
    single = []
    print("run GPUs           patterns    rate      hits     power          clock   host     start")
    for run in range(1, options.runs + 1):
        groups = [list(range(size)) for size in together] + [[gpu] for gpu in range(count)]
        for group in groups:
            row = bench(options.binary, group, options.patterns, options.seconds)
            show(run, row)
            if len(group) == 1:
                single.append((group[0], row["candidates_per_second"]))
            else:
                rates[len(group)].append(row["candidates_per_second"])
    for size in together:
        alone = [rate for gpu, rate in single if gpu < size]
        factor = (sum(rates[size]) / len(rates[size])) / (sum(alone) / len(alone))
        print(f"{options.patterns} patterns: {size} GPUs have {factor:.3f} times the mean of one")


if __name__ == "__main__":
    main()
