#!/usr/bin/env python3
"""The examples of libgpulse, compiled against what "make install" puts where.

variants: release
"""
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import urllib.request

from library import DEST, SIMULATED, SOURCE, declared, install, installed
from tap import GPULSE, Skip, good, main, run, test


def compiled(name, source=None):
    program = DEST / name
    if not program.exists():
        package = installed("gpulse.pc")
        flags = good(run("pkg-config", "--cflags", "--libs", "gpulse",
                         env=dict(os.environ, PKG_CONFIG_PATH=str(package.parent),
                                  PKG_CONFIG_SYSROOT_DIR=str(DEST)))).split()
        good(run("cc", "-std=c11", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                 "-o", program, source or SOURCE / f"examples/c/{name}.c", *flags))
    return program


def example(name, *args, env=SIMULATED):
    library = installed("libgpulse.so.0.0.0").parent
    return run(compiled(name), *args, env=dict(env, LD_LIBRARY_PATH=str(library)))


@test
def every_function_has_an_example():
    texts = [path.read_text() for path in sorted((SOURCE / "examples/c").glob("*.c"))]
    used = set(re.findall(r"\b(gpulse_\w+)\(", "\n".join(texts)))
    assert used == declared(), used ^ declared()


@test
def the_program_of_the_handbook():
    source = DEST / "handbook.c"
    source.write_text(re.search(r"^```c\n(.*?)^```$", (SOURCE / "docs/library.md").read_text(), re.M | re.S)[1])
    compiled("handbook", source)
    assert re.fullmatch(r"GPU 0 uses \d+\.\d GiB\n", good(example("handbook")))


@test
def example_value():
    lines = good(example("value")).splitlines()
    assert len(lines) == 8, lines
    used = good(run(GPULSE, "query", "memory.used:GiB", "--csv", "--no-header", env=SIMULATED))
    for line, gib in zip(lines, used.split()):
        assert re.fullmatch(rf"\d NVIDIA H100 80GB HBM3: {float(gib):.1f} GiB", line), (line, gib)


@test
def example_watch():
    lines = good(example("watch", "2")).splitlines()
    assert len(lines) == 2 and all(re.fullmatch(r"\d\d:\d\d:\d\d( *\d+%){8}", line) for line in lines), lines


@test
def example_processes():
    lines = good(example("processes")).splitlines()
    rows = good(run(GPULSE, "query", "--rows", "processes", "index,pid,user,used_memory",
                    "--csv", "--no-header", env=SIMULATED)).splitlines()
    assert len(lines) == len(rows) > 0, (lines, rows)
    for line, row in zip(lines, rows):
        gpu, pid, user, used = row.split(",")
        mib = re.match(rf"GPU {gpu}: {pid} {user} (\d+) MiB \S", line)
        assert mib and abs(int(mib[1]) - int(used) / 2**20) < 1.5, (line, row)


@test
def example_exporter():
    library = installed("libgpulse.so.0.0.0").parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([compiled("exporter"), str(port)],
                              env=dict(SIMULATED, LD_LIBRARY_PATH=str(library)))
    try:
        text = None
        while text is None:
            assert server.poll() is None, "the exporter ended"
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                    text = answer.read().decode()
            except OSError:
                pass
        assert len(re.findall(r'^gpu_memory_used\{uuid="GPU-[0-9a-f-]+"\} \d', text, re.M)) == 8, text
    finally:
        server.kill()
        server.wait()


@test
def example_reserve():
    with tempfile.TemporaryDirectory(dir=DEST) as state:
        env = dict(SIMULATED, GPULSE_STATE_DIR=state)
        show = f'echo "$CUDA_VISIBLE_DEVICES"; exec {GPULSE} queue -f json'
        mask, _, queue = good(example("reserve", "sh", "-c", show, env=env)).partition("\n")
        held = [h for h in json.loads(queue)["leases"] if "reserve sh -c" in h["command"]]
        assert len(held) == 1 and held[0]["gpus"] == mask, (mask, held)
        picked = good(run(GPULSE, "pick", env=env)).strip()
        assert mask == picked, (mask, picked)  # it is free again
        r = example("reserve", "no-such-command", env=env)
        assert r.returncode == 127, r


@test
def example_pick():
    with tempfile.TemporaryDirectory(dir=DEST) as state:
        env = dict(SIMULATED, GPULSE_STATE_DIR=state)
        lines = good(example("pick", "1.3B", "2", env=env)).splitlines()
        terms = json.loads(good(run(GPULSE, "mem", "--params", "1.3B", "--dtype", "bf16", "-f", "json", env=env)))["estimate"]
        assert lines[:-3] == [f"{t['bytes'] / 2**30:6.1f} GiB  {t['name']}" for t in terms["terms"]], (lines, terms)
        assert lines[-3] == "CUDA_VISIBLE_DEVICES=6,7 selects GPU 6,7" and lines[-1].startswith("GPU-00000007"), lines
        r = example("pick", "70B", env=env)
        assert r.returncode == 1 and "GPUs 0-7: 79.6 GiB per GPU" in r.stderr, r
        assert example("pick", "much", env=env).returncode == 2


@test
def example_events():
    with tempfile.TemporaryDirectory(dir=DEST) as state:
        env = dict(SIMULATED, GPULSE_SIM_STATE=state, LD_LIBRARY_PATH=str(installed("libgpulse.so.0.0.0").parent))
        with subprocess.Popen([compiled("events"), "1"], env=env, stdout=subprocess.PIPE, text=True) as watching:
            assert watching.stdout.readline().startswith("start: ")
            good(run(GPULSE, "sim", "fault", "-m", "h100x8", "--gpu", "3", "xid=79", env=env))
            assert watching.stdout.readline().startswith("xid: GPU 3: "), "xid"
            assert json.loads(watching.stdout.read())["known"][0]["id"] == "xid.79"
        assert watching.returncode == 0, watching.returncode


@test
def example_settings():
    with tempfile.TemporaryDirectory(dir=DEST) as state:
        env = dict(SIMULATED, GPULSE_SIM_STATE=state, GPULSE_SIM_ROOT="1")
        shown = good(example("settings", "1", env=env)).splitlines()
        assert "GPU 1: power-limit: 700 (200 to 700 W)" in shown and all(line.startswith("GPU 1: ") for line in shown), shown
        changed = good(example("settings", "1", "power-limit=400", env=env))
        assert changed == "GPU 1: power-limit: 700 (200 to 700 W), changed to 400; to undo it: power-limit=700\n", changed
        good(example("settings", "1", "power-limit=700", env=env))
        assert good(example("settings", "1", env=env)).splitlines() == shown
        r = example("settings", "1", "power-limit=1", env=env)
        assert r.returncode == 1 and "power-limit" in r.stderr and not r.stdout, r


@test
def example_end():
    with tempfile.TemporaryDirectory(dir=DEST) as state:
        env = dict(SIMULATED, GPULSE_SIM_STATE=state)
        user = good(run("id", "-un")).strip()
        job = subprocess.Popen([GPULSE, "sim", "load", "--gpu", "6", "--mem", "1GiB"], env=env, stdout=subprocess.PIPE,
                               text=True)
        try:
            assert "holds" in job.stdout.readline()
            good(example("end", "5", user, env=env))
            assert job.poll() is None
            good(example("end", "6", user, env=env))
            job.wait()
        finally:
            if job.poll() is None:
                job.kill()
            job.communicate()
        r = example("end", "0", "mia", env=env)  # simulated processes are not signalled
        assert r.returncode == 1 and r.stderr, r
        assert example("end").returncode == 2


@test
def example_metrics():
    lines = good(example("metrics", "links")).splitlines()
    listed = json.loads(good(run(GPULSE, "query", "--list", "-f", "json")))["fields"]
    assert lines[0] == good(run(GPULSE, "--version")).splitlines()[0], lines[0]
    assert [line.split()[0] for line in lines[1:]] == [f["name"] for f in listed if f["rows"] == "links"], lines
    assert example("metrics", "nothing").returncode == 2


@test
def example_explain():
    log = DEST / "job.log"
    log.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.\n")
    assert json.loads(good(example("explain", log))) == json.loads(good(run(GPULSE, "explain", log, "-f", "json")))
    r = example("explain", str(log) + ".not")
    assert r.returncode == 1 and "job.log.not" in r.stderr, r


@test
def errors_are_said():
    without = {k: v for k, v in os.environ.items() if k != "GPULSE_SIM"}
    r = example("value", env=dict(without, GPULSE_NVML="/does/not/exist.so"))
    assert r.returncode == 1 and "/does/not/exist.so" in r.stderr and not r.stdout, r
    r = example("value", env=dict(SIMULATED, GPULSE_SIM="no-such-machine"))
    assert r.returncode == 1 and "no-such-machine" in r.stderr, r


@test
def examples_have_no_memory_errors():
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    log = DEST / "short.log"
    log.write_text("CUDA out of memory\n")
    calls = (["processes"], ["reserve", "true"], ["pick"], ["settings", "0", "power-limit=400"], ["settings"], ["metrics"],
             ["explain", log], ["end", "0", "nobody"], ["watch", "1"])
    with tempfile.TemporaryDirectory(dir=DEST) as state:
        for name, *words in calls:
            env = dict(SIMULATED, GPULSE_SIM_STATE=state, GPULSE_STATE_DIR=state, GPULSE_SIM_ROOT="1",
                       LD_LIBRARY_PATH=str(installed("libgpulse.so.0.0.0").parent))
            r = run("valgrind", "--quiet", "--error-exitcode=99", "--leak-check=full", "--errors-for-leak-kinds=definite",
                    compiled(name), *words, env=env)
            assert r.returncode == 0, (name, r.stderr[-2000:])


install()
try:
    main()
finally:
    shutil.rmtree(DEST)
