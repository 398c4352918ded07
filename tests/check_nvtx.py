#!/usr/bin/env python3
"""gpulse run --nvtx: programs that report to NVTX, with its real headers where they are installed, and with a small
header of our own everywhere.

variants: asan
"""
import collections
import functools
import glob
import os
import re
import shutil
from pathlib import Path

from tap import BUILD, Skip, good, main, run, test
from traces import SCRATCH, SOURCE, timeline

LIBRARY = Path(BUILD).resolve() / "libgpulse-nvtx.so"


def headers():
    """The directory with nvtx3/nvToolsExt.h: $NVTX_INCLUDE, or that of a CUDA toolkit."""
    for place in [os.environ.get("NVTX_INCLUDE", ""), *sorted(glob.glob("/usr/local/cuda*/include")), "/usr/include"]:
        if place and os.path.exists(os.path.join(place, "nvtx3/nvToolsExt.h")):
            return place
    raise Skip("NVTX's headers are not installed; set NVTX_INCLUDE to the directory of nvtx3/nvToolsExt.h")


@functools.lru_cache(None)
def job(is_real):
    if not shutil.which("cc"):
        raise Skip("no C compiler")
    program = SCRATCH / ("job-real" if is_real else "job-small")
    more = ["-DREAL", f"-I{headers()}"] if is_real else ["-Wall", "-Wextra", "-Werror", f"-I{SOURCE}"]
    good(run("cc", "-std=gnu17", "-O2", "-g", *more, "-o", program, SOURCE / "tests/nvtx/job.c", "-ldl", "-pthread"))
    return program


def traced(what, is_real=False, options=("--nvtx",), **more):
    return timeline(job(is_real), what, options=options, **more)


@test
def our_declarations_are_those_of_the_real_headers():
    place = headers()
    own = (SOURCE / "abi/nvtx.h").read_text()
    checks = [f"static_assert((int){name} == {value}, \"{name}\");"
              for name, value in re.findall(r"^    (NVTX_\w+) = (-?\d+)", own, re.M)]
    checks += re.findall(r"^static_assert\(.*?;$", own, re.M | re.S)
    assert len(checks) > 30, "abi/nvtx.h was not understood"
    struct = re.search(r"typedef struct \{\n([^}]*)\} nvtxEventAttributes_t;", own)[1]
    members = re.findall(r"^    (\w+) (\w+);", struct, re.M)
    assert len(members) == 10, members
    for kind, name in members:
        if name not in ("payload", "message"):
            checks.append(f"static_assert(_Generic(((nvtxEventAttributes_t *)0)->{name}, {kind}: 1, default: 0), \"{name}\");")
    checks += ["static_assert(sizeof(nvtxMessageValue_t) == sizeof(void *), \"message\");",
               "static_assert(_Generic((nvtxRangeId_t)0, uint64_t: 1, default: 0), \"range\");",
               "static_assert(sizeof(NvtxExportTableCallbacks) == 2 * sizeof(void *), \"callbacks\");"]
    file = SCRATCH / "compare.c"
    file.write_text("#include <assert.h>\n#include <stddef.h>\n#include <nvtx3/nvToolsExt.h>\n" + "\n".join(checks))
    good(run("cc", "-std=gnu17", f"-I{place}", "-fsyntax-only", file))
    file.write_text(file.read_text().replace("== 48", "== 40"))
    assert run("cc", "-std=gnu17", f"-I{place}", "-fsyntax-only", file).returncode != 0, "a wrong size is not noticed"


@test
def the_library_needs_only_libc():
    needed = good(run("readelf", "-d", LIBRARY))
    assert set(re.findall(r"\[(lib\S+)\]", needed)) - {"libgpulse-nvtx.so"} <= {"libc.so.6", "libpthread.so.0"}, needed
    assert "NODELETE" in needed, needed
    exported = {line.split()[-1] for line in good(run("nm", "-D", "--defined-only", LIBRARY)).splitlines()}
    assert exported == {"InitializeInjectionNvtx2"}, exported


def has_everything(is_real):
    trace, _ = traced("everything", is_real)
    marks = [(m["name"], m["cat"]) for m in trace.marks if m["cat"] != "gpulse"]
    assert marks == [("a mark", "job"), ("größer ∑ 😀", "job"), ("registered", "library"), ("wide", "library"),
                     ("", "library"), ("", "job")], marks
    slices = {name: (start, end) for _, _, name, start, end, _ in trace.slices}
    assert slices["outer"][0] <= slices["inner"][0] and slices["inner"][1] <= slices["outer"][1], slices
    assert 19e3 < slices["inner"][1] - slices["inner"][0] < 5e6, slices
    (_, crossed, *_, event), = trace.ranges
    assert crossed == "of a library" and event["cat"] == "library", trace.ranges
    assert "crossed" in slices, slices
    assert all(trace.names[m["pid"]].endswith(" everything") for m in trace.marks if m["name"] == "a mark"), trace.names


@test
def everything_with_the_small_header():
    has_everything(False)


@test
def everything_with_the_real_header():
    has_everything(True)


@test
def ranges_across_threads():
    trace, _ = traced("across-threads")
    ranges = {name: (end - start, event.get("args")) for _, name, start, end, event in trace.ranges}
    assert set(ranges) == {"asynchronous", "never ends"}, ranges
    assert ranges["never ends"][1] == {"unfinished": True} and ranges["asynchronous"][1] is None, ranges
    finisher, = [(m["pid"], m["tid"]) for m in trace.marks if m["name"] == "on the finisher"]
    assert trace.threads[finisher] == "finisher", trace.threads


def of_all_threads(is_real):
    trace, said = traced("threads", is_real)
    by_thread = collections.Counter(tid for _, tid, name, *_ in trace.slices if name == "work")
    assert len(by_thread) == 8 and set(by_thread.values()) == {100}, by_thread
    assert "missing" not in said, said


@test
def ranges_of_threads():
    of_all_threads(False)


@test
def ranges_of_threads_with_the_real_header():
    of_all_threads(True)


@test
def ranges_of_forked_processes():
    trace, _ = traced("forks")
    pids = [pid for pid, _, name, *_ in trace.slices if name == "child"]
    assert len(pids) == len(set(pids)) == 3, pids
    assert [name for *_, name, _, _, _ in trace.slices if name == "parent"] == ["parent"], trace.slices


@test
def more_than_there_is_room_for():
    trace, said = traced("too-much")
    deep = [s for s in trace.slices if s[2] == "deep"]
    assert len(deep) == 32, len(deep)
    assert len([r for r in trace.ranges if r[1] == "many"]) == 64, len(trace.ranges)
    missing = re.search(r"(\d+) marks and ranges are missing", said)
    assert missing and int(missing[1]) == (1000 - 32) + (1000 - 64), said
    assert [m["name"][:5] for m in trace.marks if m["cat"] == "job"] == ["xxxxx", "the l"], trace.marks


@test
def without_gpulse():
    """The library of a gpulse that is gone, or of none."""
    for folder in (None, "/nowhere", str(SCRATCH)):
        env = {**os.environ, "NVTX_INJECTION64_PATH": str(LIBRARY)}
        if folder:
            env["GPULSE_TIMELINE"] = folder
        for what in ("threads", "forks", "too-much"):
            good(run(job(False), what, env=env))
    found = list(SCRATCH.glob("[0-9]*-0"))
    assert found, "with a directory, it writes there, though nobody reads"
    for path in found:
        path.unlink()


@test
def a_file_system_without_room():
    program = job(False)
    before = run("unshare", "--mount", "true")
    if before.returncode != 0:
        raise Skip("no mounts here")
    place = SCRATCH / "small"
    place.mkdir()
    for size, has_files in (("1m", False), ("16m", False), ("64m", True)):
        script = (f"mount -t tmpfs -o size={size},mode=700 none {place} && GPULSE_TIMELINE={place} "
                  f"NVTX_INJECTION64_PATH={LIBRARY} {program} threads; echo $?; find {place} -type f -size +0 | wc -l")
        said = good(run("unshare", "--mount", "sh", "-c", script)).split()
        assert said == ["0", "1" if has_files else "0"], (size, said)


@test
def a_range_costs_less_than_a_microsecond():
    _, said = traced("bench")
    ns = int(re.search(r"^(\d+) ns$", said, re.M)[1])
    assert 0 < ns < 1000, ns


@test
def without_the_option():
    trace, said = traced("threads", options=())
    assert not trace.reported() and "(0 marks, 0 ranges)" in said, said


if __name__ == "__main__":
    main()
