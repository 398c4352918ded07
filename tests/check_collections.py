#!/usr/bin/env python3
"""`gpulse sim import` of files that hold the output of many commands, in the form of nvidia_gpu_exporter's collections:
each section begins with its title and its command between lines of '#'. And the names of imported MIG devices.

variants: asan
"""
import json
import re
import tempfile
from pathlib import Path

from captures import CAPTURES
from tap import good, gpulse, main, test

RULE = "#" * 80
FOLDER = tempfile.TemporaryDirectory(prefix="gpulse-collections-")
MACHINES = ["h100-mig_590.48.01", "l40s_595.80", "rtx-2080-super_610.62_windows"]

# What no reader of a capture may choke on: sequences for a terminal, other tables, other commands.
TOPO = "\t\x1b[4mGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\nGPU0\t X \t0-15\t0\t\tN/A\n"
HELP = 'List of valid properties to query for the switch "--query-gpu":\n\n"timestamp"\nThe timestamp.\n'


def section(title, command, text):
    return f"{RULE}\n# {title}\n# $ {command}\n{RULE}\n{text.rstrip(chr(10))}\n\n\n"


def collection(machine, sections, ends="\n"):
    """A file with a header, and these sections."""
    text = (f"{RULE}\n# GPU capture\n{RULE}\n# This header has what nvidia-smi does not report.\ncollected_at:   2026-06-24T08:26:34Z\n"
            f"arch:           x86_64\n\n\n{''.join(sections)}")
    path = Path(FOLDER.name) / f"{machine}.txt"
    path.write_bytes(text.replace("\n", ends).encode())
    return path


def output(kind, machine):
    return (CAPTURES / f"{kind}__{machine}.txt").read_text()


def whole(machine):
    """As the collector writes it."""
    query = f"nvidia-smi --query-gpu={','.join(column.split(' ')[0] for column in output('query-gpu', machine + '__idle').split(', '))}"
    yield section("capabilities :: version", "nvidia-smi --version", "NVIDIA-SMI version  : 590.48.01\n")
    yield section("capabilities :: help-query-gpu", "nvidia-smi --help-query-gpu", HELP)
    yield section("capabilities :: list (-L)", "nvidia-smi -L", output("L", machine))
    yield section("capabilities :: topo -m", "nvidia-smi topo -m", TOPO)
    yield section("capabilities :: nvlink -s", "nvidia-smi nvlink -s", output("nvlink-s", machine))
    for load in ("idle", "load"):
        yield section(f"{load} :: nvidia-smi (default table)", "nvidia-smi ", "+---+\n| NVIDIA-SMI |\n+---+\n")
        yield section(f"{load} :: query (-q)", "nvidia-smi -q", output("q", f"{machine}__{load}"))
        yield section(f"{load} :: query-gpu (csv, what the exporter parses)", f"{query[:4000]} --format=csv",
                      output("query-gpu", f"{machine}__{load}"))
        yield section(f"{load} :: dmon", "nvidia-smi dmon -c 5", output("dmon", f"{machine}__{load}"))


def imported(path):
    machine = json.loads(good(gpulse("sim", "import", path)))
    machine.pop("source", None)
    return machine


@test
def a_collection_is_the_machine_of_its_first_report():
    for machine in MACHINES:
        alone = imported(CAPTURES / f"q__{machine}__idle.txt")
        assert imported(collection(machine, whole(machine))) == alone, machine
        assert imported(collection(machine, whole(machine), "\r\n")) == alone, f"{machine} with CRLF"


@test
def without_a_report_the_first_query_is_imported():
    for machine in MACHINES:
        sections = [text for text in whole(machine) if "# $ nvidia-smi -q\n" not in text]
        assert imported(collection(machine, sections)) == imported(CAPTURES / f"query-gpu__{machine}__idle.txt"), machine


@test
def an_error_names_its_line_in_the_file():
    broken = section("idle :: query (-q)", "nvidia-smi -q", output("q", "l40s_595.80__idle").replace("    FB Memory Usage", "     FB Memory Usage"))
    path = collection("broken", [section("capabilities :: topo -m", "nvidia-smi topo -m", TOPO), broken])
    line = path.read_text().split("\n").index("     FB Memory Usage") + 1
    result = gpulse("sim", "import", path)
    assert result.returncode == 2 and f"{path}:{line}: indentation of 5 does not match" in result.stderr, result.stderr
    # a report that is no text is refused, wherever it is
    path = collection("binary", [section("idle :: query (-q)", "nvidia-smi -q", output("q", "l40s_595.80__idle").replace("FB Mem", "FB\x1bMem"))])
    result = gpulse("sim", "import", path)
    line = next(i for i, text in enumerate(path.read_text().split("\n"), 1) if "\x1b" in text)
    assert result.returncode == 2 and f"{path}:{line}: not a text: it contains the byte 0x1b" in result.stderr, result.stderr


@test
def a_section_without_anything_is_refused():
    for text in ("", "Failed to initialize NVML: Driver/library version mismatch\n"):
        path = collection("empty", [section("idle :: query (-q)", "nvidia-smi -q", text), section("load", "nvidia-smi -L", "GPU 0\n")])
        result = gpulse("sim", "import", path)
        assert result.returncode == 2 and "not a capture" in result.stderr, result.stderr


def names(machine):
    path = Path(FOLDER.name) / "mig.json"
    path.write_text(json.dumps(machine))
    return [line.split()[1] for line in good(gpulse("--sim", path, "smi", "-L")).splitlines() if line.startswith("  MIG")]


@test
def mig_devices_are_named_as_nvidia_smi_names_them():
    wanted = [line.split()[1] for line in output("L", "h100-mig_590.48.01").splitlines() if "MIG" in line]
    assert wanted == ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"]
    for load in ("idle", "load"):
        assert names(imported(CAPTURES / f"q__h100-mig_590.48.01__{load}.txt")) == wanted
    assert names(imported(CAPTURES / "qx__telegraf_a100-sxm4-v12.xml")) == ["1g.20gb"] * 4


def edited(change):
    """The report of an H100 with MIG, changed, as a machine."""
    path = Path(FOLDER.name) / "edited.txt"
    path.write_text(change(output("q", "h100-mig_590.48.01__idle")))
    return imported(path)


def replaced(label, old, new, which=1):
    """A change of a line of -q, the n-th of those with this value."""
    def change(text):
        parts = re.split(rf"(?m)^( +{label} +: ){old}$", text)
        assert len(parts) > 2 * which - 1, label
        head = "".join(part + (old if i % 2 else "") for i, part in enumerate(parts[:2 * which]))
        return head[:len(head) - len(old)] + new + "".join(part + (old if i % 2 else "") for i, part in enumerate(parts[2 * which:], 2 * which))
    return change


@test
def parts_and_media_engines_are_in_the_name():
    assert names(edited(replaced("Multiprocessor count", "60", "16")))[0] == "1c.3g.40gb"
    assert names(edited(replaced("Multiprocessor count", "60", "32")))[0] == "2c.3g.40gb"
    machine = edited(replaced("OFA count", "0", "1", 3))
    assert [mig["answers"]["Name"].split(" MIG ")[1] for mig in machine["devices"][0]["mig"]] == \
        ["3g.40gb", "2g.20gb", "1g.10gb+me", "1g.10gb"]


@test
def a_part_of_an_instance_whose_slices_are_unknown_has_no_name():
    other = replaced("Device Id", "0x233010DE", "0x2BB510DE")
    assert names(edited(other)) == ["3g.40gb", "2g.20gb", "1g.10gb", "1g.10gb"]
    shared, second = replaced("GPU Instance ID", "3", "2"), replaced("Compute Instance ID", "0", "1", 2)
    assert names(edited(lambda text: second(shared(other(text))))) == ["N/A", "N/A", "1g.10gb", "1g.10gb"]


main()
