#!/usr/bin/env python3
"""Compares the times that gpulse bench matmul reports for the CPU with those of numpy, with the same library.

Usage: /usr/bin/python3 tests/bench/matmul.py BUILD [--rounds N]

Both multiply FP32 matrices with OpenBLAS, in rounds that alternate; the medians count. It needs numpy, and what
gpulse bench --engine opencl needs.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time

import numpy

SIZES = (100, 200, 500, 1000, 2000)
BLOCK_S = 0.02  # as gpulse bench


def numpy_times():
    """{rows: GFLOP/s}"""
    rates = {}
    for n in SIZES:
        a, b = (numpy.random.standard_normal((n, n)).astype(numpy.float32) for _ in range(2))
        c = numpy.empty_like(a)
        start = time.perf_counter()
        while time.perf_counter() - start < 0.5:
            numpy.matmul(a, b, out=c)
        blocks = []
        for _ in range(10):
            count = 0
            start = time.perf_counter()
            while (passed := time.perf_counter() - start) < BLOCK_S:
                numpy.matmul(a, b, out=c)
                count += 1
            blocks.append((time.perf_counter() - start) / count)
        rates[n] = 2 * n**3 / statistics.median(blocks) / 1e9
    return rates


def gpulse_times(build):
    done = subprocess.run([f"{build}/gpulse", "bench", "matmul", "--engine", "opencl", "-i", "0", "--sizes",
                           ",".join(map(str, SIZES)), "-f", "json"], stdout=subprocess.PIPE, check=True)
    return {r["size"]: r["value"]["median"] for r in json.loads(done.stdout)["results"] if r["what"] == "cpu"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ours, theirs = [], []
    for _ in range(options.rounds):
        theirs.append(numpy_times())
        ours.append(gpulse_times(options.build))
    print("| rows | numpy, GFLOP/s | gpulse bench | time, gpulse / numpy |\n|---|---|---|---|")
    for n in SIZES:
        a, b = (statistics.median(r[n] for r in rates) for rates in (theirs, ours))
        print(f"| {n} | {a:.1f} | {b:.1f} | {a / b:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
