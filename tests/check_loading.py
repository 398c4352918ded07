#!/usr/bin/env python3
"""Driver libraries as they are found: with symbols that nobody defines, damaged, or not at all.

variants: asan
"""
import os
import shutil
import tempfile
from pathlib import Path

from tap import GPULSE, Skip, good, gpulse, main, run, test

FOLDER = Path(tempfile.mkdtemp(prefix="gpulse-loading-"))
NAME = "libnvidia-ml.so.1"

# A driver of one GPU. It calls a function that no library has, where nobody asks for it.
MOCK = r"""
#include <stdio.h>
typedef void *device;
extern int nobody_defines_this(void);
int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(unsigned flags) { (void)flags; return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *text, unsigned size) { snprintf(text, size, "555.42.06"); return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, device *ret) { static int it; *ret = &it; return i ? 2 : 0; }
int nvmlDeviceGetUUID(device d, char *text, unsigned size) { (void)d; snprintf(text, size, "GPU-11111111-2222-3333-4444-555555555555"); return 0; }
int nvmlDeviceGetName(device d, char *text, unsigned size) { (void)d; snprintf(text, size, "Vendor GPU"); return 0; }
int vendor_extension(void) { return nobody_defines_this(); }
"""


def env(folder, **more):
    return dict(os.environ, GPULSE_SIM="", LD_LIBRARY_PATH=str(folder), **more)


def file(name, content):
    folder = FOLDER / name
    folder.mkdir()
    (folder / NAME).write_bytes(content)
    return folder


RUBBISH = file("rubbish", b"rubbish " * 64)
EMPTY = file("empty", b"")


def built():
    if not shutil.which("cc"):
        raise Skip("no compiler")
    folder = FOLDER / "mock"
    if not folder.exists():
        folder.mkdir()
        (folder / "mock.c").write_text(MOCK)
        good(run("cc", "-shared", "-fPIC", "-Wl,-z,lazy", "-Wl,-z,undefs", "-o", folder / NAME, folder / "mock.c"))
        names = good(run("nm", "-D", "--undefined-only", folder / NAME)) if shutil.which("nm") else "nobody_defines_this"
        assert "nobody_defines_this" in names, names
    return folder


@test
def a_library_with_undefined_symbols_works():
    folder = built()
    for more in ({}, {"GPULSE_NVML": str(folder / NAME)}):
        text = good(gpulse("query", "name,uuid", "-f", "csv", "--no-header", env=env(folder, **more)))
        assert text.split(",")[0] == "Vendor GPU", text
    assert "Vendor GPU" in good(gpulse("smi", "-L", env=env(folder)))
    text = good(gpulse("sim", "record", "--library", folder / NAME, env=env(folder)))
    assert '"Vendor GPU"' in text, text[:400]


@test
def a_damaged_library_is_named_in_the_loaders_words():
    for folder in (RUBBISH, EMPTY):
        path = folder / NAME
        words = ("invalid ELF", "file too short", "ELF file")
        for command in (("status",), ("query", "name"), ("smi",), ("sim", "record")):
            result = gpulse(*command, env=env(folder))
            said = result.stdout + result.stderr
            assert f"cannot load {NAME}: {path}: " in said and any(word in said for word in words), (command, said)
            assert "found no NVIDIA driver" not in said and "couldn't find" not in said, (command, said)
            assert result.returncode == (12 if command == ("smi",) else 4), (command, result.returncode)
        for command in (("status",), ("smi",)):
            said = gpulse(*command, env=env(FOLDER, GPULSE_NVML=str(path)))
            assert f"cannot load {path}: " in said.stdout + said.stderr, said


@test
def a_library_that_needs_another_one_names_it():
    if not shutil.which("cc"):
        raise Skip("no compiler")
    folder = FOLDER / "needs"
    folder.mkdir()
    (folder / "needed.c").write_text("int needed(void) { return 0; }\n")
    good(run("cc", "-shared", "-fPIC", "-Wl,-soname,libvendor-needed.so.7", "-o", folder / "libneeded.so", folder / "needed.c"))
    (folder / "mock.c").write_text("int needed(void); int nvmlInit_v2(void) { return needed(); }\n")
    good(run("cc", "-shared", "-fPIC", "-Wl,--no-as-needed", "-o", folder / NAME, folder / "mock.c", f"-L{folder}", "-lneeded"))
    for command in (("status",), ("smi",)):
        said = gpulse(*command, env=env(folder))
        assert "libvendor-needed.so.7: cannot open shared object file" in said.stdout + said.stderr, said


@test
def without_a_library_the_words_are_those_of_nvidia_smi():
    if run(os.path.abspath(GPULSE), "smi", env=env(FOLDER)).returncode != 12:
        raise Skip("there is a driver")
    said = gpulse("smi", env=env(FOLDER))
    assert said.returncode == 12 and said.stdout.startswith("NVIDIA-SMI couldn't find libnvidia-ml.so library"), said
    said = gpulse("status", env=env(FOLDER))
    assert said.returncode == 4 and "found no NVIDIA driver" in said.stderr, said


@test
def a_damaged_libcuda_is_named():
    folder = FOLDER / "cuda"
    folder.mkdir()
    path = folder / "libcuda.so.1"
    path.write_bytes(b"rubbish")
    said = gpulse("--sim", "h100", "resume", "1", env=dict(os.environ, GPULSE_CUDA=str(path)))
    assert said.returncode == 4 and f"cannot load {path}: file too short" in said.stderr, said


try:
    main()
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
