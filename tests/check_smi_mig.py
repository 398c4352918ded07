#!/usr/bin/env python3
"""`gpulse smi mig` against what real nvidia-smi printed: every capture becomes a machine, which is
parted as the real one was, and all that is printed must be the same.

variants: asan
"""
import json
import os
import re
import tempfile
from pathlib import Path

from captures import CAPTURES
from machines import machine_of
from tap import gpulse, main, test

# capture: (driver, built-in machine, what was done between its commands: before which one of them)
SESSIONS = {
    "mig-commands__a30_535.183.01.txt": ("535.183.01", "a100-mig", {}),
    "mig-commands__h100-mig-mixed_580.173.02.txt": ("580.173.02", "h100-mig", {}),
    "mig-commands__h100-mig_580.173.02.txt": ("580.173.02", "h100-mig", {}),
    "mig-commands__h100_580.173.02.txt": ("580.173.02", "h100", {}),
    "mig-commands__h200-mig.txt": ("580.173.02", "h100-mig", {}),
    "mig-commands__rtx-pro-6000_610.43.02.txt":
        ("610.43.02", "h100-mig", {"-i 0 -cgi 1g.24gb,1g.24gb,1g.24gb,1g.24gb -C": ("-i 0 -dci", "-i 0 -dgi")}),
}

# NVML's number of a profile by its slices, for each suffix of its name
INDEX = {
    "": {1: 0, 2: 1, 3: 2, 4: 3, 7: 4},
    "+me": {1: 7, 2: 8},
    "+gfx": {1: 10, 2: 11, 4: 12},
    "-me": {1: 13, 2: 14},
    "+me.all": {1: 15, 2: 16},
}
EXIT = {"No GPU instances found: Not Found": 6,
        "In use by another client": 19}


def commands_of(name):
    """(arguments, output) of each command of a capture."""
    parts = re.split(r"^\$ nvidia-smi mig (.*)\n", (CAPTURES / name).read_text(), flags=re.M)
    return list(zip(parts[1::2], parts[2::2]))


def profiles_of(session, built_in):
    """The list "mig_profiles" of the machine: from its tables, else those of the built-in one."""
    table = "".join(output for words, output in session if "-lgip" in words.split())
    places = dict(re.findall(r"Profile ID +(\d+) Placements? ?: (\S+)", "".join(o for _, o in session)))
    known = {row["id"]: row for row in built_in}
    rows = []
    pattern = (r"\|   0  MIG (\S+) +(\d+) +\d+/(\d+) +([\d.]+) +(\w+) +(\d+) +(\d+) +(\d+) +\|\n"
               r"\| +(\d+) +(\d+) +(\d+) +\|")
    for m in re.finditer(pattern, table):
        name, (number, most) = m[1], map(int, m.group(2, 3))
        slices, suffix = int(name[0]), re.search(r"gb(.*)", name)[1]
        memory = round(float(m[4]) * 1024 / 32) * 32  # printed with two decimals
        bigger = any(r["slices"] == slices and r["memory_mib"] < memory for r in rows) and not suffix
        row = {"index": 9 if bigger else INDEX[suffix][slices], "id": number, "name": name, "slices": slices,
               "instances": most, "memory_mib": memory, "p2p": int(m[5] == "Yes")}
        row.update(zip(("multiprocessors", "decoders", "encoders", "copy_engines", "jpeg_engines", "ofa_engines"),
                       map(int, m.group(6, 7, 8, 9, 10, 11))))
        if m[2] in places:
            starts, size = re.fullmatch(r"\{(.*)\}:(\d+)", places[m[2]]).groups()
            row.update(starts=starts.replace(",", " "), size=int(size))
        else:
            row.update(starts=known[number]["starts"], size=known[number]["size"])
        rows.append(row)
    return rows or built_in


def devices_of(session, profiles):
    """The MIG devices of the machine when the session begins."""
    if any("-cgi" in words for words, _ in session):
        return []
    by_id = {p["id"]: p for p in profiles}
    instances = {int(m[2]): by_id[int(m[1])] for words, o in session if "-lgi" in words.split()
                 for m in re.finditer(r"\| +0  MIG \S+ +(\d+) +(\d+) +\d+:\d+ +\|", o)}
    parts = [(int(m[1]), int(m[3]), int(m[4])) for words, o in session if "-lci" in words.split()
             for m in re.finditer(r"\| +0 +(\d+) +MIG (\S+) +\d+ +(\d+) +\d+:(\d+) +\|", o)]
    return [{"gpu_instance": gi, "compute_instance": ci, "uuid": f"MIG-{gi:08x}-0000-0000-0000-000000000000",
             "answers": {"Name": "GPU MIG", "MemoryInfo": {"total": instances[gi]["memory_mib"] << 20, "used": 0,
                                                           "free": 0, "reserved": 0},
                         "Attributes": {"gpu_instance_slices": instances[gi]["slices"],
                                        "compute_instance_slices": size,
                                        "ofa_engines": instances[gi]["ofa_engines"],
                                        "memory_mib": instances[gi]["memory_mib"]}}}
            for gi, ci, size in parts]


def machine_for(folder, base, driver, session):
    path = Path(machine_of(folder, base, 1, {}, driver=driver))
    machine = json.loads(path.read_text())
    built_in = json.loads((Path(os.environ["GPULSE_BUILD"]) / "sim/machines/h100.json").read_text())
    device = machine["devices"][0]
    profiles = profiles_of(session, built_in["devices"][0]["lists"]["mig_profiles"])
    device["lists"] = {"mig_profiles": profiles}
    device["mig"] = devices_of(session, profiles)
    path.write_text(json.dumps(machine))
    return path


def mig(folder, machine, words):
    env = dict(os.environ, GPULSE_SIM_STATE=folder, GPULSE_SIM_ROOT="1")
    return gpulse("smi", "mig", *words.split(), "--sim", machine, "--sim-still", "--root", folder,
                  "--timeout", "60", env=env)


def replay(name):
    driver, base, between = SESSIONS[name]
    session = commands_of(name)
    lines = 0
    with tempfile.TemporaryDirectory() as folder:
        machine = machine_for(folder, base, driver, session)
        for words, captured in session:
            for more in between.get(words, ()):
                assert mig(folder, machine, more).returncode == 0
            result = mig(folder, machine, words)
            assert result.stdout == captured, f"{name}: {words}\n{result.stdout}"
            expected = next((code for end, code in EXIT.items() if captured.endswith(f"{end}\n")), 0)
            assert result.returncode == expected, f"{name}: {words} ended with {result.returncode}"
            lines += captured.count("\n")
    print(f"# {name}: {len(session)} commands, {lines} lines equal")


@test
def sessions_come_out_as_they_were_captured():
    assert {p.name for p in CAPTURES.glob("mig-commands*")} == set(SESSIONS)
    for name in SESSIONS:
        replay(name)


@test
def a_gpu_that_cannot_be_parted():
    capture = (CAPTURES / "misc-commands__tesla-t4_530.30.02.txt").read_text()
    captured = re.search(r"^# nvidia-smi mig (\S+)\n(.*\n)", capture, re.M)
    result = gpulse("smi", "mig", captured[1], "--sim", "t4,driver=530")
    assert (result.stdout, result.returncode) == (captured[2], 0), result.stdout


main()
