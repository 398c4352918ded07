#!/usr/bin/env python3
"""The short answers of `gpulse smi` are nvidia-smi's, byte for byte: -L, -B, --version, -q -u; and
its document type (--dtd) is one: every document that it prints is as its own says.

variants: asan
"""
import json
import os
import re
import tempfile
import xml.parsers.expat
from pathlib import Path
from xml.parsers.expat import model

from captures import CAPTURES
from tap import good, gpulse, main, run, side_by_side, test

BUILT_IN = ("a100", "a100-mig", "b200", "gb10", "gb200", "gtx1660ti", "h100-mig", "h100x2", "l40s", "p100", "rtx2080-win",
            "rtx2080s", "rtx3060", "rtx4090", "t4")
BRANCHES = ("450", "470", "510", "525", "530", "535", "550", "560", "570", "580", "590", "595", "610")


def smi(machine, *words, expect=0):
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/root")
        if isinstance(machine, dict):
            with open(f"{folder}/m.json", "w") as file:
                json.dump(machine, file)
            machine = f"{folder}/m.json"
        env = dict(os.environ, GPULSE_SIM_STATE=folder, TZ="UTC")
        result = gpulse("smi", *words, "--sim", machine, "--sim-still", "--root", f"{folder}/root", env=env)
        assert result.returncode == expect and result.stderr == "", f"{words}: {result}"
        return result.stdout


def imported(name):
    return json.loads(good(gpulse("sim", "import", CAPTURES / f"{name}.txt")))


def text_of(name):
    return (CAPTURES / f"{name}.txt").read_text().replace("\r", "")


def identify(machine, listed):
    """Gives a machine the names that -L tells: masked UUIDs, and the profiles of MIG devices."""
    gpus = iter(machine["devices"])
    for line in listed.splitlines():
        if gpu := re.fullmatch(r"GPU \d+: (.*) \(UUID: (\S+)\)", line):
            device = next(gpus)
            device["uuid"] = gpu.group(2)
            device["answers"]["Name"] = gpu.group(1)
            instances = iter(device.get("mig", []))
        else:
            slices, uuid = re.fullmatch(r"  MIG (\d)g\.\S+ +Device +\d+: \(UUID: (\S+)\)", line).groups()
            instance = next(instances)
            instance["uuid"] = uuid
            instance["answers"]["Attributes"].update(
                gpu_instance_slices=int(slices), compute_instance_slices=int(slices))


def commands(name):
    """{command: what it printed} of a capture with its prompts."""
    parts = re.split(r"^[#$] (nvidia-smi.*)\n", text_of(name), flags=re.M)
    return {command.split("  ")[0]: output for command, output in zip(parts[1::2], parts[2::2])}


@test
def lists_of_gpus_are_as_captured():
    for path in sorted(CAPTURES.glob("L__*.txt")):
        logs = sorted(CAPTURES.glob(f"q__{path.stem.removeprefix('L__')}__*.txt"))
        assert logs, path
        for log in logs:
            machine = imported(log.stem)
            identify(machine, text_of(path.stem))
            for option in "-L", "--list-gpus":
                assert smi(machine, option) == text_of(path.stem), log.stem
    captured = commands("multi__rtx-pro-6000-blackwell-maxq_x4_595.91.07")
    machine = imported("q__l40s_595.80__idle")
    machine["devices"] *= 4
    machine["devices"] = [json.loads(json.dumps(device)) for device in machine["devices"]]
    machine["driver"].update(version="595.91.07", nvml="13.595.91.07", cuda=13020)
    identify(machine, captured["nvidia-smi -L"])
    assert smi(machine, "-L") == captured["nvidia-smi -L"]
    assert smi(machine, "--version") == captured["nvidia-smi --version"]


@test
def compute_instances_have_their_share_in_their_profile():
    machine = imported("q__h100-mig_590.48.01__idle")
    answers = machine["devices"][0]["mig"][0]["answers"]
    answers["Attributes"].update(gpu_instance_slices=3, compute_instance_slices=1)
    answers["Name"] = "NOT_SUPPORTED"
    assert re.search(r"^  MIG 1c\.3g\.40gb  Device  0: \(UUID: MIG-\S+\)$", smi(machine, "-L"), re.M)
    answers["Name"] = "NVIDIA H200 MIG 1g.18gb"  # of 16 GiB
    assert "  MIG 1g.18gb     Device  0: " in smi(machine, "-L")


@test
def versions_are_as_captured():
    names = [path.stem for path in CAPTURES.glob("version__*.txt")]
    assert len(names) == 6, names
    for name in names:
        machine = imported(f"q__{name.removeprefix('version__')}__idle")
        assert smi(machine, "--version") == text_of(name), name


@test
def the_commands_of_one_machine_are_as_captured():
    captured = commands("misc-commands__tesla-t4_530.30.02")
    machine = imported("q__tesla-t4_530.30.02")
    identify(machine, captured["nvidia-smi -L"])
    assert smi(machine, "-L") == captured["nvidia-smi -L"]
    assert smi(machine, "-B") == captured["nvidia-smi -B"]
    assert smi(machine, "-i", "1", expect=6) == captured["nvidia-smi -i 1"]

    def without_time(text):
        return re.sub(r"^(Timestamp +: ).*", r"\1", text, flags=re.M)
    assert without_time(smi(machine, "-q", "-u")) == without_time(captured["nvidia-smi -q -u"])
    head = captured["nvidia-smi --dtd"].split("...")[0].splitlines()
    assert smi(machine, "--dtd").splitlines()[:len(head)][:8] == head[:8], smi(machine, "--dtd")[:800]


# ---- the document type ----


def pattern(content):
    """The content model of expat as a regular expression over "tag " of children."""
    kind, quantifier, name, children = content
    mark = {model.XML_CQUANT_NONE: "", model.XML_CQUANT_OPT: "?", model.XML_CQUANT_REP: "*"}[quantifier]
    if kind == model.XML_CTYPE_NAME:
        return f"(?:{name} ){mark}"
    if kind == model.XML_CTYPE_MIXED:
        return "(?:" + "|".join(pattern(child) for child in children) + ")*"
    assert kind == model.XML_CTYPE_SEQ, content
    return "(?:" + "".join(map(pattern, children)) + ")" + mark


def validate(name, document):
    """The document is as the type in it says; returns how many elements were looked at."""
    declared = {}
    may_hold_text = set()
    open_elements = []
    count = 0

    def declare(tag, content):
        assert tag not in declared, f"{name}: {tag} is declared twice"
        declared[tag] = re.compile(pattern(content))
        if content[0] == model.XML_CTYPE_MIXED:
            may_hold_text.add(tag)

    def start(tag, attributes):
        assert tag in declared, f"{name}: {tag} is not declared"
        assert not attributes or tag == "gpu", f"{name}: {tag} has {attributes}"
        if open_elements:
            open_elements[-1][1].append(tag)
        open_elements.append((tag, [], []))

    def end(tag):
        nonlocal count
        _, children, texts = open_elements.pop()
        row = "".join(f"{child} " for child in children)
        assert declared[tag].fullmatch(row), f"{name}: {tag} holds {row}, not {declared[tag].pattern}"
        assert tag in may_hold_text or not "".join(texts).strip(), f"{name}: {tag} holds {texts}"
        count += 1

    parser = xml.parsers.expat.ParserCreate()
    parser.ElementDeclHandler = declare
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = lambda text: open_elements[-1][2].append(text)
    parser.Parse(document, True)
    named = {tag for content in declared.values() for tag in re.findall(r"\(\?:(\w+) \)", content.pattern)}
    assert named <= set(declared), f"{name}: not declared: {named - set(declared)}"
    assert set(declared) - named == {"nvidia_smi_log"}, f"{name}: in no other: {set(declared) - named}"
    return count


@test
def documents_are_as_their_type_says():
    cases = [(machine, machine) for machine in BUILT_IN]
    cases += [(f"{machine} {branch}", f"{machine},driver={branch}") for branch in BRANCHES
              for machine in ("t4", "a100-mig", "p100")]
    cases += [(path.stem, path) for path in sorted(CAPTURES.glob("qx__*.xml"))]

    def document(_, machine):
        if isinstance(machine, Path):
            machine = json.loads(good(gpulse("sim", "import", machine)))
        return smi(machine, "-q", "-x", "--dtd")
    count = sum(validate(name, told) for (name, _), told in zip(cases, side_by_side(document, cases)))
    count += validate("units", smi("t4", "-q", "-x", "-u", "--dtd"))
    assert count > 10000, count
    print(f"# {count} elements")


@test
def the_type_alone_is_that_of_the_documents():
    for words in [], ["-u"]:
        alone = smi("h100-mig", "--dtd", *words)
        embedded = smi("h100-mig", "-q", "-x", "--dtd", *words)
        assert f"<!DOCTYPE nvidia_smi_log [\n{alone}]>\n<nvidia_smi_log>\n" in embedded
        assert max(map(len, alone.splitlines())) <= 100
    for branch, version in ("610", 13), ("580", 13), ("570", 12), ("525", 12), ("510", 11), ("450", 10):
        machine = f"t4,driver={branch}"
        assert smi(machine, "--dtd").startswith(f"<!-- nvsmi_device_v{version}.dtd -->\n"), branch
        assert f'SYSTEM "nvsmi_device_v{version}.dtd"' in smi(machine, "-q", "-x"), branch


main()
