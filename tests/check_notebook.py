#!/usr/bin/env python3
"""%%gpulse: a notebook that Jupyter executes without a screen, on simulated jobs. GPULSE_CHART=FILE keeps the chart.

variants: release
"""
import json
import os
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from package import ENV, JOBS, STATE, python
from tap import Skip, good, main, run, test

CELLS = [
    JOBS + "%load_ext gpulse",
    """%%gpulse
jobs = [Job("--mem", "6GiB"), Job("--mem", "12GiB", gpu=7)]
wait_until(lambda: any(p.memory == 18 * GIB for p in gpulse_last.curve))
jobs.pop().end()
"the last " + "value" """,
    "gpulse_last.consumed, len(jobs), _",
    "%gpulse",
    "%gpulse jobs.pop().end()",
    "%%gpulse\n1 / 0",
    "%%gpulse\nx = 2\n!echo shell $x",
]


def notebook_python():
    """A Python that has Jupyter's converter and kernel."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(candidate) and run(candidate, "-c", "import nbconvert, ipykernel").returncode == 0:
            return candidate
    raise Skip("no nbconvert or no ipykernel")


def executed(cells):
    """The outputs of each cell."""
    program = notebook_python()
    cell = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
    book = {"nbformat": 4, "nbformat_minor": 4, "metadata": {"kernelspec": {"name": "python3", "display_name": "x"}},
            "cells": [dict(cell, source=source) for source in cells]}
    path = Path(STATE) / "book.ipynb"
    path.write_text(json.dumps(book))
    kernel = Path(STATE) / "jupyter/kernels/python3"
    kernel.mkdir(parents=True, exist_ok=True)
    (kernel / "kernel.json").write_text(json.dumps({
        "argv": [program, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "x",
        "language": "python"}))
    good(run(program, "-m", "nbconvert", "--execute", "--allow-errors", "--to", "notebook", "--output", "done", path,
             env=dict(ENV, JUPYTER_PATH=f"{STATE}/jupyter", HOME=STATE, IPYTHONDIR=f"{STATE}/ipython")))
    return [c["outputs"] for c in json.loads((Path(STATE) / "done.ipynb").read_text())["cells"]]


def printed(outputs):
    return "".join("".join(o["text"]) for o in outputs if o["output_type"] == "stream")


def chart(outputs):
    data, = (o["data"] for o in outputs if o["output_type"] == "display_data")
    return "".join(data["image/svg+xml"]), "".join(data["text/plain"])


def curve_of(svg, color):
    """The curve of this color, as (x, y)."""
    lines = [e for e in ElementTree.fromstring(svg).iter() if e.get("stroke") == color and e.tag.endswith("polyline")]
    return [tuple(map(float, pair.split(","))) for line in lines for pair in line.get("points").split()]


@test
def a_notebook():
    none, measured, value, status, line, fails, shell = executed(CELLS)
    assert not none, none
    assert "GPU 6: consumed 6.00 GiB, peaked 0.0 MiB" in printed(measured), measured
    assert "GPU 7: consumed 0.0 MiB, peaked 12.00 GiB" in printed(measured) and "time: " in printed(measured)
    results = ["".join(o["data"]["text/plain"]) for o in measured + value if o["output_type"] == "execute_result"]
    assert results == ["'the last value'", f"({6 * 2**30}, 1, 'the last value')"], (measured, value)
    assert printed(status).count("NVIDIA H100") == 8 and "GPU 6: NVIDIA H100 80GB HBM3, 6.00 GiB of" in printed(status)
    assert "GPU 6: consumed -6.00 GiB" in printed(line), line
    errors = [o for o in fails if o["output_type"] == "error"]
    assert [o["ename"] for o in errors] == ["ZeroDivisionError"] and "GPU: not used" in printed(fails), fails
    assert "1 / 0" in "\n".join(errors[0]["traceback"])
    assert "shell 2" in printed(shell), shell

    svg, text = chart(measured)
    assert text.startswith("GPU memory ") and text.endswith("up to 18.00 GiB") and "█" in text, text
    memory = curve_of(svg, "#1f6feb")
    assert len(memory) >= 3 and [x for x, _ in memory] == sorted(x for x, _ in memory), memory
    # the highest point is 18 of the 32 GiB of the scale, the last one 6
    share = [(126 - y) / (126 - 24) for _, y in memory]
    assert share[0] == 0 and abs(max(share) - 18 / 32) < 0.01 and abs(share[-1] - 6 / 32) < 0.01, share
    assert curve_of(svg, "#d9822b") and "32 GiB" in svg and "load" in svg
    if os.environ.get("GPULSE_CHART"):
        Path(os.environ["GPULSE_CHART"]).write_text(svg)


@test
def charts_of_unusual_blocks():
    python("""
from gpulse._chart import sparkline, svg
from gpulse._measure import Measure, Point
import xml.etree.ElementTree as ElementTree
class Fake(Measure):
    points, seconds = [], 0.0
    curve = property(lambda self: self.points)
    gpus = property(lambda self: [])
Fake.seconds = 0.0
m = Fake()
for points, parts in (([], 0), ([Point(0.0, 0, None)], 0), ([Point(0.0, 0, 0), Point(0.0, 0, 0)], 2),
                      ([Point(0.0, 5, 1), Point(1.0, 6, 2), Point(2.0, None, None), Point(3.0, 7, 3), Point(4.0, 1e12, 900)],
                       4), ([Point(float(i), i % 7, i % 5) for i in range(1000)], 2)):
    Fake.points = points
    root = ElementTree.fromstring(svg(m))
    lines = [e.get("points") for e in root.iter() if e.tag.endswith("polyline")]
    assert len(lines) == parts, (points[:3], lines)
    for x, y in (map(float, p.split(",")) for line in lines for p in line.split()):
        assert 76 <= x <= 516 and 24 <= y <= 126, (x, y)
    assert len(sparkline(m)) < 90
""")


try:
    main()
finally:
    shutil.rmtree(STATE)
