#!/usr/bin/env python3
"""Files that need each other in a circle, functions that nobody else uses, and names that two files define; a TAP test each.

A file needs another if it uses a function or variable of it, as nm(1) sees the objects of the release
variant. Of two files in a folder, one is below the other, and a newcomer can read it first. Of two folders,
one ranks lower (RANKS in lint.py, which checks the #include lines), and uses nothing of the other.

  circles.py          check
  circles.py --list   also print what uses what within each circle
"""
import functools
import json
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from lint import RANKS, folder_of  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("GPULSE_BUILD", ROOT / "build-release"))
# Symbols that are not ours to make static: libraries export them to other programs.
EXPORTED = ("nvml", "cu", "gpulse_", "main", "InitializeInjectionNvtx2")
# What is there for tests: a generated table, and whether a table that is static has a row.
FOR_TESTS = ("gp_entry_example_count", "gp_entry_examples", "rec_has_list")


def objects():
    """{object: source} of everything but tests, sources relative to the tree."""
    found = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = (Path(entry["directory"]) / entry["file"]).resolve()
        output = Path(entry["directory"]) / entry["output"]
        if path.is_relative_to(ROOT) and output.exists():
            found[output] = str(path.relative_to(ROOT))
    return found


def symbols(found):
    """({symbol: its source}, {symbol: the sources that use it}, those that two files of src/ define)."""
    defined, used, twice = {}, defaultdict(set), []
    listing = subprocess.run(["nm", "-A", *found], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             check=True, text=True).stdout
    for line in listing.splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        source = found[Path(name)]
        if words[-2] == "U":
            used[words[-1]].add(source)
        elif words[-2] in "TDBRVW" and not source.startswith("tests/"):
            other = defined.get(words[-1], source)
            if other != source and all(name.startswith("src/") for name in (other, source)) and words[-1] != "main":
                twice.append(f"{words[-1]}: {other} and {source}")
            defined[words[-1]] = source
    return defined, used, sorted(twice)


def upwards(defined, used):
    """What a file uses of a folder that does not rank lower."""
    found = set()
    for symbol, source in defined.items():
        for user in used.get(symbol, ()):
            mine, other = RANKS.get(folder_of(user)), RANKS.get(folder_of(source))
            if None not in (mine, other) and folder_of(user) != folder_of(source) and other >= mine:
                found.add(f"{user} uses {symbol} of {source}")
    return sorted(found)


def needs(defined, used):
    """{file: {file of the same folder: symbols}}."""
    graph = defaultdict(lambda: defaultdict(set))
    for symbol, source in defined.items():
        for user in used.get(symbol, ()):
            if user != source and Path(user).parent == Path(source).parent:
                graph[user][source].add(symbol)
    return graph


def circles(graph):
    """Sets of files that all reach each other."""
    def reach(start):
        seen, todo = set(), [start]
        while todo:
            for other in list(graph.get(todo.pop(), ())):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return seen

    reached = {name: reach(name) for name in list(graph)}
    found = {frozenset(other for other in reached[name] if name in reached.get(other, ()))
             for name in reached if name in reached[name]}
    return sorted(sorted(group) for group in found)


@functools.lru_cache(maxsize=None)
def words_of(name):
    """How often each word is in a file; "tests": in all C of the tests."""
    files = sorted((ROOT / "tests").rglob("*.[ch]")) if name == "tests" else [ROOT / name]
    return Counter(word for path in files for word in re.findall(r"\w+", path.read_text()))


def is_lonely(symbol, source, users):
    """Whether no other file of the program uses it. A test may use what its own file uses, too."""
    if any(user != source and not user.startswith("tests/") for user in users):
        return False
    return not words_of("tests")[symbol] or words_of(source)[symbol] < 2


def report(number, title, problems):
    print(f"{'not ' if problems else ''}ok {number} {title}")
    for line in problems:
        print(f"# {line}")
    return bool(problems)


def main():
    if not (BUILD / "compile_commands.json").exists():
        print("1..0 # SKIP no release build")
        return 0
    defined, used, twice = symbols(objects())
    graph = needs(defined, used)
    groups = circles(graph)
    lines = []
    for group in groups:
        lines.append("circle: " + ", ".join(group))
        if "--list" in sys.argv:
            lines += [f"    {a} -> {b}: {', '.join(sorted(graph[a][b]))}"
                      for a in group for b in group if b in graph[a]]
    lonely = [f"{source}: {symbol} can be static, or deleted"
              for symbol, source in sorted(defined.items())
              if is_lonely(symbol, source, used.get(symbol, set())) and not symbol.startswith(EXPORTED)
              and symbol not in FOR_TESTS]
    print("1..4")
    failed = report(1, "no circles of files", lines)
    failed |= report(2, "what is not static has a user elsewhere", lonely)
    failed |= report(3, "no name has two definitions", twice)
    return report(4, "what a file uses of another folder ranks lower", upwards(defined, used)) or failed


if __name__ == "__main__":
    sys.exit(main())
