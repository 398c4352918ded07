#!/usr/bin/env python3
"""The build refuses entries of data/explain that do not hold together, and says where.  variants: release"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent

ENTRY = """
[{id}]
title = Program
match = {match}
cause = something is wrong
fix = mend it
source = unverified
example = {example}
"""

# What is added to container.ini, and what must be said.
CASES = [
    ("as they are", "", None),
    ("a good one", ENTRY.format(id="x.good", match="quite*unheard of",
                                example="[1] quite a thing, unheard of!"), None),
    ("an unknown key", "\n[x.y]\nmessage = abc\n", "unknown key 'message'; there are: title"),
    ("no cause", "\n[x.y]\ntitle = t\nmatch = abcdefg\n", "[x.y] has no cause"),
    ("an empty value", "\n[x.y]\ntitle =\n", "title has no value"),
    ("the same id twice", ENTRY.format(id="docker.no-toolkit", match="quite unheard of",
                                       example="quite unheard of"),
     "[docker.no-toolkit] is also at"),
    ("too short a pattern", ENTRY.format(id="x.y", match="a*b*c", example="abc"),
     "'a*b*c' needs a piece of 6 or more characters"),
    ("a pattern of another entry", ENTRY.format(id="x.y", match="nvidia-ctk: not found",
                                                example="sh: nvidia-ctk: not found"),
     "'nvidia-ctk: not found', is shadowed by"),
    ("an example that it does not match", ENTRY.format(id="x.y", match="quite unheard of",
                                                       example="quite something else"),
     "the example of [x.y] is explained by no entry"),
    ("an example that a more specific one explains",
     ENTRY.format(id="x.y", match="ctk: not found", example="sh: nvidia-ctk: not found"),
     "the example of [x.y] is explained by docker.no-ctk"),
    ("an exception to its own example",
     ENTRY.format(id="x.y", match="quite unheard of\nunless = really",
                  example="really quite unheard of"),
     "the example of [x.y] is explained by no entry"),
    ("a generic pattern that always loses",
     ENTRY.format(id="x.y", match="nvidia-ctk: not found in any folder\ngeneric = yes",
                  example="nvidia-ctk: not found in any folder"),
     "is shadowed by 'nvidia-ctk: not found' of [docker.no-ctk]"),
    ("a cause that is not proved",
     ENTRY.replace("cause = ", "cause = usually ").format(id="x.y", match="quite unheard of",
                                                          example="quite unheard of"),
     "the cause has 'usually': what the line does not prove is a maybe"),
    ("a maybe that is one twice",
     ENTRY.replace("cause = ", "maybe = perhaps nothing\ncause = ").format(
         id="x.y", match="quite unheard of", example="quite unheard of"),
     "the maybe has 'perhaps': it is printed after \"maybe\" already"),
    ("a code that is a table's", "\n[cuda.700]\ncause = something\n",
     "cuda.700 is in data/tables: only maybe, check, look, found and log are added here"),
    ("no section", "\n[x y]\n", "[x y] is no section"),
    ("neither key nor section", "\nabc\n", "neither [id] nor key = value"),
    ("a control character", "\n# \x07\n", "a control character"),
]


def make(added):
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(TREE / "data" / "explain", f"{folder}/explain")
        shutil.copytree(TREE / "data" / "tables", f"{folder}/tables")
        with open(f"{folder}/explain/container.ini", "a", encoding="utf-8") as file:
            file.write(added)
        done = subprocess.run([sys.executable, TREE / "scripts" / "explain.py", folder,
                               f"{folder}/out.c", f"{folder}/examples.c", f"{folder}/out.d"],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stderr


def main():
    print(f"1..{len(CASES)}")
    bad = 0
    for number, (name, added, words) in enumerate(CASES, 1):
        status, said = make(added)
        is_well = status == 0 if words is None else (status == 1 and words in said and ".ini:" in said)
        bad += not is_well
        print(f"{'ok' if is_well else 'not ok'} {number} - {name}")
        if not is_well:
            print(f"# {said.strip()}")
    sys.exit(bad > 0)


main()
