#!/usr/bin/env python3
"""`gpulse smi --query-…=… --format=csv` against what real nvidia-smi printed: every capture of a query
in data/captures becomes a simulated machine, and the same query of it must print the same bytes, but
for the time stamps, of which the form is checked. Cells that may differ stand in ACCEPTED with their
reason; each entry must occur.

variants: asan
"""
import json
import os
import re
import tempfile
from pathlib import Path

from captures import CAPTURES, METRICS
from tap import good, gpulse, main, test

# (capture, field) and why our cell may differ from the captured one.
ACCEPTED = {
    ("query-gpu__rtx-2080-super_610.62_windows__idle", "bbx.time_run"):
        "[Function Not Found]: gpulse knows no call for it, so it is [N/A] as everywhere else",
    ("query-gpu__rtx-2080-super_610.62_windows__load", "bbx.time_run"):
        "[Function Not Found]: gpulse knows no call for it, so it is [N/A] as everywhere else",
}

used = set()


class Machine:
    """The simulated machine of a capture; `change` is given its JSON, `hostmax` is the generation of the
    slot, which the kernel tells and not the driver."""

    def __init__(self, capture, change=None, hostmax=None):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "m.json"
        self.root = Path(self.folder.name) / "root"
        self.root.mkdir()
        good(gpulse("sim", "import", capture, "-o", self.path))
        machine = json.loads(self.path.read_text())
        if change:
            change(machine)
            self.path.write_text(json.dumps(machine))
        if hostmax:
            for device in machine["devices"]:
                slot = self.root / "sys/bus/pci/devices" / device["pci"]["bus_id"][4:].lower()
                slot.mkdir(parents=True)
                (slot.parent / "max_link_speed").write_text(
                    f"{({1: 2.5, 2: 5.0}.get(hostmax) or 2.0 ** hostmax)} GT/s PCIe\n")

    def run(self, *words):
        env = dict(os.environ, GPULSE_SIM_STATE=self.folder.name, TZ="UTC")
        return gpulse("smi", *words, "--sim", self.path, "--sim-still", "--root", self.root, "--timeout", "60", env=env)

    def lines(self, *words):
        printed = self.run(*words)
        assert printed.stderr == "" and printed.stdout[-1:] in ("", "\n"), printed
        return good(printed).split("\n")[:-1]


# What the driver answers together with a field: a machine must have all of it.
COMPANIONS = {
    "memory.used": {"memory.total": "98304 MiB", "memory.free": "97000 MiB"},
    "encoder.stats.sessionCount": {"encoder.stats.averageFps": "0", "encoder.stats.averageLatency": "0"},
    "ecc.mode.current": {"ecc.mode.pending": "Disabled"},
}


def machine_of_table(lines, change=None):
    """The machine of an excerpt: header and rows."""
    names = names_of(lines[0])
    more = {name: value for field in names for name, value in COMPANIONS.get(field, {}).items() if name not in names}
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as table:
        table.write("".join(", ".join([line, *(more.values() if i else more)]) + "\n" for i, line in enumerate(lines)))
        table.flush()
        return Machine(table.name, change)


def names_of(header):
    return [re.sub(r" \[.*", "", column) for column in header.split(", ")]


def unit_of(column):
    found = re.search(r" \[(.*)\]$", column)
    return f" {found.group(1)}" if found else ""


def cells(line, columns):
    """The cells of a line; a comma in the name of a process is part of it."""
    found = line.split(", ")
    assert len(found) == len(columns), f"{len(columns)} columns: {line}"
    return found


def compare(name, captured, printed):
    """Lines with their header. Equal, cell by cell and byte by byte, but for what ACCEPTED lists."""
    assert printed[0] == captured[0], f"header: captured {captured[0]}\nprinted {printed[0]}"
    assert len(printed) == len(captured), f"captured {len(captured)} lines, printed {len(printed)}: {printed}"
    columns = names_of(captured[0])
    moments, differing = set(), []
    for want, got in zip(captured[1:], printed[1:]):
        for column, a, b in zip(columns, cells(want, columns), cells(got, columns)):
            if column == "timestamp":
                moments.add(b)
                same = re.fullmatch(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}", a) and len(a) == len(b) and \
                    re.sub(r"\d", "0", a) == re.sub(r"\d", "0", b)
            else:
                same = a == b
            if not same and (name, column) in ACCEPTED:
                used.add((name, column))
            elif not same:
                differing.append(f"{column}: captured {a!r}, printed {b!r}")
    assert not differing, "\n".join(["", *differing])
    assert len(moments) <= 1, "a pass has one time stamp"


def without_units(lines):
    """What nounits makes of the lines of a table: the header keeps its units."""
    columns = lines[0].split(", ")
    return [lines[0]] + [", ".join(cell.removesuffix(unit_of(column))
                                   for cell, column in zip(cells(line, columns), columns)) for line in lines[1:]]


def check(name, machine, query, captured):
    """A query with its header and units, and without either."""
    option = f"--query-{query}={','.join(names_of(captured[0]))}"
    compare(name, captured, machine.lines(option, "--format=csv"))
    compare(name, without_units(captured), machine.lines(option, "--format=nounits,csv"))
    bare = machine.lines(option, "--format", "csv,noheader,nounits")
    compare(name, without_units(captured), captured[:1] + bare)


# ---- --query-gpu ----

def captured_tables(pattern):
    for path in sorted(CAPTURES.glob(pattern)):
        yield path, path.read_text().rstrip("\n").split("\n")


@test
def every_field_of_every_gpu():
    count = 0
    for path, captured in captured_tables("query-gpu__*_[0-9]*.txt"):
        values = dict(zip(names_of(captured[0]), captured[1].split(", ")))
        hostmax = values["pcie.link.gen.hostmax"]
        machine = Machine(path, hostmax=int(hostmax) if hostmax.isdigit() else None)
        check(path.stem, machine, "gpu", captured)
        count += 1
    assert count == 15, count


@test
def an_alias_prints_the_name():
    path = CAPTURES / "query-gpu__h100_alias-headers_ml-engineering.txt"
    command, *captured = [line for line in path.read_text().splitlines() if line != "[...]"]
    compare(path.stem, captured, machine_of_table(captured).lines(*command.removeprefix("$ nvidia-smi ").split()))


@test
def old_windows():
    text = (CAPTURES / "query-misc__csv-fragments.txt").read_text()
    captured = re.search(r"(?m)^# .* driver 466.63,.*\n(.*\n.*)$", text).group(1).split("\n")
    check("466.63", machine_of_table(captured), "gpu", captured)


def commands_of(path):
    """{command: the lines that it printed} of a capture with several."""
    found = {}
    for block in re.split(r"(?m)^\$ ", path.read_text())[1:]:
        command, _, output = block.partition("\n")
        found[command] = output.removesuffix("\n").split("\n")
    return found


FOUR_GPUS = CAPTURES / "multi__rtx-pro-6000-blackwell-maxq_x4_595.91.07.txt"


@test
def four_gpus_without_header_and_units():
    found = commands_of(FOUR_GPUS)
    queries = [(command.split()[1:], lines) for command, lines in found.items()
               if "--query-gpu=" in command and "csv,noheader,nounits" in command]
    assert len(queries) == 2
    # of a machine that has the fields of both, with the units that a header has
    fields = [words[0].removeprefix("--query-gpu=").split(",") for words, _ in queries]
    header = good(gpulse("smi", f"--query-gpu={','.join(fields[0] + fields[1][1:])}", "--format=csv", "--sim", "t4"))
    columns = header.split("\n")[0].split(", ")
    rows = [[*a.split(", "), *b.split(", ")[1:]] for a, b in zip(queries[0][1], queries[1][1], strict=True)]
    machine = machine_of_table([", ".join(columns)] + [
        ", ".join(value + unit_of(column) for value, column in zip(row, columns, strict=True)) for row in rows])
    for names, (words, expected) in zip(fields, queries):
        compare("4 GPUs", [", ".join(names), *expected], [", ".join(names), *machine.lines(*words)])


@test
def a_field_that_does_not_exist():
    (command, expected), = ((c, lines) for c, lines in commands_of(FOUR_GPUS).items() if "bogus" in c)
    result = gpulse("smi", *command.partition(";")[0].split()[1:], "--sim", "t4")
    assert result.stderr == ""
    assert (result.stdout + f"exit={result.returncode}").split("\n") == expected


# ---- the other queries: the machine is that of -q, printed in the same second ----

def machine_of_log(path, change=None):
    return Machine(path.with_name(re.sub(r"^query-\w+-\w+__", "q__", path.name)), change)


@test
def processes_that_compute():
    count = 0
    for path, captured in captured_tables("query-compute-apps__*.txt"):
        pids = [int(line.split(", ")[5]) for line in captured[1:]]

        def order(machine, pids=pids):
            """As the driver listed them, which the log does not tell: it goes by pid."""
            gpu = machine["devices"][0]
            gpu["processes"].sort(key=lambda p: pids.index(p["pid"]) if p["pid"] in pids else -1)
        check(path.stem, machine_of_log(path, order), "compute-apps", captured)
        count += len(pids)
    assert count > 60, count


@test
def processes_of_four_gpus():
    found = commands_of(FOUR_GPUS)
    command = next(command for command in found if "--query-compute-apps" in command)
    gpus = [line.split(", ") for line in next(found[c] for c in found if "--query-gpu=index,uuid" in c)]
    uuids = [gpu[1] for gpu in gpus]

    def fill(machine):
        for line in found[command]:
            pid, name, uuid, mib = line.split(", ")
            machine["devices"][uuids.index(uuid)].setdefault("processes", []).append(
                {"pid": int(pid), "type": "C", "name": name, "memory_bytes": int(mib) << 20})
    table = ["uuid, name, pci.bus_id, driver_version", *(", ".join(gpu[1:5]) for gpu in gpus)]
    assert machine_of_table(table, fill).lines(*command.split()[1:]) == found[command]


@test
def processes_that_are_kept_account_of():
    count = 0
    for path, captured in captured_tables("query-accounted-apps__*.txt"):
        def fill(machine, captured=captured):
            """The log of this machine does not list them."""
            rows = [line.split(", ")[5:] for line in captured[1:]]
            if rows:
                machine["devices"][0]["lists"]["accounted_apps"] = [
                    {"pid": int(pid), "gpu_utilization": int(gpu.split()[0]),
                     "memory_utilization": int(mem.split()[0]), "max_memory": int(most.split()[0]) << 20,
                     "time_ms": int(time.split()[0]), "running": int(time == "0 ms")}
                    for pid, gpu, mem, most, time in rows]
        check(path.stem, machine_of_log(path, fill), "accounted-apps", captured)
        count += len(captured) - 1
    assert count == 8, count


@test
def retired_pages():
    count = 0
    for path, captured in captured_tables("query-retired-pages__*.txt"):
        check(path.stem, machine_of_log(path), "retired-pages", captured)
        count += 1
    assert count == 14, count


@test
def remapped_rows_and_supported_clocks():
    """Excerpts: the header, and the values of GPUs that are not here."""
    text = (CAPTURES / "query-misc__csv-fragments.txt").read_text()
    blocks = re.findall(r"(?m)^# .*(--query-\S+=\S+) --format=csv.*\n((?:[^#\n].*\n)+)", text)
    assert [option.split("=")[0] for option, _ in blocks] == ["--query-remapped-rows", "--query-supported-clocks"]
    for option, captured in blocks:
        header, *rows = captured.splitlines()
        printed = good(gpulse("smi", option, "--format=csv", "--sim", "a100x2", "--sim-still")).splitlines()
        assert printed[0] == header and len(printed) > max(1, len(rows))
        for want, got in zip(rows, printed[1:]):
            assert re.sub(r"\d+|[\w.-]{20,}", "_", got.split(", ", 1)[1]) == re.sub(r"\d+", "_", want.split(", ", 1)[1])


# ---- the pages of help ----

QUERIES = ("gpu", "supported-clocks", "compute-apps", "accounted-apps", "retired-pages", "remapped-rows")


def fields_of_help(query, driver=None):
    """As nvidia_gpu_exporter reads the page; behind each name its aliases."""
    page = good(gpulse("smi", f"--help-query-{query}", *(["--sim", f"h100,driver={driver}"] if driver else [])))
    assert page.startswith(f'List of valid properties to query for the switch "--query-{query}":\n\n')
    names = re.findall(r'\n\s*\n^"([^"]+)"', page, re.M)
    lines = re.findall(r'(?m)^("[^"]+"(?: or "[^"]+")*)\n(.+)$', page)
    assert [line.split('"')[1] for line, _ in lines] == names
    assert all(help and '"' not in help for _, help in lines), lines
    return {line.split('"')[1]: line.split('"')[3::2] for line, _ in lines}


def captured_fields(query):
    return {name for path, lines in captured_tables(f"query-{query}__*.txt") for name in names_of(lines[0])
            if not lines[0].startswith("$")}


@test
def the_page_of_query_gpu_names_all_fields_that_a_capture_has():
    fields = fields_of_help("gpu")
    assert set(fields) == captured_fields("gpu") and len(fields) == 241, len(fields)
    aliases = [alias for aliases in fields.values() for alias in aliases]
    assert {"gpu_name", "gpu_uuid", "gpu_bus_id", "gpu_serial", "inforom.image", "inforom.power", "clocks.gr", "clocks.sm",
            "clocks.mem", "clocks.video", "clocks.max.gr", "clocks.max.mem", "clocks.applications.gr",
            "clocks.default_applications.mem", "gpu_operation_mode.current", "retired_pages.sbe", "retired_pages.dbe",
            "remapped_rows.sbe", "remapped_rows.dbe", "gpu.power.draw.average", "gpu.power.draw.instant",
            "gpu.power.requested_limit", "gpu.power.current_limit", "gpu.power.default_limit", "gpu.power.min_limit",
            "gpu.power.max_limit", "module.power.requested_limit", "module.power.current_limit"} <= set(aliases)
    assert len(aliases) == len(set(aliases)) == 41, sorted(aliases)
    assert not set(aliases) & set(fields)


@test
def the_page_of_query_gpu_is_that_of_the_driver():
    counts = {}
    for path, captured in captured_tables("query-gpu__*_[0-9]*.txt"):
        version = re.search(r"_(\d+\.[\d.]+)_", path.name)[1]
        if "windows" not in path.name:  # which have no pci.baseClass and no pci.subClass
            counts[version] = len(names_of(captured[0]))
            assert set(fields_of_help("gpu", version)) == set(names_of(captured[0])), path.name
    assert {version: counts[version] for version in ("590.48.01", "595.80", "610.57.04")} == \
        {"590.48.01": 212, "595.80": 202, "610.57.04": 241}, counts
    for driver in ("470", "580"):
        page = good(gpulse("smi", "--help-query-gpu", "--sim", f"h100,driver={driver}"))
        assert f"driver {driver} may lack some" in page and len(fields_of_help("gpu", driver)) == 241, driver
    assert "no driver is loaded" in good(gpulse("smi", "--help-query-gpu", env=dict(os.environ, GPULSE_NVML="/nowhere")))
    assert "no driver is loaded" not in good(gpulse("smi", "--help-query-retired-pages", env=dict(os.environ, GPULSE_NVML="/nowhere")))


@test
def the_pages_of_the_other_queries_name_the_fields_of_captures():
    for query in ("compute-apps", "accounted-apps", "retired-pages"):
        assert captured_fields(query) <= set(fields_of_help(query)), query
    assert set(fields_of_help("compute-apps")) == captured_fields("compute-apps")
    assert set(fields_of_help("retired-pages")) == captured_fields("retired-pages")
    assert set(fields_of_help("accounted-apps")) == captured_fields("accounted-apps") | {"vgpu_instance"}
    assert fields_of_help("supported-clocks")["memory"] == ["mem"]


@test
def every_field_of_a_page_is_a_field():
    for query in QUERIES:
        fields = fields_of_help(query)
        names = [*fields, *(alias for aliases in fields.values() for alias in aliases)]
        header = good(gpulse("smi", f"--query-{query}={','.join(names)}", "--format=csv", "--sim", "h100",
                             "--sim-still")).split("\n")[0]
        assert names_of(header) == [*fields, *(name for name, aliases in fields.items() for _ in aliases)], query


@test
def a_field_of_gpulse_alone_is_none_of_nvidia_smi():
    fields = fields_of_help("gpu")
    own = {name for name, row in METRICS.items() if row.origin == "OWN"} | {"gpu", "compute_capability", "TEMPERATURE.GPU"}
    assert len(own) > 100 and not own & set(fields)
    for name in ("gpu", "compute_capability", "TEMPERATURE.GPU", "cuda_version", "utilization.gpu.peak", "pid"):
        result = gpulse("smi", f"--query-gpu=index,{name}", "--format=csv", "--sim", "h100")
        assert result.returncode == 2 and result.stdout == f'Field "{name}" is not a valid field to query.\n\n', name


@test
def every_accepted_difference_occurs():
    unused = set(ACCEPTED) - used
    assert not unused, f"no longer needed: {sorted(unused)}"
    for (capture, field), reason in ACCEPTED.items():
        print(f"# accepted: {capture}: {field}: {reason}")


main()
