#!/usr/bin/env python3
"""gpulse bench on test doubles of libcuda and libcublasLt, which compute on the CPU (tests/double), beside a simulated
driver; and its declarations and kernels by the real headers and the real ptxas, where they can be had.

variants: asan; slices: 3
"""
import copy
import fcntl
import glob
import grp
import json
import os
import pwd
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from tap import BUILD, GPULSE, VARIANT, Skip, good, main, run, test

SOURCE = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
DOUBLE = Path(BUILD).resolve() / "tests/double"
scratch = tempfile.TemporaryDirectory()
SCRATCH = Path(scratch.name)
STATE = SCRATCH / "state"
STATE.mkdir(mode=0o700)
SHORT = ("--runs", "5", "--warm-up", "1ms")
# This machine may have the real cuBLAS, which leaks when it does not start.
(SCRATCH / "leaks").write_text("leak:/usr/\nleak:/opt/\n")


def machine(count, processes=()):
    made = json.loads((Path(BUILD) / "sim/machines/h100.json").read_text())
    for key in ("host", "topology", "workload"):
        made.pop(key, None)
    model = made["devices"][0]
    for key in [k for k in model["answers"] if k.endswith("RunningProcesses")]:
        del model["answers"][key]
    made["devices"] = []
    for i in range(count):
        gpu = copy.deepcopy(model)
        gpu["uuid"] = f"GPU-{i:08x}-0000-4000-8000-00000000000{i}"
        gpu["pci"]["bus_id"] = f"00000000:{i + 1:02X}:00.0"
        gpu["answers"]["MinorNumber"] = i
        gpu["processes"] = [{"pid": pid, "type": kind, "memory_bytes": 1 << 30, "name": "train"}
                            for at, pid, kind in processes if at == i]
        made["devices"].append(gpu)
    path = SCRATCH / f"machine{len(list(SCRATCH.iterdir()))}.json"
    path.write_text(json.dumps(made))
    return path


def environment(count, cublas=True, **more):
    """That of a run on `count` GPUs. Without cuBLAS, one that does not start stands in its place, since this machine
    may have the real one."""
    venv = SCRATCH / "venv"
    for name, file in (("cublas", "libcublasLt.so.12"), ("nccl", "libnccl.so.2")):
        folder = venv / f"lib/python3.11/site-packages/nvidia/{name}/lib"
        if not folder.exists():
            folder.mkdir(parents=True)
            shutil.copy(DOUBLE / file, folder)
    env = {**os.environ, "GPULSE_CUDA": str(DOUBLE / "libcuda_double.so"), "GPULSE_SIM_STATE": str(STATE),
           "GPULSE_STATE_DIR": str(STATE), "VIRTUAL_ENV": str(venv), "DOUBLE_CLOCK": "50",
           "LSAN_OPTIONS": f"suppressions={SCRATCH}/leaks:print_suppressions=0",
           "DOUBLE_UUIDS": ",".join(f"GPU-{i:08x}-0000-4000-8000-00000000000{i}" for i in range(count))}
    if not cublas:
        more["DOUBLE_FAULT"] = more.get("DOUBLE_FAULT") or "nocublas"
    env.update(more)
    env.pop("CUDA_VISIBLE_DEVICES", None)
    return env


def bench(*words, count=1, processes=(), cublas=True, format="json", before=(), **more):
    command = [*before, GPULSE, "--sim", machine(count, processes), "bench", *words]
    if words and words[0] not in ("latency", "burn"):
        command += SHORT
    return run(*command, "-f", format, env=environment(count, cublas, **more))


def results(done, status=0):
    assert done.returncode == status, (done.returncode, done.stderr[-2000:])
    return json.loads(done.stdout)["results"]


def measured(rows, runs=5):
    bad = [r for r in rows if r["outcome"] != "measured"]
    assert not bad, bad
    assert all(r["value"]["runs"] >= runs and r["value"]["low"] <= r["value"]["median"] <= r["value"]["high"]
               for r in rows), rows
    return rows


# ---- products ----

@test
def each_precision_is_multiplied_and_right():
    rows = measured(results(bench("gemm", "--rows", "48")))
    assert [r["what"] for r in rows] == ["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8"]
    assert {r["kernel"] for r in rows} == {"cuBLASLt 12.8.4"}
    peaks = {r["what"]: r["peak"] for r in rows}
    assert 989 <= peaks["bf16"] < 990 and peaks["fp32"] == 67 and peaks["fp64"] is None, peaks


@test
def our_own_kernels_are_right_at_every_size():
    """The PTX is executed, instruction by instruction, with each access to memory checked."""
    for rows in (1, 15, 16, 63, 64, 65, 100, 130):
        got = measured(results(bench("gemm", "--precision", "fp32,fp64", "--rows", rows, cublas=False)))
        assert [(r["what"], r["kernel"]) for r in got] == [("fp64", "gpulse's own kernel"),
                                                           ("fp32", "gpulse's own kernel")]
    for rows in (64, 128):
        got = measured(results(bench("gemm", "--precision", "fp16,bf16", "--rows", rows, cublas=False)))
        assert [r["kernel"] for r in got] == ["gpulse's own kernel, mma.sync"] * 2, got
    for words in (("bf16", "--rows", "48"), ("tf32", "--rows", "64")):
        skipped = results(bench("gemm", "--precision", *words, cublas=False), 1)[0]  # nothing was measured
        assert skipped["outcome"] == "skipped" and "cuBLAS does not start" in skipped["note"], skipped


@test
def a_precision_that_the_gpu_would_emulate_is_skipped():
    """cuBLAS multiplies BF16 and TF32 on a V100, too, at a fraction of its rate in FP16."""
    for capability, lacking in (("70", {"tf32", "bf16", "fp8"}), ("80", {"fp8"}), ("89", set())):
        rows = results(bench("gemm", "--rows", "32", DOUBLE_CAPABILITY=capability))
        assert {r["what"] for r in rows if r["outcome"] == "skipped"} == lacking, rows
    rows = results(bench("gemm", "--precision", "bf16", "--rows", "32", DOUBLE_CAPABILITY="75"), 1)
    assert rows[0]["note"] == "GPUs have BF16 from compute capability 8.0 on", rows
    for capabilities, wanted in (("70", [("fp16", "0"), ("fp16", "1")]),
                                 ("80,70", [("bf16", "0"), ("fp16", "0"), ("fp16", "1")])):
        rows = json.loads(bench("check", "--rows", "32", "--size", "16k", count=2, DOUBLE_CAPABILITY=capabilities).stdout)
        got = [(r["what"], r["device"]) for r in rows["results"]
               if r["test"] == "gemm" and r["what"] in ("bf16", "fp16") and r["outcome"] == "measured"]
        assert got == wanted, (capabilities, got)
    burn, = results(bench("burn", "--rows", "64", "--for", "1s", DOUBLE_CAPABILITY="70"))
    assert burn["what"] == "fp16", burn


@test
def a_shape_that_the_library_refuses_is_skipped():
    rows = results(bench("gemm", "--precision", "fp8,bf16", "--rows", "50"))  # FP8: multiples of 16
    assert [(r["what"], r["outcome"]) for r in rows] == [("bf16", "measured"), ("fp8", "skipped")]
    assert "cuBLASLt has no FP8" in rows[1]["note"], rows


@test
def one_wrong_bit_and_one_nan_are_failures():
    for fault in ("flip", "nan"):
        for precision in ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8"):
            if (fault, precision) == ("nan", "int8"):
                continue
            row, = results(bench("gemm", "--precision", precision, "--rows", "48", DOUBLE_FAULT=fault), 1)
            assert row["outcome"] == "wrong" and row["note"].startswith("wrong: element 24, 24 is "), row
            assert (fault == "nan") == (" nan," in row["note"]), row


@test
def matmul_compares_and_says_from_where_on():
    done = bench("matmul", "--sizes", "16,40,96", "--svg", SCRATCH / "curve.svg")
    rows = results(done)
    gpu = [r for r in rows if r["what"] in ("gpu", "gpu+copies")]
    assert [(r["what"], r["size"]) for r in gpu] == [(w, n) for n in (16, 40, 96) for w in ("gpu", "gpu+copies")]
    measured(gpu)
    svg = (SCRATCH / "curve.svg").read_text()
    assert svg.count("<polyline") >= 2 and svg.endswith("</svg>\n")
    text = good(bench("matmul", "--sizes", "16,40", "--ascii", format="text"))
    assert "    rows" in text and "      16" in text and "a  " in text and "|" in text, text


@test
def a_wrong_product_of_matmul_is_a_failure():
    rows = results(bench("matmul", "--sizes", "48", DOUBLE_FAULT="flip"), 1)
    assert "wrong" in {r["outcome"] for r in rows if r["what"] == "gpu"}, rows


# ---- memory and latency ----

@test
def memory_is_read_written_copied_and_checked():
    rows = measured(results(bench("memory", "--size", "64k")))
    assert [r["what"] for r in rows] == ["read", "write", "copy", "triad", "to GPU", "to host", "both ways",
                                         "to GPU, pageable", "to host, pageable"]
    assert [r["size"] for r in rows] == [65536] * 9
    by = {r["what"]: r["value"]["median"] for r in rows}
    # the double needs the same time for each kernel, so these are the numbers of arrays that each moves
    assert abs(by["triad"] / by["write"] - 3) < 0.1 and abs(by["copy"] / by["read"] - 2) < 0.1, by


@test
def pinned_memory_is_allocated_next_to_the_gpu():
    """In a namespace whose /sys says that the GPU is next to the second CPU."""
    if not {0, 1} <= os.sched_getaffinity(0):
        raise Skip("needs two CPUs")
    folder = SCRATCH / "pci/devices/0000:a0:00.0"
    folder.mkdir(parents=True)
    inside = ["unshare", "-rm", "sh", "-c", f'mount --bind {SCRATCH}/pci /sys/bus/pci && exec "$@"', "sh"]
    if run(*inside, "true").returncode:
        raise Skip("no user namespaces here")
    for cpus, wanted in (("1\n", 2), ("0-1\n", 0), ("999\n", 0), ("x\n", 0)):
        (folder / "local_cpulist").write_text(cpus)
        log = SCRATCH / f"near{len(list(SCRATCH.iterdir()))}.log"
        measured(results(bench("memory", "--size", "16k", before=inside, DOUBLE_LOG=str(log))))
        calls = log.read_text().split()
        assert calls.count("pinned-near-1") == wanted and "pinned-near-other" not in calls, (cpus, calls)


@test
def arrays_that_the_cache_holds_are_not_compared_with_the_memory():
    for size, cached in (("8k", True), ("16k", False)):  # the double's cache has 4 KiB
        rows = measured(results(bench("memory", "--size", size)))
        for r in rows[:4]:
            assert (r["peak"] is None) == cached and ("the cache of 0.00391 MiB" in (r["note"] or "")) == cached, r


@test
def short_calls_are_repeated():
    """A call of 3 ms is repeated until a block has 50: the rate is that of one."""
    for clock in ("3", "50"):
        row, = measured(results(bench("gemm", "--precision", "fp32", "--rows", "16", DOUBLE_CLOCK=clock)))
        assert abs(row["value"]["median"] / (2 * 16**3 / (float(clock) * 1e6) / 1000) - 1) < 0.03, (clock, row)


@test
def each_pair_of_gpus_is_copied():
    rows = measured(results(bench("memory", "--size", "16k", "-g", "all", count=3)))
    pairs = [r["device"] for r in rows if r["what"] == "GPU to GPU"]
    assert pairs == ["0->1", "0->2", "1->0", "1->2", "2->0", "2->1"], pairs
    assert len([r for r in rows if r["what"] == "4 bytes to a GPU"]) == 6


@test
def a_copy_between_gpus_is_compared_as_a_whole():
    """Neither what was there before nor a wrong byte far from the ends passes."""
    for fault, words in (("peer", "the first at byte 16$|the first at byte 0$"), ("peerbit", "^wrong: 1 pieces of 16 bytes, the first at byte 2097152$")):
        rows = results(bench("memory", "--size", "4M", "-g", "all", count=2, DOUBLE_FAULT=fault), 1)
        pairs = [r for r in rows if r["what"] == "GPU to GPU"]
        assert [r["device"] for r in pairs] == ["0->1", "1->0"], pairs
        assert all(r["outcome"] == "wrong" and re.search(words, r["note"]) for r in pairs), pairs


@test
def latencies():
    rows = measured(results(bench("latency", "--runs", "5", "--warm-up", "1ms")))
    assert [r["what"] for r in rows] == ["launches in a row", "launch and wait", "4 bytes to GPU", "4 bytes to host",
                                         "alloc+free 1 MiB", "create a context"]
    assert abs(rows[0]["value"]["median"] - 50000) < 200, rows[0]  # the double's 50 ms
    assert all(r["lower_is_better"] and r["unit"] == "us" for r in rows)


# ---- several GPUs ----

@test
def multi_needs_several():
    log = SCRATCH / "multi.csv"
    log.write_text("old")
    done = bench("multi", "--rows", "16", "--log", log)
    assert done.returncode == 2 and "multi compares several GPUs, and there is one" in done.stderr, done.stderr
    assert log.read_text() == "old"


@test
def multi_names_the_slowest():
    rows = measured(results(bench("multi", "--rows", "48", "--size", "64k", count=3)))
    assert [(r["what"], r["device"]) for r in rows] == [
        ("alone", "0"), ("alone", "1"), ("alone", "2"), ("2 together", "all"), ("3 together", "all"), ("all-reduce", "all")], rows
    assert re.search(r"^\d+ % of their sum alone; GPU \d is the slowest, with \S+; GPU \d loses most: \d+ %", rows[4]["note"]), rows[4]
    assert abs(rows[4]["value"]["median"] / sum(r["value"]["median"] for r in rows[:3]) - 1) < 0.05


@test
def multi_goes_on_without_a_gpu_that_has_no_room():
    for full in "012":
        rows = results(bench("multi", "--rows", "48", "--size", "8k", count=3, DOUBLE_FULL=f"{full}:8192"))
        assert [(r["what"], r["device"]) for r in rows] == [
            ("alone", "0"), ("alone", "1"), ("alone", "2"), ("2 together", "all"), ("all-reduce", "all")], rows
        assert [r["device"] for r in rows if r["outcome"] == "skipped"] == [full], rows
        assert f"GPU {full} " not in rows[3]["note"], rows[3]
        measured([r for r in rows if r["outcome"] != "skipped"])


@test
def all_reduce_adds_the_arrays_of_all_gpus():
    row = measured(results(bench("multi", "--rows", "16", "--size", "64k", count=4)))[-1]
    assert row["kernel"] == "NCCL 2.27.3" and row["size"] == 65536 and row["unit"] == "GB/s", row
    # of 4 GPUs each link carries 2 · 3/4 of the data; the double needs 50 ms for the first GPU
    assert abs(row["value"]["median"] / (1.5 * 65536 / 50e6) - 1) < 0.02, row
    wrong = results(bench("multi", "--rows", "16", "--size", "64k", count=2, DOUBLE_FAULT="sum"), 1)[-1]
    assert wrong["outcome"] == "wrong" and "must be" in wrong["note"], wrong
    none = results(bench("multi", "--rows", "16", "--size", "64k", count=2, DOUBLE_FAULT="nosum"), 1)[-1]
    assert none["outcome"] == "wrong" and none["note"] == "wrong: element 1 is 1, must be 2", none
    failed = results(bench("multi", "--rows", "16", "--size", "64k", count=2, DOUBLE_FAULT="nccl"), 1)[-1]
    assert failed["outcome"] == "failed" and failed["note"] == "NCCL: cannot connect the GPUs: error 2", failed


def shortfalls(done):
    """What is too slow. Waiting is timed by this host's clock, which a loaded machine spoils."""
    return [line for line in done.stderr.splitlines() if line.startswith("SLOW") and "latency launch and wait" not in line]


@test
def variables_of_the_libraries_do_not_spoil_the_results():
    done = bench("multi", "--rows", "16", "--size", "64k", count=2, NCCL_DEBUG="INFO", CUDA_LAUNCH_BLOCKING="1",
                 NVIDIA_TF32_OVERRIDE="0")
    measured(results(done))
    for name in ("NCCL_DEBUG", "CUDA_LAUNCH_BLOCKING", "NVIDIA_TF32_OVERRIDE"):
        assert f"{name} is ignored: " in done.stderr, done.stderr
    assert "CUDA_LAUNCH" not in bench("latency", "--runs", "5", "--warm-up", "1ms", CUDA_LAUNCH_BLOCKING="0").stderr


@test
def check_finds_the_slow_gpu():
    words = ("check", "--rows", "48", "--size", "16k")
    done = bench(*words, count=3, DOUBLE_SLOW="1")
    rows = results(done, 1)
    assert {r["device"] for r in rows if r["test"] == "gemm"} == {"0", "1", "2"}
    slow = shortfalls(done)
    assert any(re.fullmatch(r"SLOW   GPU 1, gemm bf16: \S+ TFLOP/s, 80 % of the other GPUs of this model \(\S+\)(; not steady: repeat it)?", line)
               for line in slow), slow
    assert not any("other GPUs" in line and "GPU 1," not in line for line in slow), slow


@test
def check_compares_with_an_earlier_run():
    words = ("check", "--rows", "48", "--size", "16k")
    saved = SCRATCH / "earlier.json"
    for _ in range(2):  # an existing file is replaced
        bench(*words, "--save", saved, count=2)
    assert json.loads(saved.read_text())["schema"] == "gpulse.bench/1"
    same = bench(*words, "--against", saved, count=2)
    assert not [line for line in shortfalls(same) if "of the earlier run" in line], same.stderr
    assert re.search(r"\d\d with an earlier run\.$", same.stderr, re.M), same.stderr
    slow = bench(*words, "--against", saved, count=2, DOUBLE_SLOW="0")
    assert slow.returncode == 1
    assert re.search(r"^SLOW   GPU 0, gemm bf16: \S+ TFLOP/s, 80 % of the earlier run", slow.stderr, re.M), slow.stderr
    # a noisier limit: 20 % less is accepted
    loose = bench(*words, "--against", saved, "--least", "75", count=2, DOUBLE_SLOW="0")
    assert not [line for line in shortfalls(loose) if "earlier run (" in line], loose.stderr
    other = bench("gemm", "--precision", "fp64", "--rows", "48", "--against", saved)
    assert other.returncode == 6 and "GPU 0: nothing to compare it with." in other.stderr, other.stderr


# ---- burn ----

@test
def burn_compares_every_product():
    rows = measured(results(bench("burn", "--rows", "48", "--for", "1s", "--precision", "fp32", count=2, cublas=False)), runs=1)
    assert [r["device"] for r in rows] == ["0", "1"]
    assert all(re.fullmatch(r"\d+ products in \d+ s, all equal", r["note"]) for r in rows), rows


@test
def burn_counts_whole_numbers_in_their_unit():
    row, = measured(results(bench("burn", "--rows", "64", "--for", "1s", "--precision", "int8")), runs=1)
    assert row["unit"] == "TOP/s", row


@test
def burn_uses_our_kernels_of_tensor_cores():
    """Whose rows are multiples of 64: others are rounded up."""
    for words, what, rows in ((("--rows", "16"), "bf16", 64), (("--rows", "65", "--precision", "fp16"), "fp16", 128)):
        row, = measured(results(bench("burn", *words, "--for", "1s", cublas=False)), runs=1)
        assert (row["kernel"], row["what"], row["size"]) == ("gpulse's own kernel, mma.sync", what, rows), row


@test
def burn_finds_a_wrong_bit_and_where_it_is():
    for fault in ("flip", "nan"):
        row, = results(bench("burn", "--rows", "48", "--for", "1m", "--precision", "bf16", DOUBLE_FAULT=fault), 1)
        assert row["outcome"] == "wrong", row
        assert re.search(r"differ in \d+ products, the first at row 32, column 32$", row["note"]), row


@test
def burn_ends_at_the_limit_of_temperature():
    row, = results(bench("burn", "--rows", "48", "--for", "10m", "--max-temp", "10"), 1)
    assert row["outcome"] == "failed" and row["note"].endswith("above the limit of 10"), row


@test
def ctrl_c_keeps_what_was_measured():
    """And the file of an earlier run."""
    saved = SCRATCH / "kept.json"
    saved.write_text("kept")
    log = SCRATCH / "interrupted.log"
    with subprocess.Popen([GPULSE, "--sim", machine(1), "bench", "gemm", "--rows", "48", "--warm-up", "1h", "--save", saved,
                           "-f", "json"], env={**environment(1), "DOUBLE_LOG": str(log)}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as child:
        while "cublasLtMatmulAlgoGetHeuristic" not in (log.read_text() if log.exists() else ""):
            assert child.poll() is None
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        out, errors = child.communicate()
    assert child.returncode == -signal.SIGINT, (child.returncode, errors)
    assert not out or json.loads(out)["results"] == [], out
    assert saved.read_text() == "kept"


@test
def ctrl_c_ends_a_burn_with_its_results():
    env = environment(1)
    with subprocess.Popen([GPULSE, "--sim", machine(1), "bench", "burn", "--rows", "48", "--for", "1h", "-f", "json"],
                          env={**env, "DOUBLE_LOG": str(SCRATCH / "burn.log")}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as child:
        while "fifth product" not in ((SCRATCH / "burn.log").read_text() if (SCRATCH / "burn.log").exists() else ""):
            assert child.poll() is None
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        out = child.communicate()[0]
    assert child.returncode == -signal.SIGINT, child.returncode
    assert json.loads(out)["results"][0]["outcome"] == "measured", out


def wait_until_it_hangs(log, child):
    while "hangs" not in (log.read_text() if log.exists() else ""):
        assert child.poll() is None
        time.sleep(0.05)


@test
def ctrl_c_ends_although_the_gpu_hangs():
    """With what was measured before; a second one ends at once."""
    for signals in (1, 2):
        log = SCRATCH / f"hang{signals}.log"
        with subprocess.Popen([GPULSE, "--sim", machine(1), "bench", "memory", "--size", "16k", *SHORT, "-f", "json"],
                              env={**environment(1, DOUBLE_FAULT="hang"), "DOUBLE_LOG": str(log)}, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as child:
            wait_until_it_hangs(log, child)
            child.send_signal(signal.SIGINT)
            if signals == 2:
                assert "press Ctrl-C again to end at once" in child.stderr.readline()
                child.send_signal(signal.SIGINT)
                assert child.wait() == 130
                continue
            begin = time.monotonic()
            out, errors = child.communicate()
            assert child.returncode == -signal.SIGINT and 8 < time.monotonic() - begin, (child.returncode, errors)
        assert [r["what"] for r in measured(json.loads(out)["results"])] == ["read", "write", "copy", "triad"], out


@test
def a_gpu_that_hangs_ends_the_run():
    if not os.environ.get("GPULSE_TEST_LONG"):
        raise Skip("takes a minute: GPULSE_TEST_LONG is not set")
    done = bench("burn", "--rows", "64", "--for", "1h", count=2, DOUBLE_FAULT="hang")
    rows = results(done, 4)
    assert done.stderr.count("has not answered for 60 s") == 1, done.stderr
    assert [r["outcome"] for r in rows if "has not answered for 60 s" in (r["note"] or "")] == ["failed"], rows


@test
def a_gpu_that_hangs_does_not_cost_the_results_of_the_others():
    if not os.environ.get("GPULSE_TEST_LONG"):
        raise Skip("takes a minute: GPULSE_TEST_LONG is not set")
    done = bench("burn", "--rows", "64", "--for", "1h", count=2, DOUBLE_FAULT="hang1")
    hung, other = sorted(results(done, 4), key=lambda row: row["outcome"])
    assert (hung["outcome"], hung["device"]) == ("failed", "1") and "GPU 1 has not answered for 60 s" in hung["note"], hung
    assert (other["outcome"], other["device"]) == ("measured", "0") and other["value"]["runs"] > 50, other
    assert re.fullmatch(r"\d+ products in \d+ s, all equal", other["note"]) and other["conditions"]["clock_mhz"], other


# ---- whose GPU it is ----

@test
def simulated_gpus_have_no_speed():
    done = run(GPULSE, "--sim", "h100x8", "bench", "gemm")
    assert done.returncode == 3 and "simulated GPUs have no speed: no benchmark" in done.stderr, done.stderr
    log = SCRATCH / "untouched.csv"
    log.write_text("old")
    assert run(GPULSE, "--sim", "h100x8", "bench", "gemm", "--log", log).returncode == 3 and log.read_text() == "old"
    text = good(bench("gemm", "--precision", "fp32", "--rows", "32", format="text"))
    assert "The driver is simulated: these figures say nothing about a GPU." in text, text
    assert json.loads(good(bench("gemm", "--precision", "fp32", "--rows", "32")))["simulated"] is True


@test
def a_busy_gpu_is_refused_or_marked():
    with subprocess.Popen(["sleep", "infinity"]) as other:
        try:
            log = SCRATCH / "last_night.csv"
            log.write_text("old")
            refused = bench("gemm", "--rows", "32", "--log", log, processes=[(0, other.pid, "C")])
            assert refused.returncode == 69 and "no GPU is free" in refused.stderr, refused.stderr
            assert log.read_text() == "old"
            free = results(bench("gemm", "--rows", "32", "--precision", "fp32", count=2, processes=[(0, other.pid, "C")]))
            assert free[0]["device"] == "1", free  # the other one
            shared = bench("gemm", "--rows", "32", "--precision", "fp32", "--shared", processes=[(0, other.pid, "C")])
            document = json.loads(good(shared))
            assert document["reserved"] is False
            assert document["results"][0]["conditions"]["other_pid"] == other.pid, document["results"]
        finally:
            other.kill()


@test
def a_partitioned_gpu_does_not_stop_the_others():
    path = machine(3)
    made = json.loads(path.read_text())
    mig = json.loads((Path(BUILD) / "sim/machines/h100-mig.json").read_text())["devices"][0]
    made["devices"][1]["mig"] = mig["mig"]
    for key in ("MigMode", "MaxMigDeviceCount"):
        made["devices"][1]["answers"][key] = mig["answers"][key]
    path.write_text(json.dumps(made))
    words = [GPULSE, "--sim", path, "bench", "gemm", "--precision", "fp32", "--rows", "16", *SHORT, "-f", "json"]
    for more, devices in ((("-g", "all"), ["1", "0", "2"]), (("-g", "2"), ["0", "2"]), (("--gpu-ids", "0,1"), ["1", "0"])):
        rows = results(run(*words, *more, env=environment(3)))
        assert [r["device"] for r in rows] == devices, (more, rows)
        for r in rows:
            assert r["outcome"] == ("skipped" if r["device"] == "1" else "measured"), r
            assert r["device"] != "1" or r["note"] == "it is partitioned (MIG): instances are not measured", r
    done = run(*words, "--gpu-ids", "1", env=environment(3))
    assert done.returncode not in (0, 1) and "MIG instance" in done.stderr and not done.stdout, done.stderr


@test
def a_desktop_does_not_share_the_gpu():
    with subprocess.Popen(["sleep", "infinity"]) as other:
        try:
            row, = results(bench("gemm", "--rows", "32", "--precision", "fp32", processes=[(0, other.pid, "G")]))
        finally:
            other.kill()
    assert row["conditions"]["other_pid"] is None, row


@test
def the_gpu_is_reserved_while_it_is_measured():
    env = environment(1)
    log = SCRATCH / "reserved.log"
    path = machine(1)
    with subprocess.Popen([GPULSE, "--sim", path, "bench", "burn", "--rows", "48", "--for", "1h"],
                          env={**env, "DOUBLE_LOG": str(log)}, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as child:
        try:
            while not log.exists():
                assert child.poll() is None
                time.sleep(0.05)
            second = run(GPULSE, "--sim", path, "bench", "gemm", env=env)
            assert second.returncode == 69 and "reserved by gpulse bench" in second.stderr, second.stderr
        finally:
            child.terminate()
    third = run(GPULSE, "--sim", path, "bench", "gemm", "--precision", "fp32", "--rows", "16", *SHORT, env=env)
    assert third.returncode == 0, third.stderr


@test
def the_conditions_are_those_of_the_driver():
    single, row = results(bench("gemm", "--precision", "fp32,bf16", "--rows", "48"))
    c = row["conditions"]
    assert c["samples"] >= 1 and 100 < c["clock_mhz"] <= c["clock_max_mhz"] and 10 < c["watts"] < 800, c
    assert 10 < c["celsius"] < 100 and c["other_pid"] is None, c
    # the rate of tensor cores is stated at a lower clock than that of FP32
    assert abs(row["peak_at_clock"] / (row["peak"] * c["clock_mhz"] / 1830) - 1) < 0.01, row
    assert abs(single["peak_at_clock"] / (single["peak"] * single["conditions"]["clock_mhz"] / 1980) - 1) < 0.01, single
    assert c["ecc_corrected"] == c["ecc_uncorrected"] == 0, c


# ---- failures ----

@test
def what_fails_is_said():
    rows = [
        (dict(DOUBLE_UUIDS="GPU-00000009-0000-4000-8000-000000000009"), 3, "CUDA does not see GPU 0 (GPU-00000000-0000"),
        (dict(DOUBLE_UUIDS=""), 4, "CUDA does not start: "),
        (dict(GPULSE_CUDA="/nonexistent/libcuda.so.1"), 4, "cannot load libcuda.so.1"),
    ]
    for more, status, words in rows:
        done = bench("memory", "--size", "16k", **more)
        assert done.returncode == status and words in done.stderr and not done.stdout, (more, done.returncode, done.stderr)
    row, = results(bench("memory", "--size", "16k", DOUBLE_FAULT="jit"), 1)
    assert row["outcome"] == "failed", row
    assert "CUDA_ERROR_INVALID_PTX (218): unknown directive: nonsense" in row["note"], row


@test
def a_gpu_that_fails_does_not_take_the_others_with_it():
    """The 20th launch fails, on GPU 0; what was measured before, and the other GPU, are there."""
    rows = results(bench("memory", "--size", "16k", "-g", "all", count=2, DOUBLE_FAULT="lost"), 1)
    failed = [r for r in rows if r["outcome"] == "failed"]
    assert [r["device"] for r in failed] == ["0"] and "CUDA_ERROR_LAUNCH_FAILED (719)" in failed[0]["note"], failed
    assert [r["what"] for r in rows if r["device"] == "1"][:4] == ["read", "write", "copy", "triad"], rows
    burn = results(bench("burn", "--rows", "48", "--for", "1s", count=2, DOUBLE_FAULT="lost"), 1)
    assert sorted(r["outcome"] for r in burn) == ["failed", "measured"], burn


@test
def too_little_memory_is_a_result():
    row, = results(bench("memory", "--size", "4M", DOUBLE_FULL="0"), 1)
    assert row["outcome"] == "skipped" and "cannot allocate memory of the GPU" in row["note"], row
    done = bench("matmul", "--sizes", "600", DOUBLE_FULL="0")
    rows = json.loads(done.stdout)["results"]
    assert {(r["what"], r["outcome"]) for r in rows if r["what"] != "cpu"} == {("gpu", "skipped")}, rows


@test
def too_little_memory_of_one_gpu_does_not_end_the_test():
    rows = results(bench("memory", "--size", "2M", "-g", "all", count=3, DOUBLE_FULL="1"))
    skipped = [r for r in rows if r["outcome"] == "skipped"]
    assert [r["device"] for r in skipped] == ["1", "0->1", "1->0", "1->2", "2->1"], skipped
    assert all("cannot allocate memory of the GPU" in r["note"] for r in skipped), skipped
    measured([r for r in rows if r["outcome"] != "skipped"])
    assert {"0->2", "2->0"} <= {r["device"] for r in rows if r["what"] == "4 bytes to a GPU"}, rows


@test
def matrices_that_the_host_has_no_memory_for_are_skipped():
    available = int(re.search(r"MemAvailable: +(\d+)", Path("/proc/meminfo").read_text()).group(1))
    if available > 48 << 20:
        raise Skip("this machine has room for matrices of 65536 rows")
    rows = results(bench("matmul", "--sizes", "16,65536"))
    large = [r for r in rows if r["size"] == 65536]
    assert {(r["what"], r["outcome"]) for r in large} == {("cpu", "skipped"), ("gpu", "skipped")}, rows
    assert all(r["note"] == "not enough host memory for matrices of 65536 rows" for r in large), large
    measured([r for r in rows if r["size"] == 16 and r["what"] != "cpu"])


@test
def host_memory_is_asked_for_before_it_is_used():
    """What needs none is measured: the driver's /proc/meminfo is replaced in a namespace of its own."""
    meminfo = SCRATCH / "meminfo"
    meminfo.write_text("MemTotal: 200 kB\nMemAvailable: 100 kB\n")
    inside = ["unshare", "-rm", "sh", "-c", f'mount --bind {meminfo} /proc/meminfo && exec "$@"', "sh"]
    if run(*inside, "true").returncode:
        raise Skip("no user namespaces here")
    for words, wanted in ((("memory", "--size", "64k"), ["read", "write", "copy", "triad"]),
                          (("check", "--rows", "16", "--size", "64k"), ["bf16", "fp32", "copy", "launches in a row", "launch and wait"]),
                          (("gemm", "--precision", "fp32", "--rows", "100"), [])):
        rows = json.loads(bench(*words, before=inside).stdout)["results"]
        assert [r["what"] for r in rows if r["outcome"] == "measured"] == wanted, rows
        skipped, = [r for r in rows if r["outcome"] != "measured"]
        assert skipped["outcome"] == "skipped" and skipped["note"].startswith("not enough host memory"), skipped
    for words in (("multi", "--rows", "64"), ("burn", "--rows", "128", "--for", "1s")):
        done = bench(*words, count=8, before=inside)
        assert done.returncode == 1 and "not enough host memory" in done.stderr, (words, done.stderr)
    meminfo.write_text("MemAvailable: 0 kB\n")
    assert "not enough host memory" in bench("multi", "--rows", "64", count=2, before=inside).stderr


@test
def wrong_usage():
    table = [
        ([], "gpulse bench takes one of: matmul gemm memory latency multi burn check"),
        (["latenc"], "there is no test 'latenc' (did you mean 'latency'?); gpulse bench takes one of"),
        (["gemm", "memory"], "gpulse bench takes one test, got 2"),
        (["matmul", "--sizes", "100,x"], "--sizes: 'x' is not a number of rows from 1 to 65536"),
        (["matmul", "--sizes", "0"], "--sizes: '0' is not a number of rows"),
        (["matmul", "--sizes", ","], "--sizes: '' is not a number of rows"),
        (["gemm", "--precision", "fp13"], "--precision: 'fp13' is none of: fp64 fp32"),
        (["gemm", "--runs", "2"], "--runs"),
        (["gemm", "-g", "1", "--gpu-ids", "0"], "--gpus and --gpu-ids cannot be combined"),
        (["gemm", "--engine", "metal"], "--engine"),
        (["gemm", "--rows", "2147483648"], "--rows takes at most 65536"),
        (["gemm", "--runs", "100000"], "--runs takes at most 1000"),
        (["gemm", "--warm-up", "5h"], "--warm-up takes at most 3600 seconds"),
        (["memory", "--max-temp", "1"], "bench memory has no option --max-temp"),
        (["memory", "--svg", "x.svg"], "bench memory has no option --svg"),
        (["latency", "--rows", "3"], "bench latency has no option --rows"),
        (["gemm", "--least", "90"], "--least needs gpulse bench check, or --against"),
    ]
    for words, message in table:
        done = run(GPULSE, "--sim", machine(1), "bench", *words, env=environment(1))
        assert done.returncode == 2 and message in done.stderr, (words, done.returncode, done.stderr)


@test
def an_earlier_file_that_is_none():
    fifo = SCRATCH / "fifo"
    os.mkfifo(fifo)
    text = SCRATCH / "text"
    text.write_text("hello\n")
    other = SCRATCH / "other.json"
    other.write_text('{"schema": "gpulse.why/1"}')
    broken = SCRATCH / "broken.json"
    broken.write_text(json.dumps({"schema": "gpulse.bench/1", "devices": 7, "results": [
        1, None, {}, {"test": "gemm", "what": 3}, {"test": "gemm", "what": "bf16", "device": "0", "value": {"median": "x"}}]}))
    for path, status, words in ((fifo, 1, "it is not a file"), (SCRATCH / "none", 1, "No such file"),
                                (SCRATCH, 1, "it is not a file"), (text, 2, "line 1"),
                                (other, 2, "is not a result of gpulse bench")):
        done = bench("gemm", "--precision", "fp32", "--rows", "16", "--against", path)
        assert done.returncode == status and words in done.stderr, (path, done.returncode, done.stderr)
    done = bench("gemm", "--precision", "fp32", "--rows", "16", "--against", broken)
    assert "GPU 0: nothing to compare it with" in done.stderr or "with the data sheet" in done.stderr, done.stderr


@test
def outputs():
    csv = good(bench("gemm", "--precision", "fp32,bf16", "--rows", "32", format="csv")).splitlines()
    head = csv[0].split(",")
    assert head[:7] == ["test", "what", "device", "size", "unit", "lower_is_better", "outcome"] and len(csv) == 3, csv
    rows = [dict(zip(head, re.sub(r'"[^"]*"', "x", line).split(","), strict=True)) for line in csv[1:]]
    assert all(re.fullmatch("([a-z_]+(;[a-z_]+)*)?", r["limits"]) and r["other_pid"] == "0" for r in rows), csv
    full = bench("gemm", "--precision", "fp32", "--rows", "16", "--save", "/dev/full")
    assert full.returncode == 1 and "/dev/full" in full.stderr, full.stderr


def wait_for_text(path, text, child):
    while not path.exists() or text not in path.read_text():
        assert child.poll() is None
        time.sleep(0.05)


@test
def the_log_has_each_sample_of_each_gpu():
    log = SCRATCH / "samples.csv"
    log.write_text("old\n" * 1000)
    results(bench("burn", "--rows", "64", "--for", "1s", "--log", log, count=2))
    head, *lines = [line.split(",") for line in log.read_text().splitlines()]
    assert head == ["time", "gpu", "test", "what", "clock_mhz", "clock_max_mhz", "watts", "celsius", "limits", "ecc_corrected",
                    "ecc_uncorrected", "other_pid"], head
    assert log.read_text().endswith("\n") and all(len(line) == len(head) for line in lines), lines
    rows = [dict(zip(head, line)) for line in lines]
    assert rows[0]["test"] == rows[0]["what"] == "" and {r["gpu"] for r in rows} == {"0", "1"}, rows[0]
    burnt = [r for r in rows if r["test"] == "burn"]
    assert len(burnt) >= 4 and {(r["gpu"], r["what"]) for r in burnt} == {("0", "bf16"), ("1", "bf16")}, rows
    for r in rows:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}([+-]\d\d:\d\d|Z)", r["time"]), r
        assert 100 < float(r["clock_mhz"]) <= float(r["clock_max_mhz"]) == 1980 and 10 < float(r["watts"]) < 800, r
        assert 10 < float(r["celsius"]) < 100 and r["ecc_corrected"] == "0" and r["other_pid"] == "", r
        assert re.fullmatch("([a-z_]+(;[a-z_]+)*)?", r["limits"]), r
    assert sorted(r["time"] for r in rows) == [r["time"] for r in rows]


@test
def the_log_says_which_gpu_measures():
    log = SCRATCH / "who.csv"
    with subprocess.Popen([GPULSE, "--sim", machine(2), "bench", "memory", "--size", "64k", "-g", "all", "--warm-up", "1h", "--log", log],
                          env=environment(2), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as child:
        wait_for_text(log, ",0,memory,read,", child)
        child.send_signal(signal.SIGINT)
    rows = [line.split(",")[1:4] for line in log.read_text().splitlines()[1:]]
    assert ["0", "memory", "read"] in rows and ["1", "", ""] in rows, rows
    assert not [r for r in rows if r[0] == "1" and r[1]], rows


@test
def the_log_says_which_gpus_measure_together():
    log = SCRATCH / "together.csv"
    measured(results(run(GPULSE, "--sim", machine(3), "bench", "multi", "--rows", "48", "--size", "64k", "--runs", "5", "--warm-up",
                         "300ms", "--log", log, "-f", "json", env=environment(3))))
    rows = [tuple(line.split(",")[1:4]) for line in log.read_text().splitlines()[1:]]
    for what, busy in (("2 together", "01"), ("3 together", "012"), ("all-reduce", "012")):
        assert {gpu for gpu, _, of in rows if of == what} == set(busy), (what, rows)


@test
def a_log_that_cannot_be_written():
    for path, words in ((SCRATCH / "none/x.csv", "No such file"), ("/dev/full", "/dev/full")):
        done = bench("gemm", "--rows", "16", "--log", path)
        assert done.returncode == 1 and words in done.stderr and not done.stdout, (path, done.stderr)
    fifo = SCRATCH / "samples.fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    with subprocess.Popen([GPULSE, "--sim", machine(1), "bench", "burn", "--rows", "64", "--for", "3s", "--log", fifo, "-f", "json"],
                          env=environment(1), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        while not select.select([reader], [], [], 0.05)[0]:
            assert child.poll() is None
        os.close(reader)  # from here on, it cannot be written
        out, errors = child.communicate()
    assert child.returncode == 0 and errors.count("samples.fifo") == 1 and "Broken pipe" in errors, errors
    assert json.loads(out)["results"][0]["outcome"] == "measured", out
    slow = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)  # and never reads
    fcntl.fcntl(slow, fcntl.F_SETPIPE_SZ, 4096)
    done = bench("burn", "--rows", "64", "--for", "7s", "--max-temp", "99", "--log", fifo, count=2)
    assert [r["outcome"] for r in results(done)] == ["measured"] * 2, done.stdout
    assert done.stderr.count("samples.fifo' lacks samples: its reader is too slow") == 1, done.stderr
    text = os.read(slow, 65536).decode()
    os.close(slow)
    assert len(text) > 2000 and text.endswith("\n") and {line.count(",") for line in text.splitlines()} == {11}, text
    refused = bench("gemm", "--engine", "opencl", "--log", SCRATCH / "no.csv")
    assert refused.returncode == 2 and "--log needs the NVIDIA driver" in refused.stderr, refused.stderr
    assert not (SCRATCH / "no.csv").exists()


@test
def a_file_that_cannot_be_written_fails_before_the_measurement():
    log = SCRATCH / "not_started.log"
    closed = SCRATCH / "closed"
    closed.mkdir(mode=0o500)
    for option, path, words in (("--save", SCRATCH / "none/x.json", "No such file"), ("--svg", SCRATCH / "none/x.svg", "No such file"),
                                ("--save", SCRATCH, "Is a directory"), ("--save", closed / "x.json", "Permission denied")):
        if "Permission" in words and os.geteuid() == 0:
            continue  # may write everywhere
        done = bench("matmul", "--sizes", "16", option, path, DOUBLE_LOG=str(log))
        assert done.returncode in (1, 5) and words in done.stderr and not log.exists(), (path, done.stderr)


@test
def a_library_that_others_may_write_is_not_loaded():
    """Neither if they may write the file, nor if they may replace a directory above it."""
    env = environment(1)
    folder = SCRATCH / "open/lib/python3.11/site-packages/nvidia/cublas/lib"
    folder.mkdir(parents=True)
    file = folder / "libcublasLt.so.12"
    shutil.copy(DOUBLE / "libcublasLt.so.12", file)
    env["VIRTUAL_ENV"] = str(SCRATCH / "open")
    for changed, mode, loaded in ((file, 0o755, True), (file, 0o757, False), (file, 0o755, True),
                                  (folder.parent, 0o777, False), (folder.parent, 0o755, True)):
        changed.chmod(mode)
        done = good(run(GPULSE, "--sim", machine(1), "bench", "gemm", "--precision", "fp32", "--rows", "16", *SHORT,
                        "-f", "csv", env=env))
        assert ('"cuBLASLt 12.8.4"' in done) == loaded, (changed, oct(mode), done)


@test
def a_library_that_a_shared_group_may_write_is_not_loaded():
    """Though it is the user's primary group. A group with the user's name, and no other member, is the user's alone."""
    if os.geteuid() != 0:
        raise Skip("needs root")
    daemon, group = pwd.getpwnam("daemon"), grp.getgrnam("daemon")
    other = grp.getgrnam("bin").gr_gid
    if daemon.pw_gid != group.gr_gid or group.gr_mem:
        raise Skip("daemon has no group of its own here")
    if run("setpriv", f"--reuid={daemon.pw_uid}", f"--regid={daemon.pw_gid}", "--clear-groups", "test", "-r", DOUBLE).returncode:
        raise Skip("daemon may not read the build directory")
    SCRATCH.chmod(0o711)
    state = SCRATCH / "daemons"
    state.mkdir(mode=0o700)
    os.chown(state, daemon.pw_uid, group.gr_gid)
    file = SCRATCH / "grouped/lib/python3.11/site-packages/nvidia/cublas/lib/libcublasLt.so.12"
    file.parent.mkdir(parents=True)
    shutil.copy(DOUBLE / "libcublasLt.so.12", file)
    env = {**environment(1), "VIRTUAL_ENV": str(SCRATCH / "grouped"), "GPULSE_SIM_STATE": str(state), "GPULSE_STATE_DIR": str(state),
           "HOME": str(state)}
    for gid, mode, loaded in ((group.gr_gid, 0o775, True), (other, 0o775, False), (other, 0o755, True), (0, 0o775, True)):
        os.chown(file, 0, gid)
        file.chmod(mode)
        done = run(GPULSE, "--sim", machine(1), "bench", "gemm", "--precision", "fp32", "--rows", "16", *SHORT, "-f", "csv",
                   env=env, user=daemon.pw_uid, group=gid or group.gr_gid, extra_groups=[])
        assert ('"cuBLASLt 12.8.4"' in good(done)) == loaded, (gid, oct(mode), done.stdout)


@test
def a_library_of_conda_is_found():
    folder = SCRATCH / "conda/lib"
    folder.mkdir(parents=True)
    file = folder / "libcublasLt.so.12"
    shutil.copy(DOUBLE / "libcublasLt.so.12", file)
    for mode, wanted in ((0o755, "cuBLASLt 12.8.4"), (0o757, "gpulse's own kernel")):
        file.chmod(mode)
        row, = measured(results(bench("gemm", "--precision", "fp32", "--rows", "16", VIRTUAL_ENV="", CONDA_PREFIX=str(SCRATCH / "conda"))))
        assert row["kernel"] == wanted, (oct(mode), row)


@test
def a_library_without_code_for_the_gpu_is_passed_over():
    """cuBLAS 13 starts on a V100, and cannot multiply there."""
    folder = SCRATCH / "both/lib/python3.11/site-packages/nvidia"
    words = ("gemm", "--precision", "fp32", "--rows", "16")
    for name, file in (("cu13", "libcublasLt.so.13"), ("cublas", "libcublasLt.so.12")):
        (folder / name / "lib").mkdir(parents=True)
        shutil.copy(DOUBLE / "libcublasLt.so.12", folder / name / "lib" / file)
        for capability, wanted in (("75", "cuBLASLt 13.1.0"),
                                   ("70", "cuBLASLt 12.8.4" if name == "cublas" else "gpulse's own kernel")):
            row, = measured(results(bench(*words, VIRTUAL_ENV=str(SCRATCH / "both"), DOUBLE_CAPABILITY=capability)))
            assert row["kernel"] == wanted, (name, capability, row)
        both = [row["kernel"] for row in measured(results(bench(*words, "-g", "all", count=2, VIRTUAL_ENV=str(SCRATCH / "both"), DOUBLE_CAPABILITY="75,70")))]
        assert both == (["cuBLASLt 12.8.4"] * 2 if name == "cublas" else ["cuBLASLt 13.1.0", "gpulse's own kernel"]), both


@test
def nothing_leaks_and_what_is_opened_is_closed():
    log = SCRATCH / "calls.log"
    measured(results(bench("gemm", "--precision", "bf16,fp32", "--rows", "32", DOUBLE_LOG=str(log))))
    calls = log.read_text().split()
    for opened, closed in (("cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2"), ("cublasLtCreate", "cublasLtDestroy")):
        assert calls.count(opened) == calls.count(closed) == 1, calls
    if VARIANT == "asan" or not shutil.which("valgrind"):
        return
    done = bench("memory", "--size", "16k", before=["valgrind", "-q", "--trace-children=yes", "--leak-check=full",
                                                    "--errors-for-leak-kinds=definite", "--error-exitcode=99"])
    assert done.returncode == 0, done.stderr[-3000:]


# ---- the real headers, and the real compiler ----

def header(name):
    for folder in (os.environ.get("CUDA_HOME", "") + "/include", *glob.glob("/usr/local/cuda*/include"), "/usr/include"):
        if os.path.exists(f"{folder}/{name}"):
            return folder
    raise Skip(f"{name} is not installed")


def declarations(name, real, types, prefixes, skipped=()):
    """Compiles, after the real header, our functions' declarations and the values of our constants."""
    text = (SOURCE / f"abi/{name}").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    body = "".join(f"#include <{h}>\n" for h in real)
    for table, result in types.items():
        rows = re.search(rf"#define {table}\(X\)(.*?)\n\n", text + "\n\n", re.S).group(1).replace("\\\n", " ")
        rows = re.sub(r"\s+", " ", rows)
        pattern = r"X\((\w+), (\(.*?\))\) ?(?=X\(|$)" if result else r"X\((.+?), (\w+), ((?:\(|CLBLAST_GEMM).*?\))\) ?(?=X\(|$)"
        found = re.findall(pattern, rows)
        assert len(found) == rows.count("X("), (table, len(found), rows.count("X("))
        for row in found:
            one = (result, *row) if result else row
            if one[1] not in skipped:
                body += f"{one[0]} {one[1]} {one[2]};\n"
    constants = [(n, v) for n, v in re.findall(r"^\s+(\w+) = (.*?),$", text, re.M)
                 if n.startswith(prefixes) and n not in skipped]
    assert constants
    for constant, value in constants:
        body += f'_Static_assert((int)({constant}) == ({value}), "{constant}");\n'
    source = SCRATCH / f"{name}.c"
    source.write_text(body + "int main(void) { return 0; }\n")
    return source, len(constants)


def compiles(source, folder, *words):
    done = run("cc", "-std=gnu17", "-fsyntax-only", "-Werror", f"-I{folder}", *words, source)
    assert done.returncode == 0, done.stderr[:3000]


@test
def our_declarations_of_cuda_are_those_of_cuda_h():
    folder = header("cuda.h")
    source, count = declarations("cuda.h", ["cuda.h"], {"CUDA_COMPUTE_FUNCTIONS": "CUresult"},
                                 ("CU_DEVICE_ATTRIBUTE", "CU_JIT", "CU_STREAM", "CUDA_ERROR"))
    assert count >= 8
    codes = re.findall(r"X\((CUDA_\w+), (\d+), ", (SOURCE / "abi/cuda.h").read_text())
    assert len(codes) >= 13, codes
    source.write_text(source.read_text() + "".join(f'_Static_assert((int)({name}) == {value}, "{name}");\n' for name, value in codes))
    compiles(source, folder)


@test
def our_declarations_of_cublaslt_are_those_of_its_header():
    folder = header("cublasLt.h")
    source, count = declarations("cublaslt.h", ["cublasLt.h"], {"CUBLASLT_FUNCTIONS": "cublasStatus_t"},
                                 ("CUBLAS", "CUDA_R"))
    assert count >= 15
    source.write_text(source.read_text().replace(
        "int main", '_Static_assert(sizeof(cublasLtMatmulAlgo_t) == 64 && sizeof(cublasLtMatmulHeuristicResult_t) == 96 &&'
        ' offsetof(cublasLtMatmulHeuristicResult_t, state) == 72, "layout");\nint main', 1))
    compiles(source, folder)
    ours = SCRATCH / "ours.c"
    ours.write_text('#include "abi/cublaslt.h"\n_Static_assert(sizeof(cublasLtMatmulAlgo_t) == 64 && '
                    'sizeof(cublasLtMatmulHeuristicResult_t) == 96 && '
                    'offsetof(cublasLtMatmulHeuristicResult_t, state) == 72, "layout");\n')
    compiles(ours, SOURCE)


@test
def our_declarations_of_nccl_are_those_of_its_header():
    folder = header("nccl.h")
    source, _ = declarations("nccl.h", ["cuda.h", "nccl.h"], {"NCCL_FUNCTIONS": "ncclResult_t"}, ("nccl",))
    compiles(source, folder, f"-I{header('cuda.h')}")


@test
def our_declarations_of_opencl_are_those_of_its_headers():
    folder = header("CL/cl.h")
    source, count = declarations("opencl.h", ["CL/cl.h"], {"OPENCL_FUNCTIONS": ""}, ("CL_",), ("CL_PLATFORM_NOT_FOUND_KHR",))
    assert count >= 20
    compiles(source, folder, "-DCL_TARGET_OPENCL_VERSION=120")


@test
def our_declarations_of_clblast_are_those_of_its_header():
    folder = header("clblast_c.h")
    text = (SOURCE / "abi/opencl.h").read_text().replace("\\\n", " ")
    gemm = re.sub(r"\s+", " ", re.search(r"#define CLBLAST_GEMM\(type\)(.*)", text).group(1))
    source = SCRATCH / "clblast.c"
    body = "#include <clblast_c.h>\n#include <stdint.h>\n"
    for name, kind in (("S", "float"), ("D", "double"), ("H", "uint16_t")):
        arguments = re.sub(r"\btype\b", kind, gemm)
        arguments = re.sub(r"^ \(int, int, int", " (const CLBlastLayout, const CLBlastTranspose, const CLBlastTranspose", arguments)
        body += f"CLBlastStatusCode CLBlast{name}gemm{arguments};\n"
    body += ('_Static_assert(CLBlastLayoutColMajor == 102 && CLBlastTransposeNo == 111 && CLBlastSuccess == 0 && '
             'sizeof(CLBlastLayout) == sizeof(int), "values");\nint main(void) { return 0; }\n')
    source.write_text(body)
    compiles(source, folder, "-DCL_TARGET_OPENCL_VERSION=120")


@test
def the_real_ptxas_assembles_our_kernels():
    found = [p for p in (shutil.which("ptxas"), *glob.glob("/usr/local/cuda*/bin/ptxas")) if p and os.path.exists(p)]
    if not found:
        raise Skip("ptxas is not installed")
    dump = SCRATCH / "dump.c"
    dump.write_text('#include "base/strbuf.h"\n#include "bench/ptx.h"\n#include <stdio.h>\nint main(int argc, char **argv)\n'
                    '{\n    (void)argv;\n    struct gp_strbuf sb = GP_STRBUF_INIT(1 << 20);\n'
                    '    (argc > 1 ? gp_ptx_add_tensor_module : gp_ptx_add_module)(&sb);\n'
                    '    return sb.error || puts(sb.buf) < 0;\n}\n')
    good(run("cc", "-D_GNU_SOURCE", f"-I{SOURCE}/src", f"-I{SOURCE}", dump, SOURCE / "src/bench/ptx.c",
             SOURCE / "src/base/strbuf.c", "-o", SCRATCH / "dump"))
    module = SCRATCH / "module.ptx"
    assembled = []
    for words, archs in (([], ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90")),
                         (["tensor"], ("sm_80", "sm_86", "sm_89", "sm_90"))):
        module.write_text(good(run(SCRATCH / "dump", *words)))
        for arch in archs:
            done = run(found[0], f"-arch={arch}", module, "-o", SCRATCH / "module.cubin")
            if "is not defined for option 'gpu-name'" in done.stderr:  # that toolkit no longer has it
                continue
            assert done.returncode == 0, (arch, done.stderr[:2000])
            assembled.append((*words, arch))
    assert {("sm_90",), ("sm_80",), ("tensor", "sm_90"), ("tensor", "sm_80")} <= set(assembled), assembled


main()
