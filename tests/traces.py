"""For tests of gpulse run --timeline: runs a job on a simulated GPU, and reads its trace, independently of gpulse."""
import collections
import json
import os
import tempfile
from pathlib import Path

from tap import BUILD, GPULSE, run

SOURCE = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
scratch = tempfile.TemporaryDirectory()
SCRATCH = Path(scratch.name)
(SCRATCH / "state").mkdir(mode=0o700)
ENV = {**os.environ, "GPULSE_SIM": "h100x8", "GPULSE_SIM_STATE": str(SCRATCH / "state"),
       "GPULSE_STATE_DIR": str(SCRATCH / "state"), "PYTHONPATH": str(SOURCE / "python"), "GPULSE": GPULSE,
       "GPULSE_LIBRARY": str(Path(BUILD).resolve() / "libgpulse.so.0")}
JOB_PID = 1 << 23


class Trace:
    """A trace by its specification, and strictly: what a viewer would guess is an error."""

    def __init__(self, path):
        def refuse(word):
            raise AssertionError(f"{word} in JSON")

        def unique(pairs):
            assert len(dict(pairs)) == len(pairs), f"a name twice: {pairs}"
            return dict(pairs)
        document = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=refuse, object_pairs_hook=unique)
        self.events = document["traceEvents"]
        self.names, self.threads, self.open = {}, {}, collections.defaultdict(list)
        self.counters, self.slices, self.marks, self.ranges = collections.defaultdict(list), [], [], []
        begun = {}
        for event in self.events:
            place = (event["pid"], event.get("tid"))
            phase = event["ph"]
            if phase == "M":
                if event["name"] == "process_name":
                    self.names[event["pid"]] = event["args"]["name"]
                elif event["name"] == "thread_name":
                    self.threads[place] = event["args"]["name"]
                continue
            assert event["ts"] >= 0, event
            if phase == "C":
                assert event["args"] and all(isinstance(v, (int, float)) for v in event["args"].values()), event
                self.counters[event["pid"], event["name"]].append((event["ts"], event["args"]))
            elif phase == "X":
                assert event["dur"] >= 0, event
                self.slices.append((*place, event["name"], event["ts"], event["ts"] + event["dur"], event))
            elif phase == "i":
                self.marks.append(event)
            elif phase == "B":
                self.open[place].append(event)
            elif phase == "E":
                first = self.open[place].pop()
                assert first["ts"] <= event["ts"], (first, event)
                self.slices.append((*place, first["name"], first["ts"], event["ts"], first))
            elif phase == "b":
                begun[event["cat"], event["id"]] = event
            elif phase == "e":
                first = begun.pop((event["cat"], event["id"]))
                assert first["name"] == event["name"] and first["ts"] <= event["ts"], (first, event)
                self.ranges.append((event["pid"], event["name"], first["ts"], event["ts"], first))
            else:
                raise AssertionError(f"unknown phase: {event}")
        assert not begun, begun
        self.check_nesting()

    def check_nesting(self):
        """Slices of a thread are within each other or apart."""
        by_place = collections.defaultdict(list)
        for pid, tid, name, start, end, _ in self.slices:
            by_place[pid, tid].append((start, -end, name))
        for place, slices in by_place.items():
            stack = []
            for start, end, name in sorted(slices):
                while stack and stack[-1] <= start:
                    stack.pop()
                assert not stack or -end <= stack[-1] + 0.001, f"{name} in {place} overlaps another slice"
                stack.append(-end)

    def notes(self):
        return [m["name"] for m in self.marks if m["cat"] == "gpulse"]

    def reported(self):
        return [m["name"] for m in self.marks if m["cat"] != "gpulse"]


def timeline(*words, options=(), env=ENV, status=0, **more):
    """Runs a job with a timeline; returns its trace and what was printed on standard error."""
    path = Path(tempfile.mkdtemp(dir=SCRATCH)) / "trace.json"
    result = run(GPULSE, "run", "--no-record", "--timeline", path, "--timeline-interval", "0.1s", *options, "--", *words,
                 env=env, **more)
    assert result.returncode == status, (result.returncode, result.stderr[-3000:])
    return Trace(path), result.stderr
