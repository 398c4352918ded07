#!/usr/bin/env python3
"""What gpulse serve does beyond reading: choosing, reserving, signals, settings, explanations, estimates.

variants: release
"""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from served import ENV, STATE, schemas, server
from tap import GPULSE, Skip, good, main, run, test

PLACE = Path(STATE) / "leases"
PLACE.mkdir(mode=0o700)
ENV["GPULSE_STATE_DIR"] = str(PLACE)


def gp(*words):
    return good(run(GPULSE, *words, env=ENV)).strip()


def document(*words):
    return json.loads(gp(*words, "-f", "json"))


def refused(s, kind, method, **params):
    answer = s.ask(method, params)
    assert "error" in answer, answer
    error = answer["error"]
    assert error["data"]["kind"] == kind and error["code"] == (-32602 if kind == "usage" else -32000), error
    return error["message"]


def held():
    """The pids of those that hold reservations."""
    return {lease["pid"] for lease in document("queue")["leases"]}


def load(*words):
    job = subprocess.Popen([GPULSE, "sim", "load", "--mem", "1GiB", *words], env=ENV, stdout=subprocess.PIPE, text=True)
    assert "holds" in job.stdout.readline()
    return job


@test
def picks_as_the_command_does():
    with server() as s:
        free = s.call("pick")
        assert (free["mask"], free["gpus"], len(free["uuids"])) == (gp("pick"), gp("pick"), 1), free
        assert s.call("pick", count=2, order="index")["mask"] == gp("pick", "-n", "2", "--order", "index")
        assert s.call("pick", at_most=8)["gpus"].count(",") == 1
        assert s.call("pick", uuids=True)["mask"] == s.call("pick")["uuids"][0]
        assert s.call("pick", gpus=[6])["gpus"] == s.call("pick", avoid=7)["gpus"] == s.call("pick", prefer="6")["gpus"] == "6"
        assert s.call("pick", memory="70GiB") == s.call("pick", memory=70 << 30) == free
        assert "GPUs 0-3: reserved by llama-8b" in refused(s, "busy", "pick", count=3)
        refused(s, "never", "pick", memory="90GiB")
        refused(s, "never", "pick", count=9)
        refused(s, "usage", "pick", share=True)
        assert "'memory' takes a number of bytes" in refused(s, "usage", "pick", memory="lots")
        assert "at most 4294967295" in refused(s, "usage", "pick", count=1 << 32)
        assert "unknown order" in refused(s, "usage", "pick", order="size")
        assert "no parameter 'wait'" in refused(s, "usage", "pick", wait=5)
        assert s.end() == []


@test
def a_reservation_ends_with_release_or_with_the_server():
    with server() as s:
        first = s.call("reserve", name="editor")
        second = s.call("reserve", gpus=6)
        assert {first["gpus"], second["gpus"]} == {"6", "7"} and first["reservation"] != second["reservation"]
        assert s.process.pid in held()
        assert "editor" in gp("queue")
        assert "reserved" in refused(s, "busy", "reserve")
        assert s.call("release", reservation=first["reservation"]) == {"reservation": first["reservation"]}
        assert "editor" not in gp("queue") and gp("pick") == first["gpus"]
        refused(s, "usage", "release", reservation=first["reservation"])
        refused(s, "usage", "release", reservation=0)
        assert "needs 'reservation'" in refused(s, "usage", "release")
        assert s.end() == []
    assert s.process.pid not in held()
    with server() as s:
        s.call("reserve", count=2)
        s.process.kill() # however it ends
        s.process.wait()
        assert gp("pick", "-n", "2")


@test
def a_reservation_whose_file_is_removed():
    def removed():
        for file in [path for path in PLACE.rglob("*") if path.is_file()]:
            file.unlink()

    def is_written():
        return any(path.is_file() for path in PLACE.rglob("*"))
    with server() as s, server() as rival:
        kept = s.call("reserve", count=2)["reservation"]
        removed()
        while not is_written():  # within a second
            signal.sigtimedwait([], 0.05)
        os.kill(s.process.pid, signal.SIGSTOP)
        removed()
        taken = rival.call("reserve")["reservation"]
        os.kill(s.process.pid, signal.SIGCONT)
        note = s.note()
        assert note["method"] == "error" and note["params"]["reservation"] == kept, note
        assert note["params"]["error"]["data"]["kind"] == "busy" and "since" in note["params"]["error"]["message"], note
        found = schemas()
        if found:
            found[0].Draft202012Validator(found[1]["serve"]).validate(note)
        rival.call("release", reservation=taken)
        assert s.end() == []  # it is said once


@test
def at_most_16_reservations():
    with server() as s:
        for _ in range(16):
            s.call("reserve", share=True, memory="1GiB", gpus=7)
        assert "at most 16" in refused(s, "busy", "reserve", share=True, memory="1GiB", gpus=7)
        s.call("release", reservation=3)
        assert s.call("reserve", share=True, memory="1GiB", gpus=7)["reservation"] == 17


@test
def signals_reach_only_the_process_that_was_listed():
    job = load("--gpu", "6")
    try:
        with server() as s:
            seen = next(p for p in s.call("processes")["processes"] if p["pid"] == job.pid)
            assert s.call("signal", pid=job.pid, start=seen["start"], signal="none") == {"pid": job.pid}
            near = re.sub(r"\.\d+", ".999", seen["start"]) # of another session, or after a step of the clock
            assert s.call("signal", pid=job.pid, start=near, signal="none") == {"pid": job.pid}
            assert "needs 'start'" in refused(s, "usage", "signal", pid=job.pid)
            assert "'signal' takes term" in refused(s, "usage", "signal", pid=job.pid, start=seen["start"], signal="9")
            other = seen["start"].replace("20", "19", 1)
            assert other in refused(s, "failed", "signal", pid=job.pid, start=other)
            assert "uses a GPU" in refused(s, "failed", "signal", pid=os.getpid(), start=seen["start"])
            assert job.poll() is None
            s.call("signal", pid=job.pid, start=seen["start"], signal="TERM")
            job.wait()
            refused(s, "failed", "signal", pid=job.pid, start=seen["start"])
            assert s.end() == []
    finally:
        if job.poll() is None:
            job.kill()
        job.communicate()


@test
def settings_are_read_changed_and_restored():
    shown = document("set", "--show", "-i", "2")["gpus"][0]["controls"]

    def limit(s):
        return next(r for r in s.call("settings", gpus=2)["settings"] if r["name"] == "power-limit")["value"]
    with server() as s:
        rows = s.call("settings", gpus="2")["settings"]
        assert [r["name"] for r in rows] == list(shown)
        power = next(r for r in rows if r["name"] == "power-limit")
        theirs = shown["power-limit"]
        assert (float(power["value"]), power["least"], power["most"], power["unit"]) == \
            (theirs["value"], theirs["min"], theirs["max"], "W"), power
        before = power["value"]
        checked = s.call("change", changes={"power-limit": 400}, gpus=2, check_only=True)
        assert ([r["outcome"] for r in checked["settings"]], limit(s)) == (["not tried"], before)
        done = s.call("change", changes={"power-limit": 400, "persistence-mode": True}, gpus=2)
        row = next(r for r in done["settings"] if r["name"] == "power-limit")
        assert (row["value"], row["wanted"], row["after"], row["outcome"], limit(s)) == (before, "400", "400", "done", "400")
        assert done["error"] is None
        s.call("change", changes=row["undo"], gpus=row["uuid"])
        assert limit(s) == before
        assert s.call("change", changes=f"power-limit={before}", gpus=2)["settings"][0]["outcome"] == "same"
        assert "power-limit" in refused(s, "usage", "change", changes={"power-limt": 1})
        assert "without blanks" in refused(s, "usage", "change", changes={"power-limit": "400 ecc=off"})
        assert "without blanks" in refused(s, "usage", "change", changes={"a b": 1})
        assert "without blanks" in refused(s, "usage", "change", changes={})
        assert "without blanks" in refused(s, "usage", "change", changes={"power-limit": None})
        refused(s, "usage", "change", changes={"power-limit": 1})
        assert "needs 'changes'" in refused(s, "usage", "change")
        assert limit(s) == before


@contextlib.contextmanager
def faulty(gpu, fault):
    """A server of a machine with a fault."""
    with tempfile.TemporaryDirectory(dir=STATE) as state:
        own = dict(ENV, GPULSE_SIM_STATE=state)
        good(run(GPULSE, "sim", "fault", "-m", "h100x8", "--gpu", str(gpu), fault, env=own))
        with server(GPULSE_SIM_STATE=state) as s:
            yield s


@test
def a_change_that_fails_on_one_gpu():
    with faulty(2, "hang=10m:nvmlDeviceSetPowerManagementLimit") as s:
        changed = s.call("change", changes="power-limit=400", gpus="1-2", timeout=1)
        assert [(r["gpu"], r["outcome"]) for r in changed["settings"]] == [(1, "done"), (2, "hung")], changed
        assert "GPU 2" in changed["error"] and changed["settings"][1]["reason"], changed
        assert changed["settings"][0]["undo"] == "power-limit=700"
        assert s.end() == []


@test
def a_gpu_that_hangs_delays_nothing_else():
    with faulty(5, "hang=10m") as s:
        assert s.call("pick", timeout=1)["gpus"] == "7"
        kept = s.call("reserve", timeout=1)
        rows = s.call("settings", timeout=1, gpus="4-5")["settings"]
        assert all(r["value"] is None and r["reason"] for r in rows if r["gpu"] == 5), rows
        assert any(r["value"] for r in rows if r["gpu"] == 4)
        s.call("release", reservation=kept["reservation"])
        assert s.end() == []


@test
def explanations_and_estimates():
    log = Path(STATE) / "job.log"
    log.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.\n")
    with server() as s:
        assert s.call("explain", text="xid 79") == document("doctor", "explain", "xid", "79")
        assert s.call("explain", log=str(log)) == document("explain", str(log))
        assert "either 'text' or 'log'" in refused(s, "usage", "explain")
        assert "either 'text' or 'log'" in refused(s, "usage", "explain", text="x", log="y")
        assert "'text' takes a text" in refused(s, "usage", "explain", text=79)
        assert "xid 99999" in refused(s, "failed", "explain", text="xid 99999").replace("'", "")
        refused(s, "failed", "explain", log=str(log) + ".not")
        ours = s.call("estimate", params="7B", dtype="bf16", optimizer="adamw")
        theirs = document("mem", "--params", "7B", "--dtype", "bf16", "--optimizer", "adamw")["estimate"]
        assert [(t["name"], t["bytes"]) for t in ours["terms"]] == [(t["name"], t["bytes"]) for t in theirs["terms"]]
        assert ours["total"] == sum(t["bytes"] for t in ours["terms"])
        assert s.call("estimate", params="7B", inference=True, batch=4, seq=4096, layers=32, hidden=4096)["total"] < ours["total"]
        refused(s, "usage", "estimate")
        refused(s, "usage", "estimate", params="much")


@test
def without_a_driver():
    with server(GPULSE_SIM="", GPULSE_NVML="/does/not/exist.so") as s:
        for method, params in (("pick", {}), ("reserve", {}), ("settings", {}), ("change", {"changes": "power-limit=300"}),
                               ("signal", {"pid": 1, "start": "now"})):
            assert "/does/not/exist.so" in refused(s, "driver", method, **params), method
        assert s.call("explain", text="xid 79") and s.call("estimate", params="7B")


@test
def results_match_their_schema():
    found = schemas()
    if not found:
        raise Skip("no jsonschema")
    jsonschema, texts = found
    validator = jsonschema.Draft202012Validator(texts["serve"])
    calls = [("pick", {}), ("reserve", {}), ("release", {"reservation": 1}), ("pick", {"count": 9}), ("settings", {"gpus": 0}),
             ("change", {"changes": "power-limit=500", "gpus": 0, "check_only": True}), ("explain", {"text": "xid 79"}),
             ("estimate", {"params": "7B"})]
    with server() as s:
        for method, params in calls:
            validator.validate(s.ask(method, params))
    for wrong in ({"mask": "7"}, {"settings": [{"name": "x"}]}, {"reservation": 0}, {"total": 1}):
        assert not validator.is_valid({"jsonrpc": "2.0", "id": 1, "result": wrong}), wrong


try:
    main()
finally:
    shutil.rmtree(STATE)
