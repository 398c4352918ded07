"""For tests/mutate: which lines each suite executes, measured.

gcc calls a function of ours at the start of every basic block (cover.c), and the disassembly tells
the lines of each block: those of the addresses from one such call to the next.
"""
import bisect
import concurrent.futures
import difflib
import hashlib
import json
import os
import re
import struct
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


def setup(tree):
    """Configures the build that counts, and returns its name, which says with which cover.c."""
    build = f"build-{sha_of(HERE / 'cover.c')[:8]}"
    unit = tree / f"{build}.o"
    if not (tree / build / "build.ninja").is_file():
        subprocess.run(["gcc", "-O1", "-fPIC", "-c", HERE / "cover.c", "-o", unit], check=True)
        subprocess.run(["meson", "setup", "-Doptimization=0", "-Ddebug=true", "-Dtests=true",
                        "-Dc_args=-w -fsanitize-coverage=trace-pc", f"-Dc_link_args={unit}", build],
                       cwd=tree, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return build


def images(build):
    """The programs and libraries of a build, by the name that cover.c gives their files."""
    found = {}
    for path in [*build.glob("*"), *build.glob("sim/*"), *build.glob("tests/*/*")]:
        if not path.is_file() or path.is_symlink() or not os.access(path, os.X_OK):
            continue
        with path.open("rb") as file:
            head = file.read(64)
        if head[:4] == b"\x7fELF":
            entry, sections = struct.unpack_from("<24xQ8xQ", head)
            found[f"{entry:x}-{sections:x}"] = path
    return found


def blocks_of(image, tree):
    """(return addresses of the calls, the lines of each block) of a program."""
    text = subprocess.run(["objdump", "-dl", "--no-show-raw-insn", image], text=True, check=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout
    addresses, blocks, place, lines, called = [], [], None, set(), False
    paths = {}
    for line in text.split("\n"):
        if line.startswith("/"):
            path, number = line.split(" (")[0].rsplit(":", 1)
            if path not in paths:
                # Where ccache's object is of another tree, so is the beginning of the path.
                match = re.search(r".*/((?:src|sim)/.*)", os.path.normpath(path))
                paths[path] = match[1] if match and (tree / match[1]).is_file() else None
            place = (paths[path], int(number)) if paths[path] and number.isdigit() else None
        elif match := re.match(r" +([0-9a-f]+):\t", line):
            if called:
                addresses.append(int(match.group(1), 16))
                blocks.append(lines)
                called = False
            if "<__sanitizer_cov_trace_pc>" in line:
                called = True
                lines = set() if not head else lines  # a function's first lines come before it
                head = False
            if place:
                lines.add(place)
        elif line.endswith(">:"):
            place, lines, head = None, set(), True
    return addresses, blocks


class Cover:
    """What has been measured, in a file: the lines and seconds of each suite."""

    def __init__(self, file):
        self.file = file
        data = json.loads(file.read_text()) if file.is_file() else {}
        self.suites, self.code = data.get("suites", {}), data.get("code", {})

    def save(self):
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps({"suites": self.suites, "code": self.code}))
        fresh.rename(self.file)

    def moved(self, path, old, new):
        """A source has changed: its lines are where the same text is now."""
        where = {}
        matcher = difflib.SequenceMatcher(None, old.split("\n"), new.split("\n"), autojunk=False)
        for tag, a, b, c, d in matcher.get_opcodes():
            if tag in ("equal", "replace"):
                where.update({a + i + 1: c + i + 1 for i in range(min(b - a, d - c))})
        parts = [part for suite in self.suites.values() for part in suite["parts"].values()]
        for table in [self.code, *(part["lines"] for part in parts)]:
            if path in table:
                table[path] = sorted(where[line] for line in table[path] if line in where)

    def measure(self, suites, tree, build, run, at_once, say):
        """suites: those whose own file has changed; run(suite, tree, build, variables)."""
        found = {name: blocks_of(path, tree) for name, path in images(tree / build).items()}
        code = {}
        for _, blocks in found.values():
            for path, line in set().union(*blocks):
                code.setdefault(path, set()).add(line)
        self.code = {path: sorted(lines) for path, lines in code.items()}

        def one(suite):
            with tempfile.TemporaryDirectory(prefix="gpulse-cover-") as folder:
                os.chmod(folder, 0o1777)  # some tests run as another user
                failures, seconds, output = run(suite, tree, build, {"MUTATE_COVER": folder})
                parts = {}
                for file in Path(folder).iterdir():
                    number, image = file.name.split(".")
                    hit = parts.setdefault(number, {})
                    for path, line in executed(file.read_bytes(), *found.get(image, ([], []))):
                        hit.setdefault(path, set()).add(line)
            self.suites[suite.name] = {"sha": sha_of(tree / suite.path), "seconds": seconds,
                                       "parts": self.parts_of(suite, parts, output, seconds)}
            say(f"{suite.name}: {seconds:.1f} s{', FAILS: ' + str(failures) if failures else ''}")

        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            for done in [pool.submit(one, suite) for suite in suites]:
                done.result()
        self.save()

    @staticmethod
    def parts_of(suite, parts, output, seconds):
        """The tests of a bats file, each with its seconds and lines; all others are one part."""
        found = {"": {"seconds": seconds, "lines": parts.pop("", {})}}
        line = r"^(?:not )?ok (\d+) (.*?)(?: # skip.*)? in (\d+)ms"
        for number, name, took in re.findall(line, output, re.M):
            found[name] = {"seconds": int(took) / 1000, "lines": parts.pop(number, {})}
        for part in found.values():
            part["lines"] = {path: sorted(lines) for path, lines in part["lines"].items()}
        return found

    def suites_of(self, paths, line):
        """[(seconds, suite, its tests or None)] that execute a line, or any line of the files.

        First what is quick and knows the file best."""
        code = self.code.get(paths[0], [])
        at = bisect.bisect_right(code, line) - 1 if line else -1
        real = code[at] if at >= 0 and line - code[at] < 8 else line
        hit = []
        for name, suite in self.suites.items():
            found, weight, whole = {}, 0, suite["parts"]
            for test, part in whole.items():
                lines = [n for path in paths for n in part["lines"].get(path, ())]
                weight = max(weight, len(lines))
                if lines and (not line or real in part["lines"].get(paths[0], ())):
                    found[test] = part["seconds"]
            seconds = suite["seconds"] if "" in found else sum(found.values())
            if found:
                entry = (seconds, name, None if "" in found else sorted(found))
                hit.append(((seconds + 0.5) / weight, entry))
        return [entry for _, entry in sorted(hit, key=lambda e: e[0])]


def executed(data, addresses, blocks):
    place = data.find(1)
    while place >= 0:
        at = bisect.bisect_left(addresses, place)
        if at < len(addresses) and addresses[at] == place:
            yield from blocks[at]
        place = data.find(1, place + 1)


def sha_of(path):
    return hashlib.sha1(path.read_bytes()).hexdigest()
