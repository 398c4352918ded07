#!/usr/bin/env python3
"""docs/pitfalls.md: all seventy are there, and every test that it names exists.

variants: release
"""
import os
import re
from pathlib import Path

from tap import main, test

ROOT = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
ROWS = [[cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / "docs/pitfalls.md").read_text().splitlines() if re.match(r"\| \d+ \|", line)]


@test
def all_seventy_are_there():
    assert [int(row[0]) for row in ROWS] == list(range(1, 71)), [row[0] for row in ROWS]
    assert all(len(row) == 4 and all(row) for row in ROWS), [row for row in ROWS if len(row) != 4]


@test
def every_test_that_is_named_exists():
    named = [(row[0], *match) for row in ROWS for match in re.findall(r"`(tests/[\w/.]+): ([^`]+)`", row[3])]
    assert len(named) > 50, "the table was not understood"
    missing = [f"{number}: {path}: {name}" for number, path, name in named
               if not (ROOT / path).exists() or not re.search(
                   rf"^(@test \"[^\"]*{re.escape(name)}[^\"]*\" \{{|def {name}\(|static void {name}\()",
                   (ROOT / path).read_text(), re.M | re.I)]
    assert not missing, "\n".join(["no such test:", *missing])


@test
def what_has_no_test_has_a_reason():
    for row in ROWS:
        assert "`tests/" in row[3] or len(row[3]) > 20, row


main()
