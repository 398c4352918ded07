#!/usr/bin/env python3
"""gpulse report: its sums are compared with sums of the same file that are worked out here, by the rules in docs/record.md.

variants: asan release
"""
import atexit
import contextlib
import csv
import ctypes
import html.parser
import io
import json
import mmap
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unicodedata
import xml.etree.ElementTree as ET
from collections import defaultdict
from datetime import datetime
from pathlib import Path

from tap import GPULSE, VARIANT, Skip, good, gpulse, main, run, system_module, test

jsonschema = system_module("jsonschema")
FOLDER = Path(tempfile.mkdtemp(prefix="gpulse-report-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
PERIOD = 600_000_000
START = 1_795_800_000_000_000  # 2026-11-27 17:20 UTC, a multiple of ten minutes
os.environ["TZ"] = "Europe/Berlin"
time.tzset()
INCIDENTS = {"xid", "ecc.corrected", "ecc.uncorrected", "ecc.storm", "poison", "retirement", "unavailable", "lost", "silent",
             "throttle"}


def database(tape):
    return contextlib.closing(sqlite3.connect(tape))


def empty(name):
    """A recording of two GPUs without anything in it, by gpulse itself."""
    template = FOLDER / "template.tape"
    if not template.exists():
        good(gpulse("--sim", "h100x2", "record", "-q", "-o", template, "--duration", "1s"))
        with database(template) as db:
            for table in ("usage", "share", "process", "event", "clock", "line"):
                db.execute(f"DELETE FROM {table}")
            db.execute("DELETE FROM meta WHERE key = 'derived'")
            db.commit()
    tape = FOLDER / name
    shutil.copy(template, tape)
    return tape


def copy_of(tape, name):
    copy = FOLDER / name
    shutil.copy(tape, copy)
    return copy


def gpu_ids(db):
    return [gpu for gpu, in db.execute("SELECT id FROM gpu ORDER BY id")]


PROCESSES = [  # user, program, container, container's name
    ("mia", "python", "slurm:100.0", None), ("mia", "python", "slurm:100.1", None), ("tom", "vllm", "docker:abc", "chat"),
    ("tom", "python", None, None), (None, None, None, None), ("ada", "python", "slurm:101", None), ("ada", "old", None, None)]


def fill(tape, hours=50, seed=27):
    """Two GPUs, on which processes come and go; an hour of which nothing is known."""
    chance = random.Random(seed)
    with database(tape) as db:
        gpus = gpu_ids(db)
        db.execute("INSERT INTO clock VALUES(?, 0, 'boot', 0)", (START + 90_000_000,))
        periods = hours * 6
        for number, (user, name, container, title) in enumerate(PROCESSES, 1):
            first = START + chance.randrange(periods // 2) * PERIOD
            last = first + chance.randrange(periods // 4, periods) * PERIOD
            db.execute("INSERT INTO process VALUES(?, ?, 0, ?, ?, NULL, ?, NULL, ?, ?, NULL, ?, ?, 0)",
                       (number, 4000 + number, user, name, f"{name} --job {number}", container, title, first, last))
        for period in range(periods):
            t = START + period * PERIOD
            if 30 <= period < 36:
                continue
            for gpu in gpus:
                alive = [n for n, in db.execute("SELECT id FROM process WHERE first <= ? AND last > ?", (t, t))
                         if (n + gpu) % 3]
                held = PERIOD if alive else 0
                busy = chance.choice([0, chance.randrange(PERIOD)]) if alive else 0
                idle = PERIOD - busy if alive and chance.random() < 0.5 else held if busy == 0 else 0
                known = PERIOD if chance.random() < 0.9 else chance.randrange(PERIOD)
                db.execute("INSERT INTO usage VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
                           (t, gpu, known, min(busy, known), held, min(idle, known), chance.choice([0, PERIOD]),
                            chance.randrange(60_000_000, 400_000_000), chance.randrange(1 << 37)))
                for process in alive:
                    mine = chance.randrange(PERIOD // 2, PERIOD + 1)
                    if process == 7:  # its driver reports no SM time
                        part = (0, 0, 0)
                    else:
                        part = (busy // len(alive), chance.randrange(mine + 1) if chance.random() < 0.7 else 0,
                                chance.randrange(200_000_000))
                    db.execute("INSERT INTO share VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
                               (t, process, gpu, mine, *part, chance.randrange(1 << 36)))
            if chance.random() < 0.2:
                kind = chance.choice(["xid", "lost", "back", "throttle", "ecc.corrected", "pstate", "start", "nosuch"])
                now = chance.choice(["0x0000000000000001", "0x0000000000000024"]) if kind == "throttle" else ""
                db.execute("INSERT INTO event VALUES(NULL, ?, ?, ?, 79, 1, '', ?, 'words')",
                           (t + chance.randrange(PERIOD), chance.choice(gpus), kind, now))
        db.execute("REPLACE INTO meta VALUES('derived', ?)", (START + periods * PERIOD - 100_000_000,))
        db.commit()
    return tape


MACHINE = fill(empty("machine.tape"))


# ---- the same sums, worked out here ----

def process_key(by, row):
    number, user, name, container, title = row
    is_job = container is not None and container.startswith(("slurm:", "pbs:"))
    return {"user": user, "program": name, "process": number, "job": container.split(".")[0] if is_job else None,
            "container": None if is_job else title or container}[by]


def expected(tape, by, since=0, until=1 << 62, users=None, gpus=None):
    """{key: sums} of a table by user, job, container, program, process or (process, gpu)."""
    sums = defaultdict(lambda: defaultdict(int))
    with database(tape) as db:
        lives = {row[0]: row for row in db.execute("SELECT id, user, name, container, container_name FROM process")}
        spans = {row[0]: row[1:] for row in db.execute("SELECT id, first, last FROM process")}
        held_of = {(t, gpu): held for t, gpu, held in db.execute("SELECT t, gpu, held FROM usage")}
        cells = defaultdict(list)
        for t, process, gpu, *numbers in db.execute("SELECT * FROM share WHERE t >= ? AND t < ?", (since, until)):
            if (users is None or lives[process][1] in users) and (gpus is None or gpu in gpus):
                key = gpu if by == "gpu" else 0 if by == "all" else process_key(by, lives[process]) if by != "idle" else (process, gpu)
                cells[t, gpu, key].append((process, *numbers))
        incidents = [(t, gpu, kind) for t, gpu, kind, now in db.execute("SELECT t, gpu, kind, now FROM event")
                     if kind in INCIDENTS and (kind != "throttle" or int(now, 16) & ~1)]
    for (t, gpu, key), parts in cells.items():
        s = sums[key]
        most = held_of[t, gpu]
        held = min(sum(part[1] for part in parts), most)
        measured = min(sum(part[1] for part in parts if part[2] or part[3]), held)
        busy = sum(part[2] for part in parts)
        active = sum(part[1] - part[3] for part in parts)
        s["held"] += held
        s["measured"] += measured
        s["busy"] += busy
        s["used"] += min(busy, measured)
        s["idle"] += max(0, held - active) if measured else 0
        s["energy"] += sum(part[4] for part in parts)
        s["memory"] = max([s["memory"], *(part[5] for part in parts)])
        for when, where, kind in incidents:
            if where == gpu and t <= when < t + PERIOD and min(spans[p[0]][0] for p in parts) <= when <= \
                    max(spans[p[0]][1] for p in parts) + 5_000_000:
                s["incident " + kind] += 1
        s.setdefault("who", set()).update(part[0] for part in parts)
    return sums


def expected_gpus(tape, since=0, until=1 << 62):
    with database(tape) as db:
        return {gpu: numbers for gpu, *numbers in db.execute(
            "SELECT gpu, sum(known), sum(busy), sum(held), sum(min(idle, held, known)), sum(reserved), sum(energy), max(memory), "
            "sum(min(held, known)), sum(min(busy, held, known)) FROM usage WHERE t >= ? AND t < ? GROUP BY gpu", (since, until))}


def hours(us):
    return None if us is None else round(us * 3_600_000_000)


def report(*words):
    return json.loads(good(gpulse("report", *words, "-f", "json")))


def table(document, by):
    found, = [t["rows"] for t in document["tables"] if t["by"] == by]
    return found


def check_groups(document, by, sums):
    rows = table(document, by)
    named = {row["pid"] - 4000 if by == "process" else row[by]: row for row in rows}
    assert len(named) == len(rows) and set(named) == set(sums), (by, set(named), set(sums))
    for key, s in sums.items():
        row = named[key]
        got = [hours(row["held_hours"]), hours(row["busy_hours"]), hours(row["idle_hours"]), row["memory_peak_bytes"]]
        is_known = s["measured"] > 0
        want = [s["held"], s["busy"] if is_known else None, s["idle"] if is_known else None, s["memory"] or None]
        assert got == want, (by, key, got, want)
        if is_known:
            assert abs(row["utilization"] - 100 * s["used"] / s["measured"]) < 1e-9, (by, key, row)
        else:
            assert row["utilization"] is None and row["energy_kwh"] is None, row
        if row["energy_kwh"] is not None:
            assert hours(row["energy_kwh"]) == s["energy"], (by, key, row)
        assert row["incidents"] == {name[9:]: n for name, n in s.items() if name.startswith("incident ")}, (by, key, row, s)
        if by != "process":
            assert row["processes"] == len(s["who"]), (by, key, row)
    held = [row["held_hours"] for row in rows]
    assert held == sorted(held, reverse=True)


@test
def sums_of_groups():
    document = report(MACHINE, "--by", "user,job,container,program,process")
    assert document["schema"] == "gpulse.report/1"
    for by in ("user", "job", "container", "program", "process"):
        sums = expected(MACHINE, by)
        assert len(sums) > 1 and any(s["idle"] for s in sums.values()), by
        check_groups(document, by, sums)
    assert any(row["utilization"] is None for row in table(document, "process")), "none is unknown"
    assert any(row["incidents"] for row in table(document, "user"))


@test
def sums_of_gpus():
    document = report("--tape", MACHINE, "--price", "2.5€/h")
    sums = expected_gpus(MACHINE)
    rows = table(document, "gpu")
    assert [row["gpu"] for row in rows] == ["0", "1"] and [t["by"] for t in document["tables"]] == ["gpu", "user"]
    for row, (_, (known, busy, held, idle, reserved, energy, memory, measured, used)) in zip(rows, sorted(sums.items())):
        assert [hours(row[name + "_hours"]) for name in ("known", "busy", "held", "idle", "reserved")] == \
            [known, busy, held, idle, reserved], row
        assert hours(row["energy_kwh"]) == energy and row["memory_peak_bytes"] == memory
        assert abs(row["utilization"] - 100 * used / measured) < 1e-9
        assert abs(row["cost"] - 2.5 * row["held_hours"]) < 1e-9
    assert document["currency"] == "€" and document["price"] == 2.5
    elapsed = 50 * 6 * PERIOD - 90_000_000 - 100_000_000
    assert hours(document["hours"]) == elapsed
    seen = 100 * sum(row[0] for row in sums.values()) / (2 * elapsed)
    assert seen < 99 and abs(document["seen_percent"] - seen) < 1e-9
    text = good(gpulse("report", MACHINE))
    assert f"saw the GPUs for {seen:.1f} % of this time" in text, text


@test
def only_some_users_and_gpus():
    with database(MACHINE) as db:
        first, second = gpu_ids(db)
    check_groups(report(MACHINE, "--by", "program", "--user", "mia,tom"), "program", expected(MACHINE, "program", users={"mia", "tom"}))
    check_groups(report(MACHINE, "--by", "program", "-i", "1"), "program", expected(MACHINE, "program", gpus={second}))
    rows = table(report(MACHINE, "--by", "gpu", "-u", "mia"), "gpu")
    sums = expected(MACHINE, "gpu", users={"mia"})
    assert [hours(row["held_hours"]) for row in rows] == [sums[first]["held"], sums[second]["held"]]
    assert all(row["known_hours"] is None and row["reserved_hours"] is None for row in rows)
    assert len(table(report(MACHINE, "-i", "0"), "gpu")) == 1
    missing = gpulse("report", MACHINE, "-i", "2")
    assert missing.returncode == 3 and "2" in missing.stderr, missing
    nobody = good(gpulse("report", MACHINE, "--by", "user", "-u", "nosuch"))
    assert "No processes" in nobody and "users are counted: nosuch." in nobody, nobody


GROUPS = {"staff": {"mia", "tom", "ada"}, "lab": {"mia", "ada"}, "mia": {"mia"}, "<x>": {"tom"}, "": {None}}


def report_with_groups(*words):
    """On a machine with these groups: one is primary, others are not, two have one name. Mounts of one's own replace its database."""
    if os.geteuid() != 0:
        raise Skip("only root can replace the database of groups")
    files = {
        "passwd": "root:x:0:0::/:/bin/sh\nmia:x:5001:5001::/:/bin/sh\ntom:x:5002:50::/:/bin/sh\nada:x:5003:50::/:/bin/sh\n",
        "group": "root:x:0:\nstaff:x:50:mia\nmia:x:5001:\nlab:x:60:mia,ada,gone\nlab:x:61:mia\n<x>:x:70:tom\nempty:x:80:\n",
        "nsswitch.conf": "passwd: files\ngroup: files\n"}
    mounts = []
    for name, text in files.items():
        (FOLDER / name).write_text(text)
        mounts.append(f"mount --bind {FOLDER / name} /etc/{name}")
    script = " && ".join([*(line for line in mounts if Path("/etc", line.split("/")[-1]).exists()), 'exec "$@"'])
    if run("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", "true").returncode != 0:
        raise Skip("no mounts of one's own can be made here")
    return run("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", GPULSE, "report", *words)


@test
def groups_of_users():
    """A user in several groups counts in each, and several users of a group count once."""
    document = json.loads(good(report_with_groups(MACHINE, "--by", "group,user,gpu", "-f", "json")))
    rows = {row["group"] or "": row for row in table(document, "group")}
    assert set(rows) == set(GROUPS), rows
    for group, users in GROUPS.items():
        one, = expected(MACHINE, "all", users=users).values()
        row = rows[group]
        assert [hours(row["held_hours"]), hours(row["busy_hours"]), hours(row["idle_hours"])] == \
            [one["held"], *([one["busy"], one["idle"]] if one["measured"] else [None, None])], (group, row, one)
        assert row["processes"] == len(one["who"]) and row["memory_peak_bytes"] == one["memory"], (group, row)
        assert row["incidents"] == {name[9:]: n for name, n in one.items() if name.startswith("incident ")}, (row, one)
    assert {row["user"] for row in table(document, "user")} == {"mia", "tom", "ada", None}
    text = good(report_with_groups(MACHINE, "--by", "group"))
    assert "(no group)" in text and "several groups counts in full in each" in text, text


@test
def only_some_groups():
    document = json.loads(good(report_with_groups(MACHINE, "--group", "lab", "--by", "user,group,gpu", "-f", "json")))
    check_groups(document, "user", expected(MACHINE, "user", users={"mia", "ada"}))
    assert document["groups"] == "lab" and [row["group"] for row in table(document, "group")] == ["lab"]
    with database(MACHINE) as db:
        gpus = gpu_ids(db)
    sums = expected(MACHINE, "gpu", users={"mia", "ada"})
    assert [hours(row["held_hours"]) for row in table(document, "gpu")] == [sums[gpu]["held"] for gpu in gpus]
    both = json.loads(good(report_with_groups(MACHINE, "--group", "<x>,lab", "--user", "mia,tom", "--by", "user,group", "-f", "json")))
    check_groups(both, "user", expected(MACHINE, "user", users={"mia", "tom"}))
    assert {row["group"] for row in table(both, "group")} == {"lab", "<x>"}
    assert "users in these groups are counted: lab." in good(report_with_groups(MACHINE, "--group", "lab"))
    assert "No processes" in good(report_with_groups(MACHINE, "--group", "empty", "--by", "user"))
    for words in ("nosuch", "lab,nosuch", "", "x" * 300):
        result = report_with_groups(MACHINE, "--group", words)
        assert result.returncode == 2 and "--group" in result.stderr, (words, result)


def moment(us):
    return datetime.fromtimestamp(us / 1e6).strftime("%Y-%m-%d %H:%M:%S")


@test
def times_are_rounded_to_whole_periods():
    """Also at odd times; what is reported is what the document says."""
    chance = random.Random(5)
    for _ in range(8):
        begin = START + chance.randrange(100_000_000, 20 * 6 * PERIOD)
        end = begin + chance.randrange(1_000_000, 20 * 6 * PERIOD)
        document = report(MACHINE, "--by", "user,gpu", "--since", moment(begin), "--until", moment(end))
        since = begin // PERIOD * PERIOD
        until = -(-(end // 1_000_000 * 1_000_000) // PERIOD) * PERIOD
        start = datetime.fromisoformat(document["from"]).timestamp() * 1e6
        assert start == max(since, START + 90_000_000), (document["from"], since)
        assert datetime.fromisoformat(document["to"]).timestamp() * 1e6 == until
        check_groups(document, "user", expected(MACHINE, "user", since, until))
        sums = expected_gpus(MACHINE, since, until)
        assert [hours(row["held_hours"]) or 0 for row in table(document, "gpu")] == [sums[gpu][2] if gpu in sums else 0 for gpu in sorted(sums)] \
            or not sums


@test
def what_it_covers_is_said():
    """If that is more than was asked for; in texts and pages."""
    whole, odd = moment(START + 60 * PERIOD), moment(START + 60 * PERIOD + 130_000_000)
    later, end = moment(START + 80 * PERIOD + 1_000_000), moment(START + 81 * PERIOD)
    said = f"covers {whole[:16]} to {end[:16]}, more than"
    for words in (("--since", odd, "--until", later), ("--since", whole, "--until", later), ("--since", odd, "--until", end)):
        for form in ("text", "markdown", "html"):
            assert said in good(gpulse("report", MACHINE, *words, "-f", form)), (words, form)
    for words in (("--since", whole, "--until", end), (), ("--since", "2020-01-01", "--until", "2030-01-01")):
        assert "more than --since" not in good(gpulse("report", MACHINE, *words)), words


@test
def times_without_anything():
    for words in (("--since", "2027-01-01"), ("--until", "2026-01-01"), ("--since", "2020-01-01", "--until", "2020-02-01")):
        result = gpulse("report", MACHINE, *words)
        assert result.returncode == 2 and "nothing was recorded at that time" in result.stderr and \
            "2026-11-27 18:21 to 2026-11-29 20:18" in result.stderr, result
    hole = report(MACHINE, "--since", moment(START + 31 * PERIOD), "--until", moment(START + 35 * PERIOD))
    assert hole["seen_percent"] is None and table(hole, "user") == []
    for row in table(hole, "gpu"):
        assert all(row[name] is None for name in row if name.endswith("_hours") and name != "known_hours"), row
    text = good(gpulse("report", MACHINE, "--since", moment(START + 31 * PERIOD), "--until", moment(START + 35 * PERIOD)))
    assert "unknown for all of this time" in text and "N/A" in text and "processes used these GPUs is unknown" in text, text
    assert gpulse("report", MACHINE, "--since", "2d", "--until", "3d ago").returncode == 2
    for words in (("--since", "noon"), ("--until", "7"), ("--at", "03:10", "--tape", MACHINE)):
        assert gpulse("report", MACHINE, *words).returncode == 2, words


@test
def idle_but_held():
    sums = {key: s for key, s in expected(MACHINE, "idle").items() if s["measured"] > 0}
    limit = sorted(s["idle"] for s in sums.values())[len(sums) // 2] // 1_000_000
    rows = table(report(MACHINE, "--idle-held", f"{limit}s"), "idle")
    want = sorted((s["idle"] for s in sums.values() if s["idle"] >= limit * 1_000_000), reverse=True)
    assert [hours(row["idle_hours"]) for row in rows] == want and 0 < len(want) < len(sums), (rows, want)
    with database(MACHINE) as db:
        gpus = gpu_ids(db)
    for row in rows:
        assert hours(row["idle_hours"]) == sums[row["pid"] - 4000, gpus[int(row["gpu"])]]["idle"], row
        assert row["command"].endswith(f"--job {row['pid'] - 4000}"), row
    assert "No process held an idle GPU" in good(gpulse("report", MACHINE, "--idle-held", "90d"))
    unknown = sum(s["measured"] == 0 and s["held"] >= 3600_000_000 for s in expected(MACHINE, "idle").values())
    assert unknown > 0 and report(MACHINE, "--idle-held", "1h")["idle_unknown"] == unknown
    assert f"unknown for {unknown} more" in good(gpulse("report", MACHINE, "--idle-held", "1h"))


@test
def formats_say_the_same():
    words = (MACHINE, "--by", "user,gpu,process", "--price", "3/h")
    document = report(*words)
    rows = list(csv.DictReader(io.StringIO(good(gpulse("report", *words, "-f", "csv")))))
    assert len(rows) == sum(len(t["rows"]) for t in document["tables"])
    both = zip(rows, ((t["by"], row) for t in document["tables"] for row in t["rows"]))
    for line, (by, row) in both:
        assert line["by"] == by and line["key"] == str(row.get(by, row.get("pid")) or ""), (line, row)
        for name, value in row.items():
            if isinstance(value, float):
                assert float(line[name]) == value, (name, line, row)
            elif name == "incidents":
                assert line[name] == "; ".join(f"{kind} {n}" for kind, n in value.items()) or len(value) > 1, (line, row)
            elif value is None and name not in ("user", "gpu"):
                assert line[name] == "", (name, line)
    text = good(gpulse("report", *words))
    markdown = good(gpulse("report", *words, "-f", "markdown"))
    page = good(gpulse("report", *words, "-f", "html"))
    for row in table(document, "user"):
        for shown in (f"{row['held_hours']:.2f} h", f"{row['cost']:.2f}"):
            assert shown in text and shown in markdown and shown in page, (shown, text)
    assert re.search(r"^mia +\d", text, re.M) and "| mia |" in markdown


@test
def documents_follow_their_schema():
    if not jsonschema:
        raise Skip("no Python with jsonschema")
    source = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
    validator = jsonschema.Draft202012Validator(json.loads((source / "data/schema/gpulse.report-1.json").read_text()))
    words = ("--by", "gpu,user,job,container,program,process,wait", "--idle-held", "1m")
    fill_line(copy_of(MACHINE, "schema.tape"))
    for more in ((), ("--price", "2€/h"), ("--user", "mia"), ("--by", "group"), ("--group", "root"), ("--since", moment(START + 31 * PERIOD), "--until", moment(START + 35 * PERIOD))):
        document = report(FOLDER / "schema.tape", *words, *more)
        for error in validator.iter_errors(document):
            raise AssertionError(f"{error.json_path}: {error.message[:300]}")
    for change in ({"schema": "gpulse.report/2"}, {"hours": None}, {"tables": [{"by": "gpu", "rows": [{}]}]}):
        assert list(validator.iter_errors({**document, **change})), change


@test
def prices():
    for price, currency in (("2.1", None), ("2.1/h", None), ("2.1 EUR/h", "EUR"), ("$2/h", "$"), ("2€", "€")):
        document = report(MACHINE, "--by", "user", "--price", price)
        assert document["currency"] == currency and document["price"] == float(re.search("[0-9.]+", price)[0]), document
    for price in ("", "x", ".1/h", ",1/h", "$.1/h", "-1/h", "2/day", "1e400", "2.1.1/h", "$2€/h", "2/h/h", "9" * 400):
        result = gpulse("report", MACHINE, "--price", price)
        assert result.returncode == 2 and "--price" in result.stderr, (price, result)


# ---- who waited ----

def fill_line(tape, seed=3, hours=50):
    """Requests of the waiting line, which is watched for all but some hours."""
    chance = random.Random(seed)
    end = START + hours * 6 * PERIOD
    with database(tape) as db:
        for first, last in ((START + PERIOD // 3, START + 20 * PERIOD), (START + 40 * PERIOD, end)):
            db.execute("INSERT INTO line VALUES(NULL, 0, NULL, NULL, 0, ?, ?)", (first, last))
        for request in range(200):
            begin = chance.randrange(START, end)
            user, job = chance.choice(["mia", "tom", "new"]), chance.choice(["sweep", "train", "<b>", ""])
            for _ in range(chance.choice([1, 1, 2])):  # in two parts, if the recorder stopped in between
                last = begin + chance.randrange(1, 5 * PERIOD)
                db.execute("INSERT INTO line VALUES(NULL, ?, ?, ?, 2, ?, ?)", (request - 100, user, job, begin, last))
                begin = last + PERIOD
        db.commit()
    return tape


def expected_waits(tape, since, until, users=None):
    waits = defaultdict(lambda: defaultdict(int))
    watched = 0
    with database(tape) as db:
        for request, user, job, first, last in db.execute("SELECT request, user, job, first, last FROM line"):
            length = min(last, until) - max(first, since)
            if length <= 0:
                continue
            if user is None:
                watched += length
            elif users is None or user in users:
                waits[user, job][request] += length
    return waits, watched


def check_waits(document, waits, watched, elapsed):
    rows = {(row["user"], row["job"] or ""): row for row in table(document, "wait")}
    assert set(rows) == set(waits) and len(rows) == len(table(document, "wait")), (rows, waits)
    for key, requests in waits.items():
        row, lengths = rows[key], requests.values()
        assert row["waits"] == len(requests), (key, row)
        assert [hours(row[f"waited_{name}hours"]) for name in ("", "longest_")] == [sum(lengths), max(lengths)], (key, row)
        assert abs(row["waited_mean_hours"] * 3.6e9 - sum(lengths) / len(requests)) < 1, (key, row)
    for row in table(document, "user"):
        assert hours(row["waited_hours"]) == sum(sum(r.values()) for key, r in waits.items() if key[0] == row["user"]), row
    assert abs(document["waiting_seen_percent"] - 100 * watched / elapsed) < 1e-9, document
    order = [row["waited_hours"] for row in table(document, "wait")]
    assert order == sorted(order, reverse=True)


@test
def who_waited():
    tape = fill_line(fill(empty("line.tape")))
    begin, end = START + 90_000_000, START + 300 * PERIOD - 100_000_000
    waits, watched = expected_waits(tape, begin, end)
    document = report(tape, "--by", "wait,user")
    check_waits(document, waits, watched, end - begin)
    assert "new" in [row["user"] for row in table(document, "user")], "a user who only waited"
    assert f"recorded for {100 * watched / (end - begin):.1f} % of this time" in good(gpulse("report", tape))
    some = expected_waits(tape, begin, end, {"mia"})
    check_waits(report(tape, "--by", "wait,user", "-u", "mia"), *some, end - begin)
    for since, until in ((10, 30), (100, 101), (35, 50)):
        since, until = START + since * PERIOD, START + until * PERIOD
        part = report(tape, "--by", "wait,user", "--since", moment(since), "--until", moment(until))
        check_waits(part, *expected_waits(tape, since, until), until - since)
    teams = {row["group"] or "": hours(row["waited_hours"])
             for row in table(json.loads(good(report_with_groups(tape, "--by", "group", "-f", "json"))), "group")}
    of = {user: sum(sum(r.values()) for key, r in waits.items() if key[0] == user) for user in ("mia", "tom", "new")}
    assert teams == {"staff": of["mia"] + of["tom"], "lab": of["mia"], "mia": of["mia"], "<x>": of["tom"], "": of["new"]}, (teams, of)


@test
def nobody_knows_who_waited():
    """What was not recorded is unknown, not zero."""
    unwatched = fill_line(fill(empty("unwatched.tape")))
    with database(unwatched) as db:
        db.execute("DELETE FROM line")
        db.commit()
    old = FOLDER / "old.tape"
    shutil.copy(unwatched, old)
    with database(old) as db:
        db.execute("DROP TABLE line")
        db.execute("PRAGMA user_version = 1")
        db.commit()
    gap = ("--since", moment(START + 25 * PERIOD), "--until", moment(START + 35 * PERIOD))
    for tape, words in ((unwatched, ()), (old, ()), (FOLDER / "line.tape", gap), (FOLDER / "line.tape", ("-i", "0"))):
        document = report(tape, "--by", "wait,user", *words)
        assert document["waiting_seen_percent"] is None and table(document, "wait") == [], document
        assert all(row["waited_hours"] is None for row in table(document, "user")), document
        text = good(gpulse("report", tape, "--by", "wait,user", *words))
        assert "Who waited for GPUs is unknown" in text and "WAITED" not in text, text
        assert "is unknown" in page_of(tape, "--by", "wait", *words)
    nobody = report(FOLDER / "line.tape", "--by", "wait", "-u", "ada")
    assert table(nobody, "wait") == [] and nobody["waiting_seen_percent"] > 0
    assert "No job waited for GPUs" in good(gpulse("report", FOLDER / "line.tape", "--by", "wait", "-u", "ada"))


# ---- pages ----

class Page(html.parser.HTMLParser):
    """Checks that elements are closed in their order, and collects texts."""
    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], set(), [], []
        self.feed(text)
        self.close()
        assert self.open == [], self.open

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.texts.append(data)


@test
def the_page_needs_nothing_else():
    out = FOLDER / "page.html"
    assert good(gpulse("report", MACHINE, "-f", "html", "-o", out, "--by", "gpu,user,process", "--idle-held", "1m")) == ""
    text = out.read_text()
    page = Page(text)
    assert page.tags <= {"html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "dl", "dt", "dd", "div", "small",
                         "section", "span", "b", "svg", "g", "rect", "table", "thead", "tbody", "tr", "th", "td"}, page.tags
    assert not re.search(r"https?:|url\(|@import|<script|javascript:", text)
    assert 'name="viewport"' in text and "prefers-color-scheme:dark" in text
    for svg in re.findall(r"<svg.*?</svg>", text, re.S):
        drawing = ET.fromstring(svg)
        width = float(drawing.get("viewBox").split()[2])
        for rect in drawing.iter("rect"):
            x, y = float(rect.get("x", 0)), float(rect.get("y", 0))
            assert 0 <= x <= x + float(rect.get("width")) <= width + 0.01 and 0 <= y <= y + float(rect.get("height")) <= 1.01, svg
    again = out.stat().st_ino
    good(gpulse("report", MACHINE, "-f", "html", "-o", out))
    assert out.stat().st_ino != again and not list(FOLDER.glob("page.html.*"))
    assert gpulse("report", MACHINE, "-o", "-").returncode == 2
    assert gpulse("report", MACHINE, "-o", FOLDER / "no/such/x.html").returncode == 1


@test
def strips_show_what_was_used():
    """The areas in a GPU's strip are its hours."""
    document = report(MACHINE, "--by", "gpu")
    text = good(gpulse("report", MACHINE, "-f", "html"))
    strips = re.findall(r'<svg[^>]*aria-label="GPU \d over time">.*?</svg>', text, re.S)
    assert len(strips) == 2
    for svg, row in zip(strips, table(document, "gpu")):
        area = defaultdict(float)
        for rect in ET.fromstring(svg).iter("rect"):
            area[rect.get("class")] += float(rect.get("height"))
        # each column is an hour, but the first and the last one, which begin and end with the recording
        assert abs(area["used"] + area["idle"] - row["held_hours"]) < 1.0, (area, row)
        assert abs(area["idle"] - row["idle_hours"]) < 0.6, (area, row)


def contrast(one, other):
    def luminance(color):
        digits = color[1:] if len(color) == 7 else "".join(2 * c for c in color[1:])
        parts = [int(digits[i:i + 2], 16) / 255 for i in (0, 2, 4)]
        parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@test
def colors_can_be_read():
    text = good(gpulse("report", MACHINE, "-f", "html"))
    schemes = [dict(re.findall(r"--(\w+):(#\w+)", part)) for part in re.findall(r":root\{[^}]*\}", text)]
    assert len(schemes) == 3
    for colors in schemes:
        for background in ("page", "card"):
            for ink in ("text", "soft"):
                assert contrast(colors[ink], colors[background]) >= 4.5, (ink, background, colors)
        for area in ("used", "idle", "watts"):
            assert contrast(colors[area], colors["page"]) >= 3 and contrast(colors[area], colors["free"]) >= 3, (area, colors)


# ---- what strangers write ----

HOSTILE = ["<script>alert(1)</script>", "=cmd()", "+1", "@x", "a\x1b[31mred\x07", "🙂" * 300, "x\u202ey", "a,b\"c\nd", "| a | b |",
           "'\"><img src=x onerror=y>", "](javascript:x)", "\\", "&lt;", "%s%n", "", " "]


@test
def hostile_texts():
    tape = fill(empty("hostile.tape"), hours=2)
    with database(tape) as db:
        gpus = gpu_ids(db)
        for number, text in enumerate(HOSTILE, 100):
            db.execute("INSERT INTO process VALUES(?, ?, 0, ?, ?, NULL, ?, NULL, ?, ?, NULL, ?, ?, 0)",
                       (number, number, text, text, text, text, text, START, START + 6 * PERIOD))
            db.execute("INSERT INTO share VALUES(?, ?, ?, ?, 1, 1, 1, 1)", (START, number, gpus[0], PERIOD))
            db.execute("INSERT INTO line VALUES(NULL, ?, ?, ?, 1, ?, ?)", (number, text, text, START, START + PERIOD))
        db.execute("INSERT INTO line VALUES(NULL, 0, NULL, NULL, 0, ?, ?)", (START, START + PERIOD))
        db.execute("UPDATE gpu SET name = ?, uuid = uuid || ?", (HOSTILE[0], HOSTILE[4]))
        db.execute("UPDATE process SET name = CAST(x'ff00fe41' AS TEXT) WHERE id = 100")
        db.commit()
    words = ("report", tape, "--by", "gpu,user,group,job,container,program,process,wait", "--idle-held", "1s", "--price", "1\x1b€/h")
    outputs = {form: good(gpulse(*words, "-f", form)) for form in ("text", "json", "csv", "markdown", "html")}
    for form, text in outputs.items():
        bad = {c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in "\u200d\ufe0f"}
        assert not bad, (form, bad)
    assert "script" not in Page(outputs["html"]).tags and "img" not in Page(outputs["html"]).tags
    assert "onerror" not in [name for name, _ in Page(outputs["html"]).attributes]
    assert "<" not in outputs["markdown"] and not re.search(r"(?<!\\)\]\(", outputs["markdown"])
    for part in outputs["markdown"].split("\n## ")[1:]:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in part.splitlines() if line.startswith("|")}) == 1, part
    rows = list(csv.DictReader(io.StringIO(outputs["csv"])))
    assert all(not value or value[0] not in "=+-@" for row in rows for value in row.values()), rows
    assert len({len(row) for row in csv.reader(io.StringIO(outputs["csv"]))}) == 1
    users = {row["user"] for row in table(json.loads(outputs["json"]), "user")}
    assert "<script>alert(1)</script>" in users and "a\\x1b[31mred\\x07" in users and "=cmd()" in users, users
    long = [line for line in outputs["text"].splitlines() if "🙂" in line]
    assert long and all(sum(2 if c == "🙂" else 1 for c in line) < 400 for line in long)


@test
def absurd_numbers():
    """No overflow, no endless loop, and nothing that is more than all of the time."""
    chance = random.Random(9)
    huge = [0, -1, 1, (1 << 63) - 1, -(1 << 63), None, "x", 1e300, PERIOD + 1]
    for round_number in range(12):
        tape = fill_line(fill(empty("absurd.tape"), hours=2), hours=2)
        with database(tape) as db:
            for name, columns in (("usage", "known busy held idle reserved energy memory"), ("share", "held busy idle energy memory"),
                                  ("process", "pid first last"), ("event", "t gpu"), ("gpu", "number mig first last"),
                                  ("clock", "ahead t"), ("line", "request user job first last"), ("meta", "value")):
                for column in columns.split():
                    if chance.random() < 0.5:
                        with contextlib.suppress(sqlite3.IntegrityError):
                            db.execute(f"UPDATE {name} SET {column} = ? WHERE random() % 3 = 0", (chance.choice(huge),))
            if round_number % 3 == 0:
                db.execute("INSERT INTO usage SELECT ?, gpu, 1, 1, 1, 1, 1, 1, 1 FROM usage GROUP BY gpu",
                           (chance.choice([0, 1, (1 << 62) + 5, (1 << 63) - 1]),))
            db.execute("INSERT INTO share VALUES(?, 99999, 1, 5, 5, 5, 5, 5)", (START,))
            db.commit()
        for form in ("text", "json", "csv", "markdown", "html"):
            result = gpulse("report", tape, "--by", "gpu,user,job,container,program,process,wait", "--idle-held", "1s", "-f", form,
                            timeout=120)
            assert result.returncode in (0, 2), (round_number, result)
            assert "nan" not in result.stdout.lower().replace("nano", ""), result.stdout
            if form == "json" and result.returncode == 0:
                document = json.loads(result.stdout)
                for row in table(document, "gpu"):
                    assert row["utilization"] is None or 0 <= row["utilization"] <= 100, row
                    assert row["held_hours"] is None or row["held_hours"] >= 0, row
                for row in table(document, "wait"):
                    assert row["waited_hours"] is None or 0 <= row["waited_longest_hours"] <= document["hours"], row


@test
def damaged_files():
    """An error or a report, never a crash or a hang."""
    whole = fill(empty("whole.tape"), hours=5).read_bytes()
    tape = FOLDER / "damaged.tape"
    chance = random.Random(270)
    statuses = set()
    for _ in range(20 if VARIANT == "asan" else 60):
        damaged = bytearray(whole)
        if chance.random() < 0.2:
            del damaged[chance.randrange(len(damaged)):]
        for _ in range(chance.randrange(1, 30)):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        tape.write_bytes(damaged)
        result = gpulse("report", tape, "--by", "gpu,user,job,process", "-f", chance.choice(["text", "html", "json"]), timeout=120)
        assert result.returncode in (0, 1, 2, 69), result
        statuses.add(result.returncode)
    assert {0, 2} <= statuses, statuses


# ---- how a file is read ----

def cached_part(path):
    """How much of a file is in memory, from 0 to 1."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    size = path.stat().st_size
    with path.open("rb") as file:
        at = libc.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), ctypes.c_long(0))
    pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
    result = libc.mincore(ctypes.c_void_p(at), ctypes.c_size_t(size), pages)
    libc.munmap(ctypes.c_void_p(at), ctypes.c_size_t(size))
    assert result == 0, os.strerror(ctypes.get_errno())
    return sum(page & 1 for page in pages) / len(pages)


@test
def most_of_the_time_is_read_at_once():
    """Rows are scattered over a file. A report on most of its time has the system read the whole file, others do not."""
    tape = FOLDER / "large.tape"
    shutil.copy(MACHINE, tape)
    with database(tape) as db:
        for number in range(48):
            db.execute("INSERT INTO chunk VALUES(NULL, 3, ?, ?, 1, zeroblob(1000000))", (number, number))
        db.commit()
    parts = []
    for words in ((), ("--since", moment(START + 290 * PERIOD))):
        with tape.open("rb+") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if cached_part(tape) > 0.1:
            raise Skip("this file system keeps files in memory")
        report(tape, *words)
        until = time.monotonic() + 10
        while not words and cached_part(tape) < 0.99 and time.monotonic() < until:
            time.sleep(0.05)
        parts.append(cached_part(tape))
    assert parts[0] > 0.99 and parts[1] < 0.6, parts


# ---- recordings that exist otherwise ----

@test
def nothing_to_report():
    result = gpulse("report", empty("empty.tape"))
    assert result.returncode == 2 and "nothing" in result.stderr and "recorded" in result.stderr, result
    assert gpulse("report", FOLDER / "none.tape").returncode == 1
    text = FOLDER / "text.tape"
    text.write_text("a,b\n")
    result = gpulse("report", text)
    assert result.returncode == 2 and "no recording" in result.stderr, result
    state = dict(os.environ, XDG_STATE_HOME=str(FOLDER / "state"))
    own = run(GPULSE, "report", env=state)
    assert own.returncode == 1 and "gpulse record start" in own.stderr, own
    for words in (("diff", "@1h", "@2h"), ("record", "status"), ("record", "stop")):
        assert run(GPULSE, *words, env=state).returncode != 0, words
    assert not (FOLDER / "state").exists(), "a reader creates nothing"
    (FOLDER / "state/gpulse/record").mkdir(parents=True)
    result = gpulse("report", MACHINE, MACHINE)
    assert result.returncode == 2 and "one recording" in result.stderr, result
    assert gpulse("report", MACHINE, "--tape", MACHINE).returncode == 2
    shutil.copy(MACHINE, FOLDER / "state/gpulse/record/gpulse.tape")
    assert "mia" in good(run(GPULSE, "report", env=state))


@test
def while_it_is_recorded():
    """And what a simulated machine did is what its tables say."""
    tape = FOLDER / "live.tape"
    recorder = subprocess.Popen([GPULSE, "--sim", "h100x8", "record", "-q", "-o", tape, "-n", "0.1"], stdin=subprocess.DEVNULL)
    try:
        while not tape.exists() or gpulse("status", "--tape", tape).returncode != 0:
            assert recorder.poll() is None
            time.sleep(0.1)
        first = gpulse("report", tape)
        assert first.returncode in (0, 2) and (first.returncode == 0 or "after a minute" in first.stderr), first
        time.sleep(2)
    finally:
        recorder.send_signal(signal.SIGINT)
        recorder.wait()
    document = report(tape, "--by", "gpu,user,job")
    assert document["host"] == "gpu07" and document["driver"] and document["seen_percent"] > 50, document
    assert len(table(document, "gpu")) == 8 and "mia" in [row["user"] for row in table(document, "user")]
    waiting, = (row for row in table(document, "user") if row["user"] == "ray")  # in the machine's waiting line
    assert waiting["held_hours"] == 0 < waiting["waited_hours"] <= document["hours"] and 50 < document["waiting_seen_percent"], document
    table(document, "user").remove(waiting)
    check_groups(document, "user", expected(tape, "user"))
    check_groups(document, "job", expected(tape, "job"))


@test
def mig_instances():
    tape = FOLDER / "mig.tape"
    good(gpulse("--sim", "a100-mig", "record", "-q", "-o", tape, "-n", "0.2", "--duration", "2s"))
    rows = {row["gpu"]: row for row in table(report(tape, "--by", "gpu"), "gpu")}
    assert set(rows) == {"0", "0:0", "0:1", "0:2", "0:3"}, rows
    assert rows["0"]["held_hours"] is None and rows["0"]["energy_kwh"] > 0 and rows["0:1"]["held_hours"] == 0, rows
    assert rows["0:0"]["held_hours"] > 0 and rows["0:0"]["busy_hours"] is None, rows
    only = table(report(tape, "-i", "0:0"), "gpu")
    assert [row["gpu"] for row in only] == ["0:0"]
    assert "0:2" in good(gpulse("report", tape, "-f", "html"))


def page_of(*words):
    return "".join(Page(good(gpulse("report", *words, "-f", "html"))).texts)


@test
def without_a_list_of_processes():
    """What other programs wrote says nothing about who held a GPU: that is unknown, everywhere."""
    source, tape = FOLDER / "smi.csv", FOLDER / "smi.tape"
    source.write_text("timestamp, index, utilization.gpu [%], power.draw [W]\n" + "".join(
        f"2026/11/20 03:{minute:02}:00.000, {gpu}, {10 * gpu} %, 100.0 W\n" for minute in range(40) for gpu in range(2)))
    good(gpulse("record", "import", source, "-o", tape, "-n", "60"))
    words = (tape, "--by", "gpu,user", "--price", "2/h")
    document = report(*words)
    assert document["processes_known"] is False and table(document, "user") == []
    unknown = {"held_hours", "idle_hours", "reserved_hours", "utilization", "cost"}
    for row, busy in zip(table(document, "gpu"), (0, 39 * 6_000_000)):
        assert {name for name, value in row.items() if value is None} == unknown | {"name", "memory_peak_bytes"}, row
        assert row["reasons"] == {name: "its processes were not recorded" for name in unknown}, row
        assert hours(row["known_hours"]) == 39 * 60_000_000 and hours(row["busy_hours"]) == busy, row
    for line in csv.DictReader(io.StringIO(good(gpulse("report", *words, "-f", "csv")))):
        assert all(line[name] == "" for name in unknown) and line["reason"] == "its processes were not recorded", line
    for text in (good(gpulse("report", *words)), good(gpulse("report", *words, "-f", "markdown")), page_of(*words)):
        assert "N/A" in text and "REASON" in text and "its processes were not recorded" in text, text
        assert "no list of processes" in text and "No processes used" not in text and "estimate" not in text, text
    assert "free 0 %" in page_of(*words) and "held 0" not in page_of(*words)
    assert "is unknown" in good(gpulse("report", tape, "--idle-held", "1m"))
    one = table(report(tape, "--by", "gpu", "-u", "mia"), "gpu")[0]
    assert one["held_hours"] is None and one["reasons"]["held_hours"] == "its processes were not recorded", one


@test
def for_some_time_without_a_list_of_processes():
    tape = fill(empty("partly.tape"), hours=10)
    with database(tape) as db:
        first, second = gpu_ids(db)
        for gpu in (first, second):
            db.execute("UPDATE usage SET held = NULL, idle = NULL WHERE gpu = ? AND t >= ?", (gpu, START + 40 * PERIOD))
        db.execute("DELETE FROM share WHERE t >= ?", (START + 40 * PERIOD,))
        db.commit()
        lost, known = db.execute("SELECT sum(iif(held IS NULL, known, 0)), sum(known) FROM usage").fetchone()
    document = report(tape, "--by", "gpu,user")
    sums = expected_gpus(tape)
    assert [hours(row["held_hours"]) for row in table(document, "gpu")] == [sums[gpu][2] for gpu in (first, second)]
    assert document["processes_known"] and "reasons" not in table(document, "gpu")[0]
    check_groups(document, "user", expected(tape, "user"))
    assert f"For {100 * lost / known:.1f} % of the time that the GPUs were seen, their processes are unknown" in good(gpulse("report", tape))


@test
def the_clock_was_set():
    """Sums follow the axis of the recording; the times that are shown follow the clock."""
    tape = fill(empty("clock.tape"), hours=4)
    with database(tape) as db:
        db.execute("INSERT INTO clock VALUES(?, ?, 'boot', 0)", (START + 12 * PERIOD, 86400 * 1_000_000))
        db.commit()
    document = report(tape, "--by", "user", "--since", moment(START + 15 * PERIOD + 86400 * 1_000_000))
    check_groups(document, "user", expected(tape, "user", START + 15 * PERIOD))
    assert datetime.fromisoformat(document["to"]).timestamp() * 1e6 == START + 24 * PERIOD - 100_000_000 + 86400e6


main()
