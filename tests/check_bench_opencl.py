#!/usr/bin/env python3
"""gpulse bench with real libraries, which compute on this machine's CPU: PoCL, CLBlast and OpenBLAS.

variants: release
"""
import ctypes
import json
import os
import re
import tempfile
from pathlib import Path

from tap import GPULSE, Skip, good, main, run, test

scratch = tempfile.TemporaryDirectory()
SCRATCH = Path(scratch.name)
# PoCL keeps compiled kernels; those of the user stay untouched
ENV = {**os.environ, "POCL_CACHE_DIR": str(SCRATCH / "pocl"), "XDG_CACHE_HOME": str(SCRATCH)}


def bench(*words, format="json", short=True):
    for name in ("libOpenCL.so.1", "libclblast.so.1", "libopenblas.so.0"):
        try:
            ctypes.CDLL(name)
        except OSError as error:
            raise Skip(f"{name} is not installed") from error
    more = ("--runs", "5", "--warm-up", "10ms") if short else ()
    done = run(GPULSE, "bench", *words, "--engine", "opencl", "-i", "0", *more, "-f", format, env=ENV)
    if "OpenCL has no device" in done.stderr:
        raise Skip("no implementation of OpenCL is installed")
    return done


def measured(done):
    rows = json.loads(good(done))["results"]
    bad = [r for r in rows if r["outcome"] not in ("measured", "skipped")]
    assert not bad, bad
    return [r for r in rows if r["outcome"] == "measured"]


@test
def matmul_on_the_cpu_and_through_opencl():
    svg = SCRATCH / "curve.svg"
    rows = measured(bench("matmul", "--sizes", "50,128,300", "--svg", svg))
    assert [(r["size"], r["what"]) for r in rows] == [(n, w) for n in (50, 128, 300) for w in ("cpu", "gpu", "gpu+copies")]
    assert all(r["value"]["median"] > 0.01 and r["value"]["runs"] >= 5 for r in rows), rows
    assert {r["kernel"] for r in rows if r["what"] == "gpu"} == {"CLBlast"}
    assert svg.read_text().count("<polyline") == 3
    text = good(bench("matmul", "--sizes", "50,128", format="text"))
    assert re.search(r"^CPU    .*; OpenBLAS \d.*, kernels for \w+, \d+ threads$", text, re.M), text
    assert re.search(r"^OpenCL 0  .*; OpenCL \(", text, re.M), text
    assert re.search(r"^     128( +\S+ (± \S+ %|to \S+)\*?){3}$", text, re.M), text
    assert re.search(r"^  OpenCL 0: .*the CPU.* at 128 rows$", text, re.M), text
    assert any(0x2800 <= ord(c) <= 0x28FF for c in text), text  # braille


@test
def the_origin_is_there_to_reproduce_it():
    document = json.loads(good(bench("matmul", "--sizes", "32")))
    assert document["schema"] == "gpulse.bench/1" and document["simulated"] is False
    assert document["cpu"]["blas"].startswith("OpenBLAS") and document["cpu"]["cpus"] >= 1 and document["cpu"]["load"]
    assert document["devices"][0]["library"].startswith("OpenCL ("), document["devices"]


@test
def gemm_in_what_the_device_has():
    rows = measured(bench("gemm", "--rows", "128"))
    assert {"fp32", "fp64"} <= {r["what"] for r in rows} and "bf16" not in {r["what"] for r in rows}, rows


@test
def memory_is_checked():
    rows = measured(bench("memory", "--size", "8M"))
    assert [r["what"] for r in rows] == ["read", "write", "copy", "triad", "to GPU", "to host", "both ways",
                                         "to GPU, pageable", "to host, pageable"], rows


@test
def latencies():
    rows = measured(bench("latency"))
    assert len(rows) == 6 and all(r["value"]["median"] > 0 for r in rows), rows


@test
def burn_compares_on_the_device():
    row, = measured(bench("burn", "--for", "2s", "--rows", "128", short=False))
    assert re.fullmatch(r"\d+ products in \d+ s, all equal", row["note"]), row


@test
def check_and_an_earlier_run():
    saved = SCRATCH / "saved.json"
    words = ("check", "--rows", "128", "--size", "4M")
    alone = bench(*words, "--save", saved)
    assert alone.returncode == 6 and "OpenCL 0: nothing to compare it with." in alone.stderr, alone.stderr
    # the same machine, with a thousand times the rate in the earlier run: another load changes it by less
    document = json.loads(saved.read_text())
    for row in document["results"]:
        if row["test"] == "gemm":
            row["value"] = {k: v if k == "runs" else 1000 * v for k, v in row["value"].items()}
            row["value"]["low"] = row["value"]["high"] = row["value"]["median"]
    saved.write_text(json.dumps(document))
    done = bench(*words, "--against", saved)
    assert done.returncode == 1 and re.search(r"^SLOW   OpenCL 0, gemm fp32: .* % of the earlier run", done.stderr, re.M), \
        done.stderr


@test
def a_device_that_is_not_there():
    done = run(GPULSE, "bench", "gemm", "--engine", "opencl", "-i", "7", env=ENV)
    if "OpenCL" in done.stderr and done.returncode in (3, 4):
        raise Skip("no OpenCL")
    assert done.returncode == 2 and "no OpenCL device '7'" in done.stderr, done.stderr


main()
