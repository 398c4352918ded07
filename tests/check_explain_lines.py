#!/usr/bin/env python3
"""Lines that users pasted in public threads are explained by the entries meant for them.  variants: release"""
import json
import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("GPULSE_BUILD", TREE / "build"))
GPULSE = os.environ.get("GPULSE", str(BUILD / "gpulse"))
LEAST = 300  # lines
# What advice may not contain: it acts on all of a machine, deletes, ends others' programs, or turns
# off protection without saying so.
HARMFUL = re.compile(r"rm -rf|killall|pkill|kill -9|--no-verify|mokutil --disable|SELINUX=disabled|"
                     r"setenforce 0|chmod 777|--privileged|curl [^|]*\| *(ba)?sh|dd if=|"
                     r"disable Secure Boot|turn off Secure Boot|--force-overwrite|apt autoremove")


def lines():
    for row in (TREE / "tests/explain/lines.tsv").read_text(encoding="utf-8").splitlines():
        if not row.startswith("#"):
            yield row.split("\t", 2)


def explain(line, *options):
    done = subprocess.run([GPULSE, "explain", "--no-look", "--json", *options, line],
                          capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["known"]


def each_line():
    """Returns what is wrong."""
    rows = list(lines())
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(explain, (line for _, _, line in rows)))
    wrong, count = [], Counter()
    for (identity, thread, line), known in zip(rows, answers):
        said = known[0]["id"] if known else "-"
        count[known[0]["family"] or "numbers" if known else "unknown"] += 1
        if said != identity:
            wrong.append(f"{said} instead of {identity}: {line[:120]}")
        if not re.match(r"https?://", thread):
            wrong.append(f"no thread: {line[:120]}")
    print("# " + ", ".join(f"{n} {family}" for family, n in count.most_common()))
    if len(rows) < LEAST:
        wrong.append(f"{len(rows)} lines, not {LEAST}")
    if count["unknown"] > len(rows) // 50:
        wrong.append(f"{count['unknown']} of {len(rows)} lines are unknown")
    return wrong


def each_advice():
    wrong = []
    for path in sorted((TREE / "data/explain").glob("*.ini")):
        text = re.sub(r"\n +", " ", path.read_text(encoding="utf-8"))
        for key, value in re.findall(r"^(fix|check) = (.*)$", text, re.MULTILINE):
            if HARMFUL.search(value):
                wrong.append(f"{path.name}: {key} = {value[:150]}")
    return wrong


def both_ways():
    """A log says the same as a single line."""
    wrong = []
    for identity, _, line in list(lines())[::12]:
        done = subprocess.run([GPULSE, "explain", "--no-look", "--json", "-"], input=line + "\n",
                              capture_output=True, text=True, check=False)
        found = json.loads(done.stdout)
        ids = [k["id"] for k in found["known"]] + [f"failure.{i['id']}" for i in found["incidents"]]
        if identity != "-" and identity not in ids:
            wrong.append(f"in a log {ids} instead of {identity}: {line[:120]}")
    return wrong


def main():
    tests = [("every line is explained by its entry", each_line),
             ("no advice is harmful", each_advice),
             ("a log says the same as a line", both_ways)]
    print(f"1..{len(tests)}")
    bad = 0
    for number, (name, test) in enumerate(tests, 1):
        wrong = test()
        bad += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
        for text in wrong[:20]:
            print(f"# {text}")
    sys.exit(bad > 0)


main()
