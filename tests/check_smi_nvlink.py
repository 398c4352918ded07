#!/usr/bin/env python3
"""`gpulse smi nvlink` against what real nvidia-smi printed: every capture becomes a machine, and the
whole output must come out again.

variants: asan
"""
import json
import os
import re
import tempfile
from pathlib import Path

from captures import CAPTURES
from machines import machine_of
from tap import good, gpulse, main, test

# capture: (driver, built-in machine, what its publisher did to it)
STATUS = {
    "nvlink-s+topo-m__rtx-3090_x2-nv4.txt": ("580.95.05", "rtx3060", ""),
    "nvlink-s__a100-sxm4-80gb_x8_gpud.txt": ("535.104.05", "a100", "expanded"),
    "nvlink-s__h100-80gb-hbm3_590.48.01.txt": ("590.48.01", "h100", ""),
    "nvlink-s__h100-mig_590.48.01.txt": ("590.48.01", "h100-mig", ""),
    "nvlink-s__h100-pcie_x2_555.42.02.txt": ("555.42.02", "h100", "expanded"),
    "nvlink-s__h200x8_580.173.02.txt": ("580.173.02", "h100", ""),
    "nvlink-s__l40s_595.80.txt": ("595.80", "l40s", ""),
    "nvlink-s__rtx-2080-super_591.86_windows.txt": ("591.86", "rtx2080-win", ""),
    "nvlink-s__rtx-2080-super_595.71.05.txt": ("595.71.05", "rtx2080s", ""),
    "nvlink-s__rtx-2080-super_610.57.04.txt": ("610.57.04", "rtx2080s", ""),
    "nvlink-s__rtx-2080-super_610.62_windows.txt": ("610.62", "rtx2080-win", ""),
    "nvlink-status__azure-nhc_bad.txt": ("535.86.10", "a100", ""),
    "nvlink-status__azure-nhc_good.txt": ("535.86.10", "a100", ""),
}

# Lines that differ, and why.
ACCEPTED = {
    ("nvlink-status__azure-nhc_bad.txt", "NVML: Unable to retrieve NVLink information as all links are inactive"):
        "typed by hand for a test: all nvidia-smi of which there is an output write inActive",
}
used = set()


def blocks_of(text):
    """(index, name, UUID, lines) of each GPU."""
    text = text.split("# nvidia-smi topo")[0]
    return [(int(i), name, uuid, body.splitlines()) for i, name, uuid, body in
            re.findall(r"^GPU (\d+): (.+) \(UUID: (.+)\)\n((?:(?!GPU \d).*\n)*)", text, re.M)]


def nvlink(folder, machine, blocks, *words):
    """What gpulse prints of a machine whose GPUs have the names and UUIDs of the capture."""
    m = json.loads(Path(machine).read_text())
    for index, name, uuid, _ in blocks:
        m["devices"][index]["answers"]["Name"] = name
        m["devices"][index]["uuid"] = uuid
    Path(machine).write_text(json.dumps(m))
    env = dict(os.environ, GPULSE_SIM_STATE=folder)
    ids = ",".join(str(b[0]) for b in blocks)
    return good(gpulse("smi", "nvlink", *words, "-i", ids, "--sim", machine, "--sim-still", "--root", folder,
                       "--timeout", "60", env=env))


def machine_for(folder, base, driver, blocks, links):
    machine = machine_of(folder, base, max(b[0] for b in blocks) + 1, {"nvlinks": links}, driver=driver)
    return machine


def compare(name, captured, printed):
    captured, printed = captured.splitlines(), printed.splitlines()
    assert len(captured) == len(printed), f"{name}: {printed}"
    for want, got in zip(captured, printed):
        if want != got:
            assert (name, want) in ACCEPTED, f"{name}: captured {want!r}, printed {got!r}"
            used.add((name, want))
    print(f"# {name}: {len(captured)} lines of {sum(line.startswith('GPU') for line in captured)} GPUs")


# ---- -s ----

def links_of_status(lines):
    if lines[0].startswith("Device does not"):
        return "NOT_SUPPORTED"
    if "inactive" in lines[0].lower() and "Link 0" not in lines[0]:
        return [{"state": 0}]
    links = []
    for line in lines:
        speed = re.search(r"Link \d+: ([\d.]+) GB/s", line)
        links.append({"speed_mbps": round(1000 * float(speed.group(1))), "version": 6} if speed else {"state": 0})
    return links


@test
def status_comes_out_as_it_was_captured():
    names = {p.name for p in [*CAPTURES.glob("nvlink-s*"), *CAPTURES.glob("nvlink-status*")]}
    assert names == set(STATUS), names ^ set(STATUS)
    for name, (driver, base, done) in STATUS.items():
        text = (CAPTURES / name).read_text()
        text = text.replace("# nvidia-smi nvlink -s\n", "").split("# nvidia-smi topo")[0]
        if "UUID: GPU-redacted" in text:
            text = re.sub(r"^(GPU (\d).*)GPU-redacted", r"\1GPU-0000000\2-0000-0000-0000-000000000000", text, flags=re.M)
        blocks = blocks_of(text)
        with tempfile.TemporaryDirectory() as folder:
            machine = machine_for(folder, base, driver, blocks, links_of_status(blocks[0][3]))
            printed = nvlink(folder, machine, blocks, "-s")
        compare(name, text, printed.expandtabs(8) if done else printed)


# ---- the others ----

@test
def capabilities_come_out_as_they_were_captured():
    name = "nvlink-c__h200x8_580.173.02_cut.txt"
    text = (CAPTURES / name).read_text()
    blocks = blocks_of(text)
    bits = sum(1 << i for i, line in enumerate(blocks[0][3][:6]) if line.endswith("true"))
    with tempfile.TemporaryDirectory() as folder:
        machine = machine_for(folder, "h100", "580.173.02", blocks, [{"repeat": 18, "capabilities": bits}])
        printed = nvlink(folder, machine, blocks, "-c")
    compare(name, text, "".join(printed.splitlines(keepends=True)[:len(text.splitlines())]))


@test
def the_other_ends_come_out_as_they_were_captured():
    for name, driver, down in (("nvlink-R__h200x8_580.173.02_cut.txt", "580.173.02", ()),
                               ("nvlink-R__h100-pcie_x2_555.42.02.txt", "555.42.02", (4, 5, 10, 11, 16, 17))):
        text = (CAPTURES / name).read_text()
        for block in blocks_of(text):
            ends = iter(re.findall(r"Remote Device (\S+): Link (\d+)", "\n".join(block[3])))
            links = [{"state": 0} if i in down else
                     (lambda end: {"remote": end[0], "remote_link": int(end[1])})(next(ends)) for i in range(18)]
            with tempfile.TemporaryDirectory() as folder:
                machine = machine_for(folder, "h100", driver, [block], links)
                printed = nvlink(folder, machine, [block], "-R")
                addresses = nvlink(folder, machine, [block], "-p")
            captured = f"GPU {block[0]}: {block[1]} (UUID: {block[2]})\n" + "\n".join(block[3]) + "\n"
            compare(name, captured, printed.expandtabs(8) if down else printed)
            # -p is the same address, behind the real number of the link
            up = [i for i in range(18) if i not in down]
            assert addresses.splitlines()[1:] == [f"\t Link {i}: {links[i]['remote']}" for i in up], addresses


@test
def errors_come_out_as_they_were_captured():
    """The capture leaves out links 2 to 16."""
    name = "nvlink-e__h100-80gb-hbm3_ml-engineering.txt"
    text = (CAPTURES / name).read_text().replace("$ nvidia-smi nvlink -e\n", "")
    head, tail = text.split("         [...]\n\n")
    blocks = blocks_of(text)
    with tempfile.TemporaryDirectory() as folder:
        machine = machine_for(folder, "h100", "535.104.05", blocks,
                              [{"repeat": 18, "version": 6, "replay": 0, "recovery": 0, "crc_flit": 0}])
        printed = nvlink(folder, machine, blocks, "-e").expandtabs(8)
    assert printed.startswith(head) and printed.rstrip().endswith(tail.rstrip()), printed
    assert printed.count("Errors: 0\n") == 54 and printed.count("\n\n") == 18, printed
    print(f"# {name}: {len(head.splitlines()) + len(tail.splitlines())} lines")


@test
def every_accepted_difference_occurs():
    assert used == set(ACCEPTED), set(ACCEPTED) - used


main()
