#!/usr/bin/env python3
"""gpulse doctor on a machine with twenty Python environments, each with a PyTorch of real size: what
is built for which GPU is read from the libraries, what is wrong is said once for all.

variants: release
"""
import os
import struct
import tempfile
from pathlib import Path

from tap import gpulse, main, test

LIBRARY = 200 << 20
GPU = "/sys/bus/pci/devices/0000:01:00.0"
AMPERE, PASCAL = "0x2204", "0x15f8"
ARCHS = {"12.1": "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90",
         "12.8": "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120",
         "13.0": "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120"}


def library(path, archs, is_elf):
    """A sparse file of the size of a library, with the list in its constants."""
    constants = LIBRARY // 2
    names = b"\0.shstrtab\0.rodata\0"
    with path.open("wb") as file:
        file.truncate(LIBRARY)
        if is_elf:
            file.write(b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
                "<HHIQQQIHHHHHH", 3, 62, 1, 0, 0, LIBRARY - 192, 0, 64, 0, 0, 64, 3, 1))
            file.seek(LIBRARY - 256)
            file.write(names)
            file.seek(LIBRARY - 192)
            file.write(bytes(64))
            file.write(struct.pack("<IIQQQQIIQQ", 1, 3, 0, 0, LIBRARY - 256, len(names), 0, 0, 1, 0))
            file.write(struct.pack("<IIQQQQIIQQ", 11, 1, 2, 0, constants, 4 << 20, 0, 0, 1, 0))
        file.seek(constants + (3 << 20))
        file.write(b"\0" + archs.encode() + b"\0")


def write(root, name, text):
    path = Path(root + name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def environment(root, number, cuda, more):
    home = f"/home/ada/.virtualenvs/e{number:02}"
    site = f"{home}/lib/python3.11/site-packages"
    version = f"2.{number}.0+cu{cuda.replace('.', '')}"
    write(root, f"{home}/pyvenv.cfg", "home = /usr/bin\n")
    write(root, f"{site}/torch/version.py", f"__version__ = '{version}'\ncuda = '{cuda}'\n")
    library(write(root, f"{site}/torch/lib/libtorch_python.so", ""), ARCHS[cuda], number % 4 != 0)
    for n in range(300 + more):
        os.symlink("x", f"{root}{site}/package_{n}-1.{n}.dist-info")


def build(root):
    write(root, "/etc/os-release", 'PRETTY_NAME="Debian GNU/Linux 12"\nID=debian\n')
    for name, text in (("vendor", "0x10de"), ("class", "0x030000")):
        write(root, f"{GPU}/{name}", text + "\n")
    write(root, "/proc/self/environ", "HOME=/home/ada\0PATH=/usr/bin\0")
    for number in range(20):
        environment(root, number, ("12.1", "12.8", "13.0")[number % 3],
                    50000 if number == 19 else 0)


def examine(device, driver):
    write(ROOT, f"{GPU}/device", device + "\n")
    write(ROOT, "/sys/module/nvidia/version", driver + "\n")
    return gpulse("doctor", "--root", ROOT, "--only", "python", "-v", timeout=900)


@test
def all_environments_are_found():
    said = examine(AMPERE, "580.95.05")
    assert said.returncode == 0, said.stdout
    assert "20 Python environments" in said.stdout
    assert "PyTorch in 20 environments fits" in said.stdout


@test
def a_driver_that_is_too_old_is_one_finding():
    said = examine(AMPERE, "550.54.14")
    assert said.returncode == 1, said.stdout  # the others work
    assert said.stdout.count("warn  ") == 1
    assert "PyTorch in 6 environments needs driver 580.65.06 or newer" in said.stdout


@test
def kernels_that_are_missing_are_one_finding():
    said = examine(PASCAL, "550.54.14")
    assert said.stdout.count("warn  ") == 1, said.stdout
    assert "PyTorch in 13 environments has no kernels for Tesla P100" in said.stdout
    assert said.stdout.count("built for sm_75") == 12 and "and 1 more" in said.stdout


with tempfile.TemporaryDirectory() as ROOT:
    build(ROOT)
    main()
