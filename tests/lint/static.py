#!/usr/bin/env python3
"""cppcheck and clang-tidy over what the release variant compiles; one TAP test per file and tool.

  static.py          all of it
  static.py I COUNT  one of COUNT parts, counted from 0: they can run side by side

A file whose text, headers and settings are those of its last clean run is not looked at again: the
results are kept in the build directory, in lint/.

clang's analyzer follows every path through a function until it has seen 225,000 states. With 30,000 it
needs a sixth of the time, so that is what it gets unless GPULSE_TEST_LONG is set (tests/run --long).
"""
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("GPULSE_BUILD", ROOT / "build-release"))
KEPT = BUILD / "lint"
STATES = [] if "GPULSE_TEST_LONG" in os.environ else \
    [f"--extra-arg={word}" for word in ("-Xclang", "-analyzer-config", "-Xclang", "max-nodes=30000")]

CPPCHECK = ["cppcheck", "--quiet", "--std=c11", "--language=c", "--inline-suppr",
            "--enable=warning,performance,portability", "--error-exitcode=1",
            "--suppress=missingIncludeSystem", "--suppress=normalCheckLevelMaxBranches",
            "--suppress=unknownMacro", "--suppress=checkersReport",
            "-D_GNU_SOURCE", "-D__linux__", '-DGPULSE_VERSION="lint"', '-DGPULSE_BUILD="lint"', '-DGPULSE_NCURSES="lint"',
            "-U__cplusplus",
            f"-I{ROOT}", f"-I{ROOT}/src"]


def sources():
    """Our own compiled files, once each."""
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    found = {(Path(c["directory"]) / c["file"]).resolve() for c in commands}
    return sorted(path for path in found
                  if path.is_relative_to(ROOT / "src") or path.is_relative_to(ROOT / "sim"))


def tools():
    if shutil.which("cppcheck"):
        yield "cppcheck", lambda path: [*CPPCHECK, str(path)]
    if shutil.which("clang-tidy"):
        # Its own diagnostics of gcc's options are not about our text.
        yield "clang-tidy", lambda path: ["clang-tidy", "--quiet", "-p", str(BUILD),
                                          "--extra-arg=-Wno-unknown-warning-option", *STATES,
                                          str(path)]


def jobs():
    """(tool, command, file) for everything that is to be looked at."""
    files = sources()
    for name, command in tools():
        for path in files:
            yield name, command(path), path


def headers():
    """The files that each compiled file includes, as ninja knows them: {source: [path]}."""
    ninja = next(filter(None, map(shutil.which, ("ninja", "ninja-build", "samu"))))
    listing = subprocess.run([ninja, "-C", str(BUILD), "-t", "deps"], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, check=True, text=True)
    found = {}
    for block in listing.stdout.split("\n\n"):
        paths = [(BUILD / line.strip()).resolve() for line in block.splitlines()[1:]]
        own = [path for path in paths if path.is_relative_to(ROOT)]
        found.update({path: own for path in own if path.suffix == ".c"})
    return found


def settings():
    """What every result depends on besides files: how the tools are called, and which they are."""
    state = hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + Path(__file__).read_bytes())
    for name, _ in tools():
        state.update(subprocess.run([name, "--version"], stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE).stdout)
    return state.digest()


def check(name, command, path, included, state):
    """What a tool says of a file; nothing if nothing."""
    key = hashlib.sha256(state + "\0".join(command).encode())
    for other in sorted({path, *included}):
        key.update(other.read_bytes())
    kept = KEPT / key.hexdigest()
    if kept.exists():
        return ""
    result = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT)
    if result.returncode == 0:
        kept.touch()
        return ""
    return result.stdout.decode("utf-8", "replace") or f"exit status {result.returncode}"


def main():
    KEPT.mkdir(parents=True, exist_ok=True)
    state = settings()
    included = headers()
    part, count = map(int, sys.argv[1:] or (0, 1))
    work = list(jobs())[part::count]
    print(f"1..{len(work)}")
    failed = False
    for number, (name, command, path) in enumerate(work, 1):
        found = check(name, command, path, included.get(path, []), state)
        print(f"{'not ' if found else ''}ok {number} {name} {path.relative_to(ROOT)}")
        for line in found.splitlines():
            print(f"# {line}")
        failed = failed or bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
