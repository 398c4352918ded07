#!/usr/bin/env python3
"""The ABI of libgpulse: programs that were built with an earlier one run with this one.

tests/golden/libgpulse.abi records it. An addition passes; GPULSE_GOLDEN=write tests/check_lib_abi.py records the new
ABI, so that the addition cannot be removed later.

variants: release
"""
import os
import re
import shutil
import tempfile
from pathlib import Path

from tap import BUILD, Skip, good, main, run, test

SOURCE = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
RECORDED = SOURCE / "tests/golden/libgpulse.abi"
HEADER = "gpulse/gpulse.h"
MAP = SOURCE / "src/lib/libgpulse.map"
FOLDER = Path(tempfile.mkdtemp(prefix="gpulse-abi-"))
# Exit statuses of abidiff, which are bits.
CHANGED, INCOMPATIBLE = 4, 8


def dump(library, include, name):
    """The file of its public types and functions, without paths and what depends on the machine."""
    file = FOLDER / f"{name}.abi"
    good(run("abidw", "--exported-interfaces-only", "--drop-private-types", "--headers-dir", include,
             "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-elf-needed", "--no-architecture",
             "--type-id-style", "hash", "--out-file", file, library))
    # the undefined symbols, which newer versions of abidw list, are not its interface
    text = re.sub(r"  <undefined-elf-.*?</undefined-elf-[a-z-]*>\n", "", file.read_text(), flags=re.S)
    file.write_text(re.sub(r" path='[^']*?([^/']*)'", r" path='\1'", text))
    return file


def compare(old, new):
    """(what abidiff exits with, what it prints). Structures that begin with their size may grow at their end."""
    growing = re.findall(r"^struct (\w+) \{\n    size_t size;", (SOURCE / "include" / HEADER).read_text(), re.M)
    assert growing, "the header was not understood"
    allowed = FOLDER / "suppressions"
    allowed.write_text("".join("[suppress_type]\n  type_kind = struct\n  has_data_member_inserted_at = end\n"
                               f"  has_size_change = yes\n  name = {name}\n" for name in growing))
    r = run("abidiff", "--no-added-syms", "--suppressions", allowed, old, new)
    return r.returncode, r.stdout + r.stderr


def changed(name, compiler="gcc", header=(), symbols=()):
    """The dump of a copy of the library in which each pair of texts was replaced."""
    include = FOLDER / name
    (include / HEADER).parent.mkdir(parents=True)
    texts = []
    for path, pairs in ((SOURCE / "include" / HEADER, header), (MAP, symbols)):
        text = path.read_text()
        for old, new in pairs:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        texts.append(text)
    (include / HEADER).write_text(texts[0])
    (include / "map").write_text(texts[1])
    library = include / "libgpulse.so"
    # what it calls in other folders stays undefined: only its interface counts
    good(run(compiler, "-std=c17", "-D_GNU_SOURCE", '-DGPULSE_VERSION="0"', "-g", "-O1", "-fPIC", "-shared",
             "-fvisibility=hidden", f"-I{include}", f"-I{SOURCE}/src", f"-I{SOURCE}", *sorted((SOURCE / "src/lib").glob("*.c")),
             "-Wl,-soname,libgpulse.so.0", f"-Wl,--version-script={include}/map", "-o", library))
    return dump(library, include, name)


@test
def nothing_has_changed_but_additions():
    now = dump(Path(BUILD) / "libgpulse.so.0.0.0", SOURCE / "include", "now")
    if os.environ.get("GPULSE_GOLDEN") == "write":
        shutil.copyfile(now, RECORDED)
    status, text = compare(RECORDED, now)
    assert status == 0, f"programs that use libgpulse would break:\n{text}"
    recorded, exported = (set(re.findall(r"<elf-symbol name='(\w+)'", file.read_text())) for file in (RECORDED, now))
    print(f"# new and not recorded yet: {' '.join(sorted(exported - recorded)) or 'nothing'}")


@test
def the_compiler_makes_no_difference():
    for compiler in ("gcc", "clang"):
        if shutil.which(compiler):
            status, text = compare(RECORDED, changed(f"same-{compiler}", compiler))
            assert status == 0, (compiler, text)


@test
def a_removed_function_is_found():
    status, text = compare(RECORDED, changed("removed", symbols=[("        gpulse_take;\n", "")]))
    assert status & INCOMPATIBLE and "gpulse_take" in text, (status, text)


@test
def a_changed_member_is_found():
    status, text = compare(RECORDED, changed("member", header=[("    int driver_code;", "    long driver_code;")]))
    assert status & CHANGED and "driver_code" in text, (status, text)


@test
def a_member_in_the_middle_is_found():
    status, text = compare(RECORDED, changed("middle", header=[("    uint64_t timeout_ns;", "    int more;\n    uint64_t timeout_ns;")]))
    assert status & CHANGED and "timeout_ns" in text, (status, text)


@test
def a_structure_without_a_size_cannot_grow():
    status, text = compare(RECORDED, changed("grown", header=[("    char text[400];", "    char text[400];\n    int more;")]))
    assert status & CHANGED and "gpulse_error" in text, (status, text)


@test
def additions_are_allowed():
    new = changed("added", header=[("    unsigned flags;      /* GPULSE_MIG", "    unsigned flags;\n    const char *more;\n    uint64_t even_more; /*"),
                                   ("    GPULSE_ERROR = 9,", "    GPULSE_TEN = 10,\n    GPULSE_ERROR = 9,")])
    status, text = compare(changed("before", symbols=[("        gpulse_take;\n", "")]), new)
    assert status == 0, (status, text)


try:
    if shutil.which("abidiff"):
        main()
    print("1..0 # SKIP no abidiff (abigail-tools)")
finally:
    shutil.rmtree(FOLDER)
