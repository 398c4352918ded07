#!/usr/bin/env python3
"""cppcheck and clang-tidy over what the default variant compiles; one TAP test per file and tool.

A file whose text, headers and settings are those of its last clean run is not looked at again: the
results are kept in build/lint/.
"""
import concurrent.futures
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("GPULSE_BUILD", ROOT / "build"))
KEPT = ROOT / "build/lint"

CPPCHECK = ["cppcheck", "--quiet", "--std=c11", "--language=c", "--inline-suppr",
            "--enable=warning,performance,portability", "--error-exitcode=1",
            "--suppress=missingIncludeSystem", "--suppress=normalCheckLevelMaxBranches",
            "--suppress=unknownMacro", "--suppress=checkersReport",
            "-D_GNU_SOURCE", "-D__linux__", '-DGPULSE_VERSION="lint"', "-U__cplusplus",
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
                                          "--extra-arg=-Wno-unknown-warning-option", str(path)]


def jobs():
    """(tool, command, file) for everything that is to be looked at."""
    files = sources()
    for name, command in tools():
        for path in files:
            yield name, command(path), path


def common_state():
    """What every result depends on besides the file itself: headers, settings, tools."""
    state = hashlib.sha256()
    for folder in ("src", "sim", "abi"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".def"):
                state.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    for path in (ROOT / ".clang-tidy", Path(__file__)):
        state.update(path.read_bytes())
    return state.digest()


def check(name, command, path, state):
    key = hashlib.sha256(state + name.encode() + str(path).encode() + path.read_bytes())
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
    state = common_state()
    work = list(jobs())
    print(f"1..{len(work)}")
    failed = False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        results = pool.map(lambda w: check(*w, state), work)
        for number, ((name, _, path), found) in enumerate(zip(work, results), 1):
            print(f"{'not ' if found else ''}ok {number} {name} {path.relative_to(ROOT)}")
            for line in found.splitlines():
                print(f"# {line}")
            failed = failed or bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
