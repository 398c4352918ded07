#!/usr/bin/env python3
"""gpulse diff: recordings without a difference, recordings with a planted one, and jobs. The recordings are made by
tests/scenes, with invented clocks: half an hour takes 50 ms.

variants: asan release
"""
import atexit
import concurrent.futures
import functools
import json
import math
import os
import random
import shutil
import sqlite3
import tempfile
import time
from pathlib import Path

from tap import BUILD, GPULSE, VARIANT, good, gpulse, main, run, test

FOLDER = Path(tempfile.mkdtemp(prefix="gpulse-diff-"))
SCENES = Path(BUILD).resolve() / "tests/scenes/scenes"
ENV = dict(os.environ, XDG_STATE_HOME=str(FOLDER / "state"))
PAIRS = 20 if VARIANT == "asan" else 200
START = 1795800000  # 2026-11-27 17:20 UTC


def scene(name, **planted):
    """Records; returns the file."""
    tape = FOLDER / name
    good(run(SCENES, tape, *(f"{key}={value}" for key, value in planted.items())))
    return tape


@functools.cache
def usual():
    return scene("usual.tape", seed=1)


@functools.cache
def errors():
    return scene("errors.tape", seed=5, errors=200)


def diff(*words, status=None, **more):
    result = gpulse("diff", *words, **more)
    assert result.returncode in ((0, 1) if status is None else (status,)), result
    assert result.returncode == 2 or not result.stderr, result.stderr
    return result


def document(*words, status=None):
    return json.loads(diff("-f", "json", *words, status=status).stdout)


def changed(found):
    """What changed: {(GPU, name, when)}."""
    return {(gpu["gpu"], c["name"], c["when"]) for gpu in found["gpus"] for c in gpu["comparisons"]
            if c["verdict"] == "changed"}


def comparison(found, name, when="load", gpu=0):
    return next(c for c in found["gpus"][gpu]["comparisons"] if (c["name"], c["when"]) == (name, when))


def for_pairs(function, count=PAIRS):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        return list(pool.map(function, range(count)))


def pair(number, before, after):
    """The exit status and the document of the comparison of two recordings."""
    tapes = [scene(f"pair-{number}-{side}.tape", seed=2 * number + side + 1, start=START + 100000 * side, **more)
             for side, more in enumerate((before, after))]
    result = diff("-f", "json", *tapes)
    for tape in tapes:
        tape.unlink()
    return result.returncode, json.loads(result.stdout)


# ---- error rates ----

@test
def no_alarm_without_a_difference():
    """In at most 5 % of pairs: with phases of load, noise that resembles that of the second before, and a
    temperature that follows the power."""
    results = for_pairs(lambda i: pair(i, {}, {}))
    alarms = [changed(found) for status, found in results if status == 1]
    assert len(alarms) <= max(1, PAIRS * 5 // 100), alarms
    assert all(found["tests"] >= 25 for _, found in results)


@test
def no_alarm_after_a_cold_start_or_in_little_time():
    """A GPU that warms up, and ten minutes: some numbers cannot be compared."""
    results = for_pairs(lambda i: pair(1000 + i, {"cold": 1, "seconds": 600, "gpus": 4},
                                       {"cold": 1, "seconds": 600, "gpus": 4}), PAIRS // 2)
    alarms = [changed(found) for status, found in results if status == 1]
    assert len(alarms) <= max(1, PAIRS * 5 // 200), alarms


@test
def a_slowdown_of_3_percent_is_found():
    """In at least 95 % of pairs, on each GPU, where the noise of the clock is 2 %."""
    results = for_pairs(lambda i: pair(2000 + i, {}, {"clock": 0.97}))
    found = sum({gpu for gpu, name, _ in changed(document) if name == "clocks.current.sm"} == {"0", "1"}
                for _, document in results)
    assert found >= PAIRS * 95 // 100, found
    inside = 0
    for _, document in results:
        clock = comparison(document, "clocks.current.sm")
        low, high = (100 * n / clock["before"] for n in clock["difference_interval"])
        assert -7 < low < clock["change_percent"] < high < 0
        inside += low <= -3 <= high
    assert inside >= PAIRS * 88 // 100, inside


@test
def a_slowdown_in_summaries():
    """Two hours, of which samples exist for twenty minutes."""
    results = for_pairs(lambda i: pair(3000 + i, {"seconds": 7200, "keep": 1200, "gpus": 1},
                                       {"seconds": 7200, "keep": 1200, "gpus": 1, "clock": 0.97}), 10)
    assert all(("0", "clocks.current.sm", "load") in changed(found) for _, found in results)
    assert all(found["before"]["recorded_s"] == 7200 for _, found in results), results[0][1]["before"]


# ---- what is found ----

@test
def every_planted_difference():
    assert diff(usual(), usual(), status=0).stdout.count("No difference beyond noise") == 1
    for more, name, when in (({"power": 0.9}, "power.draw", "load"),
                             ({"memory": 1.05}, "memory.used", "always"),
                             ({"sm": 0.9}, "gpm.sm.active", "load"),
                             ({"throttled": 0.1}, "thermal", "load"),
                             ({"errors": 60}, "xid", "always")):
        found = document(usual(), scene("planted.tape", seed=2, **more), status=1)
        (FOLDER / "planted.tape").unlink()
        assert {("0", name, when), ("1", name, when)} <= changed(found), (more, changed(found))
    found = document("--all", usual(), scene("idle.tape", seed=2, idle=1), status=1)
    assert ("0", "utilization.gpu", "always") in changed(found)
    assert not any(c["when"] == "load" for c in found["gpus"][0]["comparisons"])


@test
def errors_are_counted():
    """Each minute once, whatever repeats in it; as another program counts them."""
    tape = errors()
    with sqlite3.connect(tape) as db:
        times = [t for t, in db.execute("SELECT t FROM event WHERE kind = 'xid' AND gpu = 1 ORDER BY t")]
    distinct, last = 0, -math.inf
    for t in times:
        if t - last >= 60e6:
            distinct, last = distinct + 1, t
    found = document(usual(), tape, status=1)
    counted = comparison(found, "xid", "always")
    assert counted["events"] == [0, distinct] and 10 < distinct < len(times), (counted, distinct, len(times))
    assert abs(counted["after"] - distinct * 2) < 1e-6 and counted["test"] == "poisson"
    assert "0 → %d events" % distinct in diff(usual(), tape).stdout


@test
def a_change_of_all_gpus_is_one_line():
    tapes = [scene(f"all-{i}.tape", seed=i, gpus=8, clock=1 - 0.04 * i) for i in (0, 1)]
    text = diff(*tapes, status=1).stdout
    assert text.count("SM clock under load") == 1 and "\nAll 8 GPUs\n" in text and "GPU 3" not in text, text
    assert diff("--all", *tapes, status=1).stdout.count("SM clock under load") == 8
    assert "8 of " in text, text


@test
def settings_and_versions():
    other = scene("other.tape", seed=2, driver=590, limit=600)
    found = document(usual(), other, status=1)
    changes = {(c["gpu"], c["field"]): (c["before"], c["after"]) for c in found["changes"]}
    assert changes == {(None, "driver_version"): ("580.95.05", "590.95.05"),
                       ("0", "power.limit"): (700, 600), ("1", "power.limit"): (700, 600),
                       ("0", "enforced.power.limit"): (700, 600), ("1", "enforced.power.limit"): (700, 600)}
    text = diff(usual(), other).stdout
    assert "580.95.05 → 590.95.05" in text and "700 W → 600 W" in text, text


@test
def small_differences_only_with_all():
    """0.7 %, and certain."""
    one, other = (scene(f"small-{i}.tape", seed=i, seconds=14400, power=1 - 0.007 * i) for i in (0, 1))
    assert "too little to matter" in diff(one, other, status=0).stdout
    text = diff("--all", one, other, status=1).stdout
    assert "too small to matter" in text, text
    power = comparison(document("--all", one, other), "power.draw")
    assert power["verdict"] == "small" and power["p_corrected"] < 0.05, power


@test
def selected_gpus():
    found = document("-i", "1", usual(), scene("selected.tape", seed=2, gpus=3, power=0.8), status=1)
    assert {gpu for gpu, _, _ in changed(found)} == {"1"} and len(found["gpus"]) == 1, found["gpus"]
    by_uuid = document("-i", "GPU-00000001-0000-0000-0000-000000000001", usual(), usual(), status=0)
    assert [gpu["gpu"] for gpu in by_uuid["gpus"]] == ["1"]
    assert "matches -i 7" in gpulse("diff", "-i", "7", usual(), usual()).stderr


@test
def another_machine():
    """GPUs are paired in their order, which is said; those left over are named."""
    one = scene("machine-1.tape", seed=1, gpus=3)
    two = scene("machine-2.tape", seed=2, gpus=2, machine=2, clock=0.9)
    result = diff("--all", one, two, status=1)
    assert "note: GPU 2 is only in" in result.stdout, result.stdout
    assert "GPU 1, compared with another GPU: GPU 1 before" in result.stdout, result.stdout
    found = document(one, two)
    assert [gpu["matched_by"] for gpu in found["gpus"]] == ["index", "index"]
    assert found["gpus"][1]["uuid"] == "GPU-00000002-0000-0000-0000-000000000001"


@test
def two_times_of_one_recording():
    own = FOLDER / "state/gpulse/record"
    own.mkdir(parents=True)
    good(run(SCENES, own / "gpulse.tape", "seed=1", f"start={START}", "gpus=1"))
    good(run(SCENES, own / "gpulse.tape", "seed=2", f"start={START + 86400}", "gpus=1", "power=0.8"))
    zone = dict(ENV, TZ="UTC")
    times = ("@2026-11-27 17:20..2026-11-27 17:50", "@2026-11-28 17:20..")
    found = json.loads(diff("-f", "json", *times, env=zone, status=1).stdout)
    assert {("0", "power.draw", "load"), ("0", "temperature.gpu", "load")} & changed(found), changed(found)
    assert found["before"]["recorded_s"] == found["after"]["recorded_s"] == 1800, (found["before"], found["after"])
    assert found["before"]["from"].startswith("2026-11-27T17:20:00"), found["before"]
    file = own / "gpulse.tape"
    again = json.loads(diff("-f", "json", *(f"{file}{t}" for t in times), env=zone, status=1).stdout)
    assert changed(again) == changed(found)
    strange = FOLDER / "a@b..c.tape"
    shutil.copy(usual(), strange)
    diff(strange, usual(), status=0)


# ---- jobs ----

def job(name, seed, pace, seconds=1800):
    """The record of a job on GPU 3, as gpulse run writes it: steps of 0.4 s with noise of 2 % that resembles that
    of the second before."""
    folder = FOLDER / name
    folder.mkdir()
    chance = random.Random(seed)
    lines = ["time_s,gpu,utilization_percent,memory_used_bytes,power_w,energy_j,job_memory_bytes,job_cpu_percent,"
             "job_rss_bytes,job_steps,job_step_time_s"]
    steps, last, noise, next_step = 0, 0, chance.gauss(0, 1), 0.3
    for second in range(1, seconds + 1):
        noise = 0.8 * noise + 0.6 * chance.gauss(0, 1)
        while next_step <= second:
            last = next_step
            steps += 1
            next_step += 0.4 / (pace * (1 + 0.02 * noise))
        power = 600 + chance.gauss(0, 10)
        lines.append(f"{second}.0,3,98,70000000000,{power:.1f},1,69000000000,100.0,1,{steps},{last:.3f}")
    (folder / "samples.csv").write_text("\n".join(lines) + "\n")
    (folder / "run.json").write_text(json.dumps({
        "schema": "gpulse.run/1", "state": "ended", "status": 0, "duration_s": seconds,
        "started": "2026-11-27T17:20:00.000+00:00", "gpus": [{"index": 3, "uuid": "GPU-3"}],
        "pace": {"steps": steps, "steps_per_s": steps / seconds}}))
    return folder


@test
def steps_per_second_of_jobs():
    """No alarm if they are the same, and 3 % are found."""
    def compare(number, pace):
        folders = [job(f"job-{number}-{pace}-{side}", 10 * number + side, pace if side else 1) for side in (0, 1)]
        found = document(*folders)
        for folder in folders:
            shutil.rmtree(folder)
        return found
    same = for_pairs(lambda i: compare(i, 1))
    alarms = sum(found["changed"] for found in same)
    assert alarms <= max(1, PAIRS * 5 // 100), alarms
    slower = for_pairs(lambda i: compare(i, 0.97))
    found = [d["job"][0] for d in slower if d["job"] and d["job"][0]["verdict"] == "changed"]
    assert len(found) >= PAIRS * 95 // 100, len(found)
    assert all(c["name"] == "pace" and -4 < c["change_percent"] < -2 for c in found)
    assert abs(found[0]["before"] - 2.5) < 0.1, found[0]


@test
def a_job_that_gpulse_run_recorded():
    folders = [FOLDER / name for name in ("run-1", "run-2")]
    for folder in folders:
        good(gpulse("--sim", "h100x8", "run", "-q", "--dir", folder, "--step-match", "step ([0-9]+)",
                    "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo step $i; sleep 0.4; done",
                    env=dict(ENV, GPULSE_STATE_DIR=str(FOLDER))))
        last = (folder / "samples.csv").read_text().splitlines()[-1].split(",")
        assert 3 <= float(last[-2]) <= 7 and float(last[-1]) > 1, last
    result = diff(*folders, status=2)
    assert "per second" in result.stdout and "Too little was recorded" in result.stdout, result.stdout


# ---- what cannot be compared ----

@test
def trouble():
    tape = usual()
    for words, said in (((), "usage: gpulse diff"), ((tape,), "usage: gpulse diff"),
                        ((tape, tape, tape), "usage: gpulse diff"),
                        ((tape, FOLDER / "none.tape"), "No such file"),
                        ((tape, FOLDER), "not the record of a job"),
                        ((tape, f"{tape}@noon..13:00"), "is not a time"),
                        ((tape, f"{tape}@13:00"), "FROM..TO"),
                        ((tape, f"{tape}@2026-11-27 13:00..2026-11-27 12:00"), "ends before it begins"),
                        ((tape, f"{tape}@2020-01-01..2020-01-02"), "nothing was recorded"),
                        ((tape, "@"), "FROM..TO"), (("--nonsense",), "nonsense")):
        result = gpulse("diff", *words, env=ENV)
        assert result.returncode == 2 and said in result.stderr, (words, result)
    result = diff(scene("short-1.tape", seconds=60), scene("short-2.tape", seconds=60, throttled=1), status=2)
    assert "Too little was recorded" in result.stdout, result.stdout
    result = gpulse("diff", tape, tape, "--tape", tape)
    assert result.returncode == 2 and "not on a recording" in result.stderr, result


@test
def texts_of_strangers_are_escaped():
    evil = "evil\x1b[2J\u202e.tape"
    tape = FOLDER / evil
    shutil.copy(usual(), tape)
    for words in ((), ("-f", "json")):
        out = diff(*words, tape, tape).stdout
        assert "\x1b" not in out and "\u202e" not in out and "evil" in out, out
    assert json.loads(diff("-f", "json", tape, tape).stdout)["before"]["source"].endswith(".tape")
    folder = job("strange", 1, 1, 300)
    document_ = json.loads((folder / "run.json").read_text())
    document_["gpus"][0]["uuid"] = "GPU-\x1b[31m\n"
    (folder / "run.json").write_text(json.dumps(document_))
    with open(folder / "samples.csv", "a") as samples:
        samples.write("1e999,3,1,1\nnan,nan\n-1,3\n" + "1,1e18,5\n" + "9" * 5000 + ",3,,\n5,3,1e300,inf,1,1,1,1,1,1e50,1e50\n")
    for words in ((), ("-f", "json", "--all")):
        assert "\x1b" not in diff(*words, folder, folder).stdout


@test
def damaged_recordings():
    """An error, or some result; never a crash, and it ends."""
    whole = usual().read_bytes()
    chance = random.Random(28)
    tape = FOLDER / "damaged.tape"
    for _ in range(15 if VARIANT == "asan" else 60):
        damaged = bytearray(whole)
        for _ in range(chance.randrange(1, 60)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        tape.write_bytes(damaged)
        result = gpulse("diff", tape, usual())
        assert result.returncode in (0, 1, 2), result
    for statement in ("UPDATE tick SET t = t * 4000", "UPDATE chunk SET first = -first",
                      "UPDATE chunk SET last = 9223372036854775807", "UPDATE chunk SET first = 9223372036854775807 - id",
                      "UPDATE meta SET value = 9223372036854775807 WHERE key = 'interval'",
                      "UPDATE meta SET value = 0 WHERE key = 'interval'", "DELETE FROM tick",
                      "UPDATE field SET scale = 1e-300 WHERE scale > 1", "UPDATE event SET t = -t",
                      "UPDATE clock SET ahead = 9223372036854775807", "UPDATE clock SET ahead = -9223372036854775807",
                      "UPDATE clock SET t = -9223372036854775807 - 1"):
        shutil.copy(errors(), tape)
        with sqlite3.connect(tape) as db:
            db.execute(statement)
        db.close()
        for times in ("", "@2026-11-27..2026-11-28"):
            result = gpulse("diff", "--all", f"{tape}{times}", usual())
            assert result.returncode in (0, 1, 2) and "runtime error" not in result.stderr, (statement, result)


@test
def a_recording_that_is_being_written():
    tape = FOLDER / "live.tape"
    good(gpulse("--sim", "h100x2", "record", "-q", "-o", tape, "-n", "0.1", "--duration", "2s", "--", "true"))
    recorder = [GPULSE, "--sim", "h100x2", "record", "-q", "-o", tape, "-n", "0.1", "--duration", "4s"]
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, *recorder)
        while not running.done():
            assert gpulse("diff", tape, tape).returncode in (0, 2)
            time.sleep(0.2)
        good(running.result())


@atexit.register
def clean_up():
    shutil.rmtree(FOLDER, ignore_errors=True)


main()
