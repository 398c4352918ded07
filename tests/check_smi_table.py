#!/usr/bin/env python3
"""The summary of `gpulse smi` is nvidia-smi's, byte for byte but for its first line, the date. Where
there is also a log (`-q`) of the machine, the machine is made of that, and only what moves between
two commands is taken from the table; of the others the machine is made of the cells.

variants: asan
"""
import json
import os
import re
import tempfile

from captures import CAPTURES, MIB
from tap import good, gpulse, main, test

# Captures of which a line's blanks were cut off by who published them.
TRIMMED = {"table__rtx3060_550.107.02_head-missing-top-border", "misc-commands__tesla-t4_530.30.02"}

# A capture in a container: the driver lists a process, but cannot tell its name.
NAMELESS = "table__rtx3060_550.107.02_head-missing-top-border"

DATE = re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d 20\d\d {7}")

# Words of cells, and what a driver answers where they stand.
WORDS = {"N/A": "NOT_SUPPORTED", "ERR!": "UNKNOWN"}
SWITCH = {"On": "Enabled", "Off": "Disabled", **WORDS}
MODELS = ("WDDM", "TCC", "MCDM")
COMPUTE = {"E. Process": "Exclusive_Process", "E. Thread": "Exclusive_Thread"}


def number(cell, unit, scale=1):
    """"38%" as a number, or the return code."""
    return WORDS[cell] if cell in WORDS else int(cell.removesuffix(unit)) * scale


def cells_of(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def gpu_of(lines):
    """The three lines of a GPU as (index, device of a machine file). Numbers become the least that
    is printed so: a mebibyte more or less would show."""
    (card, bus, ecc), (load, memory, use), (_, _, mig) = map(cells_of, lines)
    index, name, mode = re.fullmatch(r"(\d+)  (.*\S) +(\S+)", card).groups()
    bus_id, display = bus.split()
    name = re.sub(r"\.\.\.$", "0 and whatever else it is called", name)
    fan, temperature, pstate, power, limit = re.fullmatch(
        r"(\S+) +(\S+) +(\S+) +(\S+) +/ +(\S+)", load).groups()
    used, total = [number(cell, "MiB", MIB) for cell in re.split(" +/ +", memory)] \
        if "/ " in memory else [{"N/A": "NO_PERMISSION", "Not Supported": "NOT_SUPPORTED"}[memory]] * 2
    util, compute = re.split(" {2,}", use, maxsplit=1)
    has_mig = mig in ("Enabled", "Disabled")
    answers = {
        "Name": name,
        "PersistenceMode": SWITCH.get(mode, "NOT_SUPPORTED"),
        "DriverModel": dict.fromkeys(("current", "pending"), mode) if mode in MODELS else {},
        "DisplayActive": SWITCH[display],
        "EccMode": dict.fromkeys(("current", "pending"),
                                 {"Off": "Disabled", "N/A": "NOT_SUPPORTED"}.get(ecc, "Enabled")),
        "TotalEccErrors": {"uncorrected.volatile": number("0" if ecc in ("On", "Off") else ecc, "")},
        "FanSpeed": number(fan, "%"),
        "Temperature": number(temperature, "C"),
        "PerformanceState": WORDS.get(pstate, pstate),
        "PowerUsage": number(power, "W", 1000),
        "EnforcedPowerLimit": number(limit, "W", 1000),
        "MemoryInfo": {"total": total, "used": used, "free": 0, "reserved": 0},
        "UtilizationRates": {"gpu": number(util, "%"), "memory": 0},
        "ComputeMode": COMPUTE.get(compute, compute),
        "MigMode": {"current": mig, "pending": mig} if has_mig else dict.fromkeys(
            ("current", "pending"), WORDS[mig]),
    }
    if mig == "Enabled":
        answers["MaxMigDeviceCount"] = 7
    return int(index), {
        "uuid": f"GPU-00000000-0000-0000-0000-{int(index):012}",
        "pci": {"bus_id": bus_id, "device_id": "0x233010DE", "subsystem_id": "0x16C110DE"},
        "answers": answers, "fields": {}, "lists": {}, "processes": [], "mig": [],
    }


def mig_of(lines):
    """The two lines of a MIG device as (index of its GPU, MIG device of a machine file)."""
    (ids, memory, counts, engines), (_, bar1, _, _) = map(cells_of, lines)
    gpu, gi, ci, index = map(int, ids.split())
    used, total = [number(cell, "MiB", MIB) for cell in re.split(" +/ +", memory)]
    bar1_used, bar1_total = [number(cell, "MiB", MIB) for cell in re.split(" +/ +", bar1)]
    sm, errors = counts.split()
    keys = ("copy_engines", "encoders", "decoders", "ofa_engines", "jpeg_engines")
    return gpu, {
        "gpu_instance": gi, "compute_instance": ci, "uuid": f"MIG-00000000-0000-0000-{gpu:04}-{index:012}",
        "answers": {
            "Name": "MIG", "MemoryInfo": {"total": total, "used": used, "free": 0, "reserved": 0},
            "BAR1MemoryInfo": {"total": bar1_total, "used": bar1_used, "free": 0},
            "MemoryErrorCounter": {"uncorrected.volatile.SRAM": int(errors)},
            "Attributes": {"multiprocessors": int(sm), "memory_mib": 1, "gpu_instance_slices": 1,
                           "compute_instance_slices": 1, **dict(zip(keys, map(int, engines.split())))},
        },
    }


def process_of(line):
    gpu, gi, ci, pid, kind, name, memory = re.fullmatch(
        r"\| +(\d+) +(\S+) +(\S+) +(\d+) +(\S+)   (.*\S) +(\d+MiB|N/A) +\|", line).groups()
    name = re.sub(r"^\.\.\.", "/and/where/else/it/is", name)
    process = {"pid": int(pid), "type": kind, "name": name,
               "memory_bytes": None if memory == "N/A" else number(memory, "MiB", MIB)}
    if gi != "N/A":
        process.update(gpu_instance=int(gi), compute_instance=int(ci))
    return int(gpu), process


def groups(lines, size, begins):
    """Runs of that many lines of which the first matches."""
    return [lines[i:i + size] for i, line in enumerate(lines) if re.match(begins, line)]


CARD = r"\| +\d+  \S.* [0-9A-F]{8}:"
INSTANCE = r"\| +\d+ +\d+ +\d+ +\d+  \|"
PROCESS = r"\| +\d+ +(\d+|N/A) +(\d+|N/A) +\d+ +[CGM+]+ "


def machine_of(lines, driver=None):
    """A machine file of which nvidia-smi prints these lines."""
    banner = re.search(r"Version: (\S+) .*Version: (\d+)\.(\d+)", "\n".join(lines))
    version = banner.group(1) if banner else driver
    cuda = int(banner.group(2)) * 1000 + int(banner.group(3)) * 10 if banner else 12000
    devices = [device for _, device in (gpu_of(entry) for entry in groups(lines, 3, CARD))]
    for gpu, mig in (mig_of(entry) for entry in groups(lines, 2, INSTANCE)):
        devices[gpu]["mig"].append(mig)
    for gpu, process in (process_of(entry[0]) for entry in groups(lines, 1, PROCESS)):
        devices[gpu]["processes"].append(process)
    return {"gpulse_machine": 1, "source": "a table",
            "driver": {"version": version, "nvml": f"{cuda // 1000}.{version}", "cuda": cuda},
            "devices": devices}


def move(machine, lines):
    """Gives a machine the values of a moment, those of the table."""
    for device, entry in zip(machine["devices"], groups(lines, 3, CARD)):
        answers = gpu_of(entry)[1]["answers"]
        for key in ("FanSpeed", "Temperature", "PowerUsage"):
            device["answers"][key] = answers[key]


def show(machine, *words):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/root")
        with open(f"{folder}/m.json", "w") as file:
            json.dump(machine, file)
        env = dict(os.environ, GPULSE_SIM_STATE=folder, TZ="UTC")
        return good(gpulse("smi", *words, "--sim", f"{folder}/m.json", "--sim-still", "--root",
                           f"{folder}/root", env=env))


def imported(path):
    return json.loads(good(gpulse("sim", "import", path)))


def lines_of(name):
    return (CAPTURES / f"{name}.txt").read_text().replace("\r", "").splitlines()


def same(name, captured, printed):
    """The lines behind the date are the same."""
    assert DATE.fullmatch(printed[0]), f"{name}: not a date: '{printed[0]}'"
    for i, (expected, line) in enumerate(zip(captured, printed[1:])):
        assert expected == line, f"{name}, line {i + 2}: captured\n{expected}\nprinted\n{line}"
    assert len(captured) == len(printed) - 1, f"{name}: {len(captured)} lines captured, {len(printed) - 1} printed"



@test
def a_machine_made_of_its_log_gives_its_table():
    names = sorted(path.stem.removeprefix("table__") for path in CAPTURES.glob("table__*__[il]*.txt"))
    assert len(names) == 15, names
    for name in names:
        captured = lines_of(f"table__{name}")
        assert DATE.fullmatch(captured[0]), captured[0]
        machine = imported(CAPTURES / f"q__{name}.txt")
        move(machine, captured)
        same(name, captured[1:], show(machine, *["--native"] * ("_610." in name)).splitlines())
        print(f"# {name}: {len(captured) - 1} lines")



@test
def a_machine_made_of_cells_gives_its_table():
    names = sorted(path.stem for pattern in ("table+*", "table__*", "multi__gb10*", "misc-commands*")
                   for path in CAPTURES.glob(pattern + ".txt") if not re.search("__(idle|load)$", path.stem))
    assert len(names) == 10, names
    for name in names:
        lines = lines_of(name)
        first = next(i for i, line in enumerate(lines) if re.match(r"\+--|\| (NVIDIA-SMI|GPU  Name)", line))
        last = max(i for i, line in enumerate(lines) if line.startswith(("+--", "|")))
        captured = lines[first:last + 1]
        machine = machine_of(captured, re.search(r"_(\d[\d.]+)", name).group(1))
        if name == NAMELESS:
            machine["devices"][0]["processes"] = [{"pid": 4711, "type": "C", "memory_bytes": MIB, "name": "x"}]
            machine["faults"] = ["error=NOT_FOUND:nvmlSystemGetProcessName"]
        printed = show(machine).splitlines()
        if name in TRIMMED:
            assert any(line.isspace() for line in printed), f"{name}: no blanks to cut off"
            printed = [line.rstrip() if i else line for i, line in enumerate(printed)]
        start = printed.index(captured[0])
        assert start <= 4, f"{name} begins in line {start + 1}"
        same(name, captured, printed[:1] + printed[start:start + len(captured)])
        assert name.endswith("_head") or start + len(captured) == len(printed), f"{name}: printed on"
        print(f"# {name}: {len(captured)} lines")


# The heads of sections in captures of single lines, and the driver of that form.
SECTIONS = {
    r"driver (\d+(?:\.\d+)*)": None,
    r"470/515-form": "470.82.01",
    r"pre-525": "515.65.01",
    r"535-form": "535.161.07",
    r"550\+-form": "550.90.12",
}


def driver_of(head):
    for pattern, version in SECTIONS.items():
        if match := re.match(pattern, head):
            return version or match.group(1)
    return None


def sections(lines):
    """(driver, the lines below its head)"""
    heads = [i for i, line in enumerate(lines) if driver_of(line)]
    for start, end in zip(heads, [*heads[1:], len(lines)]):
        yield driver_of(lines[start]), lines[start + 1:end]


@test
def lines_of_single_gpus_and_unreadable_cells_are_as_captured():
    compared = 0
    stub = ["|   0  A  On  | 00000000:01:00.0 Off | On |", "| N/A 1C P0 1W / 1W | 1MiB / 1MiB | N/A      Default |",
            "| | | Enabled |"]
    for name in ("table-errors__ERR-cells", "table-lines__by-driver"):
        for driver, lines in sections(lines_of(name)):
            instances = [line for entry in groups(lines, 2, INSTANCE) for line in entry]
            entries = [entry[:3] for entry in groups([*lines, ""], 3, CARD)]
            for entry in [*entries, instances] if instances else entries:
                captured = [line for line in entry if line]
                whole = stub + entry if entry is instances else captured + ["| | | N/A |"] * (3 - len(captured))
                machine = machine_of(whole, driver)
                index = int(entry[0][1:6].split()[0])
                while len(machine["devices"]) <= index:  # others before it
                    machine["devices"].insert(0, dict(machine["devices"][0], uuid=f"GPU-{len(machine['devices'])}"))
                printed = show(machine).splitlines()
                for line in captured:
                    assert line in printed, "\n".join([f"driver {driver}, captured:", line, "printed:", *printed])
                compared += len(captured)
    assert compared == 51, compared


main()
