#!/usr/bin/env python3
"""The build refuses tables that do not hold together, and says where.  variants: release"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TREE = Path(__file__).resolve().parent.parent
TABLES = TREE / "data" / "tables"

# What is changed in which table (the first place), and what must be said.
CASES = [
    ("as they are", "archs", "", "", None),
    ("a cell too many", "cuda_majors", "11,450.80.02,", "11,450.80.02,,", r"cuda_majors.csv:2: 4 cells, not 3"),
    ("another header", "drivers", "branch,cuda", "branch,CUDA", r"drivers.csv:1: the columns are"),
    ("no version", "toolkits", "12.8.1,570.124.06", "12.8.1,R570", "driver is 'R570': no version"),
    ("no source", "cuda_majors", "NVIDIA, CUDA Compatibility: minor version compatibility", "",
     "source is '': nothing where a text is needed"),
    ("the same key twice", "cuda_majors", "12,525.60.13", "11,525.60.13", "major is that of line 2"),
    ("no such variant", "drivers", ",both,", ",all,", "modules is 'all': none of: proprietary open both"),
    ("no month", "drivers", "2028-06", "June 2028", "ends is 'June 2028': no month"),
    ("no list of architectures", "torch_builds", "sm_35 sm_50", "3.5 5.0", "archs is '3.5 5.0"),
    ("a card of no known architecture", "cards", "Tesla K80,3.7", "Tesla K80,3.9", "unknown architecture 3.9"),
    ("a chip of no known architecture", "chips", ",Hopper,9.0,", ",Hopper,9.9,", "unknown architecture 9.9"),
    ("CUDA without a toolkit", "torch_builds", "cu126,12.6,", "cu126,12.7,", "no toolkit has CUDA 12.7"),
    ("code before its compiler", "tensorflow_builds", "2.21.0,tensorflow[and-cuda],12.5,9.3,3.10,3.13,sm_60",
     "2.21.0,tensorflow[and-cuda],12.5,9.3,3.10,3.13,sm_120", "CUDA 12.5 is too old for 120"),
    ("code after its compiler", "jax_builds", "13.0.0,3.12,sm_75", "13.0.0,3.12,sm_70",
     "CUDA 13.0.0 no longer supports 70"),
]


def make(folder):
    done = subprocess.run([sys.executable, TREE / "scripts" / "tables.py", folder, f"{folder}/out.c",
                           f"{folder}/out.d"], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def main():
    print(f"1..{len(CASES) + 1}")
    bad = 0
    for number, (name, table, old, new, words) in enumerate(CASES, 1):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(TABLES, folder, dirs_exist_ok=True)
            path = Path(folder) / f"{table}.csv"
            text = path.read_text(encoding="utf-8")
            changed = text.replace(f'"{old}"' if new == "" and "," in old else old, new, 1)
            path.write_text(changed, encoding="utf-8")
            status, said = make(folder)
        is_well = status == 0 if words is None else (
            changed != text and status == 1 and words in said and f"{table}.csv:" in said)
        bad += not is_well
        print(f"{'ok' if is_well else 'not ok'} {number} - {name}")
        if not is_well:
            print(f"# {said.strip()}")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(TABLES, folder, dirs_exist_ok=True)
        (Path(folder) / "more.csv").write_text("a\n", encoding="utf-8")
        status, said = make(folder)
    is_well = status == 1 and "no table is called more" in said
    print(f"{'ok' if is_well else 'not ok'} {len(CASES) + 1} - a table that nobody reads")
    sys.exit(bad > 0 or not is_well)


main()
