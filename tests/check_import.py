#!/usr/bin/env python3
"""gpulse record import: what other programs wrote, read back from the recording, value by value.

variants: asan release
"""
import csv
import io
import json
import os
import re
import shutil
import tempfile
from datetime import datetime
from pathlib import Path

from tap import good, gpulse, main, test
import atexit

ROOT = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
FOLDER = Path(tempfile.mkdtemp(prefix="gpulse-import-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
MIB = 1 << 20


def load(text, *words, name="file"):
    """The recording of a text."""
    source, tape = FOLDER / name, FOLDER / f"{name}.tape"
    source.write_text(text)
    for old in FOLDER.glob(f"{name}.tape*"):
        old.unlink()
    said = good(gpulse("record", "import", source, "-o", tape, *words))
    return tape, said


def refused(text, *words):
    (FOLDER / "wrong").write_text(text)
    result = gpulse("record", "import", FOLDER / "wrong", "-o", FOLDER / "wrong.tape", *words)
    assert result.returncode in (1, 2), result
    return result.stderr


def rows(tape, fields, *words):
    return list(csv.DictReader(io.StringIO(good(gpulse("query", fields, "--tape", tape, "-f", "csv", *words)))))


@test
def csv_of_nvidia_smi():
    tape, said = load("""timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W], fan.speed [%], pstate
2026/11/20 03:10:00.120, 0, NVIDIA A100, 45 %, 1234 MiB, 250.25 W, [N/A], P0
2026/11/20 03:10:00.124, 1, NVIDIA A100, 0 %, 0 MiB, [GPU is lost], 30 %, P8
2026/11/20 03:10:05.120, 0, NVIDIA A100, 46 %, 1235 MiB, 251.5 W, [N/A], P0
2026/11/20 03:10:05.124, 1, NVIDIA A100, 1 %, 1 MiB, 50 W, 30 %, P8
""")
    assert "CSV: 2 samples of 2 GPUs" in said, said
    first = rows(tape, "index,name,utilization.gpu,memory.used,power.draw,fan.speed,pstate", "--at", "2026-11-20 03:10:01")
    assert [list(row.values()) for row in first] == [
        ["0", "NVIDIA A100", "45", str(1234 * MIB), "250.25", "[N/A]", "P0"],
        ["1", "NVIDIA A100", "0", "0", "[GPU is lost]", "30", "P8"]], first
    last = rows(tape, "utilization.gpu,power.draw,temperature.gpu")
    assert [list(row.values()) for row in last] == [["46", "251.50", "[N/A]"], ["1", "50.00", "[N/A]"]], last


@test
def csv_without_units_and_times():
    tape, _ = load("index, utilization.gpu [%], memory.used [MiB]\n" + "".join(
        f"{gpu}, {10 * second + gpu}, {second}\n" for second in range(4) for gpu in range(2)),
        "--start", "2026-11-20 03:10", "--interval", "2s")
    for second in range(4):
        at = f"2026-11-20 03:10:0{2 * second + 1}"
        assert [row["utilization.gpu"] for row in rows(tape, "utilization.gpu", "--at", at)] == \
            [str(10 * second), str(10 * second + 1)]
    assert "--start" in refused("index, utilization.gpu [%]\n0, 5 %\n")


@test
def what_gpulse_query_wrote():
    for form in ("csv", "tsv", "ndjson"):
        text = good(gpulse("--sim", "h100x2", "query", "timestamp,index,uuid,utilization.gpu,memory.used,power.draw,temperature.gpu",
                           "-n", "0.2", "-c", "5", "-f", form, "--units"))
        tape, _ = load(text, name=form)
        shown = rows(tape, "timestamp,uuid,utilization.gpu,memory.used,power.draw,temperature.gpu")
        if form == "ndjson":
            wrote = [json.loads(line) for line in text.splitlines()][-2:]
        else:
            wrote = list(csv.DictReader(io.StringIO(text), delimiter="," if form == "csv" else "\t"))[-2:]
            wrote = [{re.sub(r" \[.*", "", name): value for name, value in row.items()} for row in wrote]
        for row, was in zip(shown, wrote):
            for name, value in row.items():
                if name == "power.draw":
                    assert abs(float(value) - float(was[name])) < 0.0051, (form, row, was)
                else:
                    assert value == str(was[name]), (form, name, row, was)


@test
def every_capture_of_dmon():
    """Each value of the last sample."""
    columns = {"pwr": "power.draw", "gtemp": "temperature.gpu", "sm": "utilization.gpu", "mem": "utilization.memory",
               "mclk": "clocks.current.memory", "pclk": "clocks.current.sm"}
    seen = 0
    for capture in sorted((ROOT / "data/captures").glob("dmon*.txt")):
        text = capture.read_text()
        head = None
        for line in text.splitlines():
            if re.match(r"#\s*(gpu|Date|Time) ", line):
                head = line.lstrip("# ").split()
            elif head and re.match(r"\s*\d", line) and len(line.split()) == len(head) and "pid" not in head:
                last = dict(zip(head, line.split()))
        if "pmon" in capture.name:  # two tables: the second is one of processes
            text = text[:text.index("nvidia-smi pmon")]
            last = dict(zip(text.splitlines()[1].lstrip("#").split(), text.strip().splitlines()[-1].split()))
        tape, _ = load(text, "--start", "2026-11-20", name="dmon")
        row = rows(tape, ",".join(columns.values()), "-i", last["gpu"])[0]
        for column, field in columns.items():
            if column in last:
                expected = "[N/A]" if last[column] == "-" else last[column]
                assert row[field].removesuffix(".00") == expected, (capture, column, row, last)
                seen += 1
    assert seen > 80, seen


@test
def dmon_of_dcgm():
    tape, said = load("""#Entity   GPUTL  POWER   TMPTR   SMACT   XXXXX
ID
GPU 0     45     250.5   60      0.512   1
GPU 1     0      50.0    30      N/A     1
GPU-I 0   1      1       1       1       1
GPU 0     46     251.5   61      0.25    1
GPU 1     1      51.0    31      0.5     1
""", "--start", "2026-11-20", "--interval", "1s")
    assert "2 samples of 2 GPUs" in said and "XXXXX" in said, said
    last = rows(tape, "utilization.gpu,power.draw,temperature.gpu,gpm.sm.active")
    assert [list(row.values()) for row in last] == [["46", "251.50", "61", "25.00"], ["1", "51.00", "31", "50.00"]], last


@test
def an_answer_of_prometheus():
    def series(name, labels, *pairs):
        return {"metric": {"__name__": name, **labels}, "values": [[at, str(value)] for at, value in pairs]}
    a, b = {"gpu": "0", "UUID": "GPU-a"}, {"gpu": "1", "uuid": "GPU-b"}
    answer = {"status": "success", "data": {"resultType": "matrix", "result": [
        series("DCGM_FI_DEV_GPU_UTIL", a, (1795700000, 10), (1795700015, 20), (1795700030, 30)),
        series("DCGM_FI_DEV_FB_USED", a, (1795700000, 1024), (1795700015, 2048)),
        series("gpulse_gpu_power_draw_watts", b, (1795700000, 123.456), (1795700015, "NaN")),
        series("gpulse_gpu_utilization_gpu_ratio", b, (1795700000, 0.97)),
        series("node_load1", b, (1795700000, 1))]}}
    tape, said = load(json.dumps(answer))
    assert "3 samples of 2 GPUs, 7 values" in said and "node_load1" in said, said
    at = datetime.fromtimestamp(1795700000).strftime("%F %T")
    first = rows(tape, "uuid,utilization.gpu,memory.used,power.draw", "--at", at)
    assert [list(row.values()) for row in first] == [
        ["GPU-a", "10", str(1024 * MIB), "[N/A]"], ["GPU-b", "97", "[N/A]", "123.46"]], first
    played = rows(tape, "utilization.gpu", "--at", at, "-n", "15s", "-i", "0")
    assert [row["utilization.gpu"] for row in played] == ["10", "20", "30"], played
    assert "query_range" in refused(json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}}))


@test
def as_a_trace():
    """Each value of the recording is in it, and nothing else."""
    text = good(gpulse("--sim", "h100x2", "query", "timestamp,index,name,utilization.gpu,power.draw,memory.used",
                       "-n", "0.2", "-c", "8", "-f", "csv"))
    tape, _ = load(text, name="export")
    trace = FOLDER / "trace.json"
    said = good(gpulse("record", "export", tape, "-o", trace))
    assert "8 samples" in said, said
    events = json.loads(trace.read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    names = {e["pid"]: e["args"]["name"] for e in events if e.get("name") == "process_name"}
    wrote = list(csv.DictReader(io.StringIO(text)))
    for gpu in range(2):
        pid, = [pid for pid, name in names.items() if name == f"GPU {gpu}: NVIDIA H100 80GB HBM3"]
        traced = [round(e["args"]["W"], 2) for e in events if e.get("ph") == "C" and e["pid"] == pid and e["name"] == "power"]
        shown = [float(row["power.draw"]) for row in wrote if row["index"] == str(gpu)]
        changes = [watts for i, watts in enumerate(shown) if i == 0 or watts != shown[i - 1]]
        assert traced == changes, (traced, shown)
    assert gpulse("record", "export", tape).returncode == 2
    assert gpulse("record", "export", tape, "-o", trace, "--start", "2h").returncode == 2
    assert gpulse("record", "export", FOLDER / "nothing", "-o", trace).returncode == 1
    (FOLDER / "train.py").write_text("print()\n")
    assert gpulse("record", "export", tape, "-o", FOLDER / "train.py").returncode == 2


@test
def bad_files():
    assert "no known format" in refused("hello\nworld\n")
    assert "no known format" in refused("")
    assert "no value" in refused("timestamp, index, utilization.gpu [%]\n")
    assert "line 2" in refused("timestamp, index, utilization.gpu [%]\n2026/11/20 03:10:00, 0\n")
    assert "timestamp" in refused("timestamp, index, utilization.gpu [%]\nnoon, 0, 5 %\n")
    assert "line 2" in refused('{"schema":"gpulse.query.row/1","time":"2026-11-20T03:10:00.000+00:00","index":0}\nx\n')
    assert "line 1" in refused('{"data": [}')
    assert "not a text" in refused("timestamp, index\n\0\n")
    hostile = "timestamp, index, name\n2026/11/20 03:10:00, 0, \"a\x1b[31m\"\"b\"\n"
    tape, _ = load(hostile)
    assert "\x1b" not in good(gpulse("status", "--tape", tape))
    assert gpulse("record", "import", FOLDER / "nothing", "-o", FOLDER / "x.tape").returncode == 1
    assert gpulse("record", "import", FOLDER / "wrong").returncode == 2


main()
