#!/usr/bin/env python3
"""Our statement of the NVML ABI, and the simulated driver's exports, against what is known of real
libraries.

variants: release
"""
import os
import re
import shutil
from pathlib import Path

from tap import BUILD, Skip, good, main, run, test

ROOT = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
LIBRARY = Path(BUILD) / "sim/libnvidia-ml.so.1"


def layouts_hold(compiler, *more):
    if not shutil.which(compiler):
        raise Skip(f"no {compiler}")
    good(run(compiler, "-std=c17", "-Wall", "-Werror", f"-I{ROOT}", "-fsyntax-only", *more,
             ROOT / "abi/nvml_layout.c"))


@test
def layouts_hold_with_gcc():
    layouts_hold("gcc")


@test
def layouts_hold_with_clang():
    layouts_hold("clang")


@test
def layouts_hold_on_aarch64():
    layouts_hold("clang", "--target=aarch64-linux-gnu", "-ffreestanding")


@test
def every_struct_is_asserted():
    structs = set(re.findall(r"^} (nvml\w+_t);", (ROOT / "abi/nvml.h").read_text(), re.M))
    enums = set(re.findall(r"^typedef enum \{[^}]*\} (nvml\w+_t);", (ROOT / "abi/nvml.h").read_text(), re.M))
    asserted = set(re.findall(r"^SIZE\((\w+),", (ROOT / "abi/nvml_layout.c").read_text(), re.M))
    assert len(structs - enums) > 50, "nvml.h was not understood"
    assert not structs - enums - asserted, sorted(structs - enums - asserted)


@test
def what_gpulse_calls_is_played():
    unplayed = set(re.findall(r"SIM_UNPLAYED\(\d+, (\w+)\)", (ROOT / "sim/unplayed.def").read_text()))
    named = set()
    for path in (ROOT / "src/source").rglob("*.[ch]"):  # elsewhere, calls are only named
        named |= set(re.findall(r"\bnvml[A-Z]\w+", path.read_text()))
    assert unplayed and len(named) > 100, "nothing was found"
    assert not unplayed & named, sorted(unplayed & named)


@test
def what_is_declared_is_played():
    declared = (ROOT / "abi/nvml_functions.h").read_text()
    unplayed = re.findall(r"SIM_UNPLAYED\(\d+, (\w+)\)", (ROOT / "sim/unplayed.def").read_text())
    both = [name for name in unplayed if re.search(rf"\b{name}\b", declared)]
    assert not both, both


def exports():
    lines = good(run("nm", "-D", "--defined-only", LIBRARY)).splitlines()
    return {line.split()[-1] for line in lines}


def exports_all_of(name):
    real = set((ROOT / "data/captures" / name).read_text().split())
    assert len(real) > 400, name
    assert not real - exports(), f"missing: {sorted(real - exports())}"


@test
def exports_every_symbol_of_a_real_590():
    exports_all_of("nvml-symbols__h100-80gb-hbm3_590.48.01.txt")


@test
def exports_every_symbol_of_a_real_610():
    exports_all_of("nvml-symbols__rtx-2080-super_610.57.04.txt")


@test
def exports_nothing_that_no_real_library_has():
    real = set()
    for path in (ROOT / "data/captures").glob("nvml-symbols__*"):
        real |= set(path.read_text().split())
    assert exports() - real == {"gpulse_sim_error", "gpulse_sim_root"}, sorted(exports() - real)


main()
