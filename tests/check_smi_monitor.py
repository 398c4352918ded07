#!/usr/bin/env python3
"""What `nvidia-smi dmon`, `pmon`, `encodersessions` and `fbcsessions` printed on real machines is
what gpulse smi prints, byte for byte. Every sample of a capture is laid over the machine that it was
taken on (or, where there is no other capture of that, over one with the same driver): power gets a
fraction and memory a part of a MiB, which must not be printed, and names a path and a tail.

variants: asan
"""
import json
import re
import tempfile
from collections import Counter
from pathlib import Path

from captures import CAPTURES, MIB
from tap import good, gpulse, main, test

scratch = tempfile.TemporaryDirectory()
SCRATCH = Path(scratch.name)
(SCRATCH / "root").mkdir()

# The driver of captures whose name does not have it; of those that say nothing, one with their columns.
DRIVERS = {
    "dmon-pucm__kde-fixture_driver520": "520.56.06",
    "dmon-pucm__kde-fixture_driver525": "525.60.11",
    "dmon-pucvmet-DT+pmon-um-DT__no-ecc-geforce-2026-08": "610.57.04",
    "dmon-gpm__x8_hbm2e-1593MHz": "535.54.03",
    "dmon-gpm__laptop_2025-12": "580.95.05",
    "dmon__header-again": "580.95.05",
    "pmon__x8_narrow": "470.57.02",
    "pmon-mu__narrow": "470.57.02",
}

# Captures from which blanks at the ends of lines were lost when they were published.
WITHOUT_BLANKS = {
    "misc-commands__tesla-t4_530.30.02", "multi__gb10-dgx-spark_580.126.09", "dmon-gpm__x8_hbm2e-1593MHz",
    "dmon-gpm__laptop_2025-12", "dmon-pucvmet-DT+pmon-um-DT__no-ecc-geforce-2026-08", "dmon__header-again",
}

# Rows that we print otherwise: (what, function from the captured row to ours, why). Each must occur.
ACCEPTED = (
    ("shares of 0", lambda row: re.sub(r"( +)0( +)0(?=( +(\d+|-)){2,4} +[a-z])",
                                       lambda m: f"{m[1]}-{m[2]}-", row) if " C " in row else row,
     "NVML does not tell a process that used 0 % from one that used nothing"),
    ("names of 16", lambda row: re.sub(r"(    )(\S.{15})$", lambda m: m[1] + m[2][:15], row)
     if "C+G" in row else row, "nvidia-smi 591 for Windows cuts names there, all others after 15"),
)
occurred = Counter()
compared = Counter()


# ---- captures ----

class Block:
    """The output of one command in a capture."""

    def __init__(self, path, words):
        self.path, self.words, self.lines = path, words, []

    def __str__(self):
        return f"{self.path.stem}: {' '.join(self.words)}"

    @property
    def headers(self):
        return self.lines[:2]

    @property
    def columns(self):
        return self.lines[0].lstrip("#").split()

    @property
    def driver(self):
        found = re.search(r"_(\d+\.\d+(\.\d+)?)", self.path.stem)
        return DRIVERS.get(self.path.stem) or found[1]

    def samples(self):
        """The rows of each sample; GPUs and pids count up within one."""
        out, last = [], None
        for line in self.lines:
            if line.startswith("#"):
                continue
            row = dict(zip(self.columns, line.split()))
            place = (int(row["gpu" if "gpu" in row else "GPU"]),
                     int(row["pid"]) if row.get("pid", "-") != "-" else -1)
            if last is None or place <= last:
                out.append([])
            out[-1].append(line)
            last = place
        return out


def command_of(line):
    found = re.match(r"(?:[$#>] )?nvidia-smi ((dmon|pmon|encodersessions|fbcsessions)\b.*)", line)
    return found and re.sub(r" (-c \d+|--count=\d+)", "", found[1]).split()


def blocks_of(path):
    kind, _, letters = path.stem.partition("__")[0].partition("-")
    words = [kind, *(["-s", letters] if letters in ("mu", "pucm") else [])]
    words += {"dmon-gpm__x8_hbm2e-1593MHz": ["--gpm-metrics=1,2,3,4,5,10,11,12,13,20,21,60,61"],
              "dmon-gpm__laptop_2025-12": ["--gpm-metrics", "1,2,13"]}.get(path.stem, [])
    block = None
    for line in path.read_text().splitlines():
        words = command_of(line) or (["dmon"] if line == "(dmon)" else words)
        starts = re.match(r"# ?(gpu|GPU|Date|Time)\b", line)
        if starts and (block is None or block.words != words):
            block = Block(path, words)
            yield_now = block
            yield yield_now
        elif not starts and not re.match(r"#(?! nvidia-smi)| {4}\d| 20\d{6}", line):
            block = None
        if block:
            block.lines.append(line)


PATTERNS = ("dmon*.txt", "pmon*.txt", "multi__*.txt", "table+dmon__*.txt", "misc-commands__*.txt",
            "encodersessions__*.txt")
BLOCKS = [block for pattern in PATTERNS for path in sorted(CAPTURES.glob(pattern)) for block in blocks_of(path)]


# ---- machines ----

def with_fraction(mebibytes, block):
    """A number of bytes that this driver's nvidia-smi rounds to so many MiB: up since R570."""
    up = int(block.driver.split(".")[0]) >= 570
    return mebibytes * MIB + (-MIB // 2 if up and mebibytes else 0 if up else MIB // 2)


def at(*keys):
    """Sets an answer of a device to the number in the cell, or to a code for '-'."""
    def put(device, value, block):
        *path, last = keys
        for key in path:
            if not isinstance(device.get(key), dict):
                device[key] = {}
            device = device[key]
        device[last] = "NOT_SUPPORTED" if value is None else value
    return put


def scaled(put, factor, rest):
    return lambda device, value, block: put(device, None if value is None else value * factor + rest, block)


def memory(key, exact=False, **more):
    def put(device, value, block):
        used = value * MIB if exact else with_fraction(value, block)
        device["answers"][key] = {"used": used, "free": 1 << 29, "total": used + (1 << 29) + sum(more.values()), **more}
    return put


def gpm(device, value, block):
    """The simulated GPM is the load times a constant of each unit: 0 or nothing."""
    device["answers"]["GpmSupport"] = "NOT_SUPPORTED" if value is None else 0


def nothing(device, value, block):
    pass


CELLS = {
    "pwr": scaled(at("answers", "PowerUsage"), 1000, 950),
    "gtemp": at("answers", "Temperature"),
    "mtemp": at("fields", "82"),
    "sm": at("answers", "UtilizationRates", "gpu"),
    "mem": at("answers", "UtilizationRates", "memory"),
    "enc": at("answers", "EncoderUtilization"),
    "dec": at("answers", "DecoderUtilization"),
    "jpg": at("answers", "JpgUtilization"),
    "ofa": at("answers", "OfaUtilization"),
    "mclk": at("answers", "ClockInfo", "MEM"),
    "pclk": at("answers", "ClockInfo", "SM"),
    "pviol": at("fields", "74"),  # a counter that stands still
    "tviol": at("fields", "75"),
    "fb": memory("MemoryInfo", reserved=1 << 28),
    "bar1": memory("BAR1MemoryInfo", exact=True),  # rounded down by all
    "ccpm": memory("ConfComputeProtectedMemoryUsage"),
    "sbecc": at("answers", "TotalEccErrors", "corrected.volatile"),
    "dbecc": at("answers", "TotalEccErrors", "uncorrected.volatile"),
    "pci": at("fields", "94"),
    "rxpci": scaled(at("answers", "PcieThroughput", "RX"), 1000, 900),
    "txpci": scaled(at("answers", "PcieThroughput", "TX"), 1000, 900),
    **{name: gpm for name in ("gract", "smutil", "smocc", "intutil", "mmaact", "dram", "fp64", "fp32", "fp16",
                              "pcitx", "pcirx", "nvlrx", "nvltx")},
    "gpu": nothing, "GPU": nothing, "Date": nothing, "Time": nothing,
}


def number(cell):
    return None if cell == "-" else int(cell)


imported = {}


def base_machine(block, count):
    """The machine of the capture of -q that was taken together with this one; else a plain one."""
    log = CAPTURES / re.sub(r"^[dp]mon__", "q__", block.path.name)
    if log not in imported and log != block.path and log.exists():
        imported[log] = good(gpulse("sim", "import", log))
    if log in imported:
        machine = json.loads(imported[log])
        assert len(machine["devices"]) == count, f"{count} GPUs printed, {len(machine['devices'])} imported"
        return machine, True
    device = {"answers": {"Name": "GPU", "ComputeRunningProcesses": 0, "GraphicsRunningProcesses": 0,
                          "EncoderStats": {"sessions": 0, "fps": 0, "latency_us": 0}},
              "fields": {}, "processes": []}
    devices = [{"uuid": f"GPU-{i:08}-0000-0000-0000-000000000000",
                "pci": {"bus_id": f"{0:08}:{i + 1:02X}:00.0", "device_id": "0x1E8110DE",
                        "subsystem_id": "0x40051458"}, **json.loads(json.dumps(device))} for i in range(count)]
    return {"gpulse_machine": 1, "source": str(block), "driver": {"version": block.driver, "cuda": 13000},
            "devices": devices}, False


def lay_devices(machine, own, rows, block):
    """What the machine itself does not support stays so: there a capture's '-' is tested, not told."""
    for device, row in zip(machine["devices"], rows):
        for name, cell in zip(block.columns, row.split(), strict=True):
            if number(cell) is not None if own and name not in ("Date", "Time") else True:
                CELLS[name](device, None if name in ("Date", "Time") else number(cell), block)


def process_of(row, block):
    columns = block.columns[:-1]
    cells = row.split(None, len(columns))
    values = dict(zip(columns, cells))
    name = cells[len(columns)].rstrip()
    if values["pid"] == "-":
        return None
    full = name + ("-and a tail" if len(name) >= 15 else "")
    return {"pid": int(values["pid"]), "type": values["type"], "name": f"/opt/some/where/{full}",
            "memory_bytes": with_fraction(int(values["fb"]), block) if values.get("fb", "-") != "-" else 1,
            **{key: number(values[column]) or 0 for column, key in
               (("sm", "util"), ("mem", "util_memory"), ("enc", "util_encoder"), ("dec", "util_decoder"))}}


def lay_processes(machine, rows, block):
    for device in machine["devices"]:
        if device.get("mig"):
            return  # as imported: its log has the same processes, with their places
        device["processes"] = []
        device["answers"]["ProcessUtilization"] = 0
        device["answers"].setdefault("ConfComputeProtectedMemoryUsage", {"total": 0, "used": 0, "free": 0})
    for row in rows:
        gpu, process = int(row.split()[-len(row.split()) + block.columns.index("gpu")]), process_of(row, block)
        if process:
            machine["devices"][gpu]["processes"].append(process)


def lay_sessions(machine, rows, block):
    codecs = {"H.264": 0, "H.265": 1, "AV1": 2}
    for row in rows:
        cells = row.split()
        device = machine["devices"][int(cells[0])]
        device["lists"] = {"encoder_sessions": [], "fbc_sessions": []}
        if cells[1] != "-":
            keys = ("id", "pid", "codec", "width", "height", "fps", "latency_us")
            values = [codecs[cell] if cell in codecs else int(cell) for cell in cells[1:]]
            device["lists"]["encoder_sessions"].append(dict(zip(keys, values, strict=True)))


def machine_of(block, rows):
    gpu = block.columns.index("gpu" if "gpu" in block.columns else "GPU")
    machine, own = base_machine(block, 1 + max(int(row.split()[gpu]) for row in rows))
    if block.words[0] == "dmon":
        lay_devices(machine, own, rows, block)
    elif block.words[0] == "pmon":
        lay_processes(machine, rows, block)
    else:
        lay_sessions(machine, rows, block)
    file = SCRATCH / "machine.json"
    file.write_text(json.dumps(machine))
    return file


def smi(*words, **more):
    return gpulse("smi", *words, "--sim-still", "--root", SCRATCH / "root", **more)


# ---- comparison ----

def without_moment(line):
    return re.sub(r"^ \d{8}(    )\d\d:\d\d:\d\d", r" 00000000\g<1>00:00:00", line)


def accepted(row):
    for what, change, _ in ACCEPTED:
        changed = change(row)
        occurred[what] += changed != row
        row = changed
    return row


def compare(block, rows):
    expected = [*block.headers, *([accepted(row) for row in rows] if block.words[0] == "pmon" else rows)]
    printed = good(smi(*block.words, "-c", "1", "--sim", machine_of(block, rows))).split("\n")
    assert printed.pop() == ""
    if block.path.stem in WITHOUT_BLANKS:
        expected = [line.rstrip() for line in expected]
        printed = [line.rstrip() for line in printed]
    expected, printed = ([without_moment(line) for line in lines] for lines in (expected, printed))
    assert printed == expected, "\n".join(["", *(f"{a!r}\n{b!r}" for a, b in zip(expected, printed) if a != b),
                                           f"{len(expected)} lines expected, {len(printed)} printed"])
    compared["lines"] += len(expected)
    compared["samples"] += 1


def gpm_is_played(block, rows):
    """The simulated GPM gives the load, not the numbers of a capture."""
    return block.path.stem == "dmon-gpm__laptop_2025-12" and not rows[0].endswith(" -")


for block in BLOCKS:
    def of_block(block=block):
        seen = []
        for rows in block.samples():
            if rows not in seen and not gpm_is_played(block, rows):
                seen.append(rows)
                compare(block, rows)
        assert seen
    of_block.__name__ = str(block)
    test(of_block)


@test
def there_are_captures():
    print(f"# {compared['samples']} samples, {compared['lines']} lines compared")
    assert len(BLOCKS) >= 35 and compared["lines"] > 300, (len(BLOCKS), compared)


@test
def every_accepted_difference_occurs():
    for what, _, why in ACCEPTED:
        print(f"# {what}: {occurred[what]} times: {why}")
        assert occurred[what] > 0, what


# ---- longer runs ----

@test
def a_whole_capture_of_pmon_with_its_three_headers():
    block = next(b for b in BLOCKS if b.path.stem == "pmon__rtx-2080-super_610.62_windows__idle")
    samples = block.samples()
    assert all(rows == samples[0] for rows in samples) and len(samples) == 5
    printed = good(smi("pmon", "-c", "5", "--sim", machine_of(block, samples[0]))).split("\n")
    assert printed == [accepted(line) for line in block.path.read_text().split("\n")], printed
    assert [i for i, line in enumerate(printed) if line.startswith("# gpu")] == [0, 46, 92]


@test
def the_header_of_dmon_stands_again_where_it_stood():
    captured = next(b for b in BLOCKS if b.path.stem == "dmon__header-again").lines
    printed = good(smi("dmon", "-c", "4", "--sim", "h100x8,driver=580")).splitlines()
    places = [[i for i, line in enumerate(lines) if line.startswith("# gpu")] for lines in (captured, printed)]
    assert places == [[0, 27], [0, 27]], places


# ---- readers of the output ----

def read_like_kde(text):
    """ksystemstats: the first line with a # names the columns, later ones are skipped; words by place,
    and what is no number is 0."""
    names, rows = None, []
    for line in text.splitlines():
        if line.startswith("#"):
            names = names or line[1:].split()
            continue
        words = line.split()
        assert len(words) == len(names), f"{len(words)} words, {len(names)} columns: {line}"
        rows.append({name: int(word) if word.isdigit() else 0 for name, word in zip(names, words)})
    return rows


@test
def ksystemstats_reads_every_machine():
    machines = [line.split()[0] for line in good(gpulse("sim", "list")).splitlines()]
    machines = [name for name in machines if re.fullmatch(r"[a-z0-9-]+", name)]
    assert len(machines) > 10, machines
    for name in machines:
        if name == "sick":  # ends with 15, as nvidia-smi does with a lost GPU
            continue
        rows = read_like_kde(good(smi("dmon", "-d", "2", "-s", "pucm", "-c", "1", "--sim", name)))
        assert rows and all({"gpu", "pwr", "gtemp", "sm", "enc", "dec", "fb", "bar1", "mclk", "pclk"} <= set(row)
                            for row in rows), name


@test
def libksysguard_and_gcm_read_processes():
    for driver in ("470", "525", "535", "595"):
        text = good(smi("pmon", "-s", "mu", "-c", "1", "--sim", f"t4,driver={driver}"))
        names = text.splitlines()[0][1:].split()
        assert names[:4] == ["gpu", "pid", "type", "fb"] and names[-1] == "command", names
        pids = [line.split()[1] for line in text.splitlines()[2:]]
        assert pids and all(pid.isdigit() or pid == "-" for pid in pids), pids


main()
