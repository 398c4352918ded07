#!/usr/bin/env python3
"""`gpulse smi topo` against what real nvidia-smi printed: every capture becomes a machine with its
/sys, and the whole output must come out again.

variants: asan
"""
import os
import re
import tempfile

from captures import CAPTURES
from machines import links_of, machine_of, make_sysfs, matrix_of
from tap import good, gpulse, main, test

# What publishers did to an output; the same is done to ours.
PUBLISHED = {
    "plain": lambda text: text.replace("\x1b[4m", "").replace("\x1b[0m", ""),
    "expanded": lambda text: text.expandtabs(8),
    "stripped": lambda text: "\n".join(line.rstrip() for line in text.rstrip().split("\n")) + "\n",
    "end": lambda text: text.rstrip("\n") + "\n",
    "cells": lambda text: "\n".join(" ".join(line.split()) for line in text.splitlines() if "GPU" in line),
}

# capture: (driver, built-in machine, what was done to it)
MATRICES = {
    "nvlink-s+topo-m__rtx-3090_x2-nv4.txt": ("580.95.05", "rtx3060", "plain"),
    "topo-m__2gpu-phb_no-numa.txt": ("535.104.05", "rtx4090", "plain"),
    "topo-m__4xA100-nv4-3nic_cgroup-limited.txt": ("580.95.05", "a100", "plain stripped"),
    "topo-m__8xH-cc9.0_535.161.08_8nic_partial.txt": ("535.161.08", "h100", "plain"),
    "topo-m__a100x4-nv4_1nic_della.txt": ("470.82.01", "a100", "plain"),
    "topo-m__a100x4_1nic_adroit.txt": ("470.82.01", "a100", "plain"),
    "topo-m__h100-80gb-hbm3_590.48.01.txt": ("590.48.01", "h100", ""),
    "topo-m__h200x8_580.173.02_8nic.txt": ("580.173.02", "h100", "plain"),
    "topo-m__l40s_595.80.txt": ("595.80", "l40s", ""),
    "topo-m__l40x4_570.133.07_2nic.txt": ("570.133.07", "l40s", "plain end"),
    "topo-m__rtx-2080-super_610.62_windows.txt": ("610.62", "rtx2080-win", ""),
    "topo-m__v100x4_4nic_traverse.txt": ("470.82.01", "a100", "plain"),
    "topo-mp__8gpu-12nic.txt": ("570.133.20", "h100", "plain end"),
    "topo-mp__8gpu-6nic.txt": ("570.133.20", "h100", "plain expanded stripped"),
}

# Captures that gpulse does not repeat, and why.
DIFFERENT = {
    "topo-m__rtx-2080-super_591.86_windows.txt": "nvidia-smi for Windows has had no topo before 610",
}


def publish(text, done):
    for step in done.split():
        text = PUBLISHED[step](text)
    return text


def body(name, command):
    """The output in a capture, without what its publisher wrote around it."""
    text = (CAPTURES / name).read_text()
    text = text.split(f"{command}\n")[-1]
    return re.sub(r"^\(column spacing.*\n", "", text)


def topo(folder, machine, *words):
    env = dict(os.environ, GPULSE_SIM_STATE=folder)
    return gpulse("smi", "topo", *words, "--sim", machine, "--sim-still", "--root", f"{folder}/root",
                  "--timeout", "60", env=env)


def machine_of_matrix(folder, base, driver, cells, cpus, nodes, cards):
    gpus = len(cpus)
    links, by_xor = links_of([row[:gpus] for row in cells[:gpus]])
    levels = ["SYS" if by_xor[x].startswith("NV") else by_xor[x] for x in range(1, gpus)] or ["SYS"]
    topology = {"levels": levels}
    if any(nodes) and nodes[0] != "N/A":
        topology["nodes"] = list(dict.fromkeys(nodes))
    if any(cpus):
        topology["cpus"] = [c + ",12,14,16" if c.startswith("0,2") else c + ",13" if c.startswith("1,3") else c
                            for c in dict.fromkeys(cpus)]
    make_sysfs(f"{folder}/root", cells, cards, gpus)
    return machine_of(folder, base, gpus, {"nvlinks": links}, topology, driver)


def compare_matrix(name):
    driver, base, done = MATRICES[name]
    _, cells, cpus, nodes, cards = matrix_of(name)
    with tempfile.TemporaryDirectory() as folder:
        machine = machine_of_matrix(folder, base, driver, cells, cpus, [n for n in nodes], cards)
        printed = publish(good(topo(folder, machine, "-mp" if "topo-mp" in name else "-m")), done)
    captured = body(name, "topo -m")
    if "_partial" in name:
        captured = captured.split("(rest cut")[0]
        printed = "".join(printed.splitlines(keepends=True)[:captured.count("\n")])
        # its last row has lost the empty cells
        captured, printed = captured.rstrip(), printed.rstrip()
    assert printed == captured, f"{name}:\n{printed}"
    print(f"# {name}: {len(captured.splitlines())} lines equal, {len(cpus)} GPUs, {len(cards)} cards")


@test
def matrices_come_out_as_they_were_captured():
    names = [p.name for p in sorted([*CAPTURES.glob("topo-m*"), *CAPTURES.glob("*+topo-m*")])]
    assert set(names) - set(DIFFERENT) - {"topo-m__a100x8_h100x8_ml-engineering_reformatted.txt"} == set(MATRICES)
    for name in MATRICES:
        compare_matrix(name)


@test
def matrices_whose_columns_were_aligned_anew():
    text = (CAPTURES / "topo-m__a100x8_h100x8_ml-engineering_reformatted.txt").read_text()
    for part, count in zip(text.split("topo -m\n")[1:], (12, 18)):
        captured = publish(part.split("```")[0], "cells")
        cells = [line.split()[1:9] for line in captured.splitlines()[1:]]
        cpus = [line.split()[9] for line in captured.splitlines()[1:]]
        nodes = [line.split()[10] for line in captured.splitlines()[1:]]
        with tempfile.TemporaryDirectory() as folder:
            machine = machine_of_matrix(folder, "a100", "525.60.13", cells, cpus, nodes, [])
            printed = publish(good(topo(folder, machine, "--matrix")), "plain cells")
        assert printed == captured, printed
        assert f"NV{count}" in printed


@test
def a_windows_without_topo_is_not_repeated():
    for name in DIFFERENT:
        assert "Option -m is missing its value" in (CAPTURES / name).read_text()
    result = gpulse("smi", "topo", "-m", "--sim", "rtx2080-win")
    assert result.returncode == 0 and "GPU0" in result.stdout


# ---- P2P ----

def compare_p2p(captured, driver, letters, done):
    rows = [line.split()[1:] for line in captured.splitlines() if re.match(r" GPU\d", line)]
    state = rows[0][1]
    switch = [{"repeat": 18, "remote_type": 2, "remote": "00000000:F0:00.0"}]
    with tempfile.TemporaryDirectory() as folder:
        machine = machine_of(folder, "h100", len(rows), {"nvlinks": switch if state == "OK" else "NOT_SUPPORTED"},
                             {"levels": ["SYS"], "p2p": state}, driver)
        printed = publish(good(topo(folder, machine, "-p2p", letters)), done)
    if "Legend" not in captured:
        printed = printed[:printed.index("\nLegend")]
    assert printed == captured, printed


@test
def p2p_matrices_come_out_as_they_were_captured():
    compare_p2p(body("topo-p2p-n__h200x8_580.173.02.txt", "-"), "580.173.02", "n", "plain")
    compare_p2p(body("topo-p2p__2gpu_610.43.02.txt", "-"), "610.43.02", "r", "plain expanded stripped")
    text = (CAPTURES / "topo-p2p-r__h100x8_ml-engineering.txt").read_text()
    parts = text.split("$ nvidia-smi topo -p2p r\n")[1:]
    assert len(parts) == 2
    for part in parts:
        compare_p2p(part, "535.104.05", "r", "plain expanded stripped")


main()
