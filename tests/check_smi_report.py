#!/usr/bin/env python3
"""`gpulse smi -q` and `gpulse smi -q -x` against what real nvidia-smi printed: every capture in
data/captures becomes a simulated machine, and the whole document must come out again.

XML of drivers 525 and later (DTD v12, v13) and the text: equal line by line, blanks included, but
for the time stamp. Older XML: every element is there with its value. Lines that may differ stand in
the lists below with their reason; each entry must occur.

variants: asan
"""
import difflib
import os
import re
import tempfile
import xml.etree.ElementTree as ET
from collections import Counter

from captures import CAPTURES
from tap import good, gpulse, main, test

NO_CALL = "no public call of the driver tells it"
OLD_CALL = "nvidia-smi knew it before there was a public call"

# (capture or None for all, what the line is about) and why our line may differ from it.
ACCEPTED_XML = {
    (None, "gpu_part_number"): NO_CALL,
    (None, "max_host_link_gen"): "a private call; gpulse asks the kernel of this machine, which the capture does not hold",
    (None, "graphics_volt"): NO_CALL,
    (None, "sparse_operation_mode"): NO_CALL,
    ("telegraf_quadro-p2000-v12", "gpu_module_id"): OLD_CALL + ", which came with 535",
    ("netdata_rtx-4090-driver-535", "addressing_mode"): OLD_CALL + ", which came with 570",
    ("telegraf_a100-sxm4-v12", "addressing_mode"): OLD_CALL + ", which came with 570",
    ("netdata_rtx-4090-driver-535", "gpu_temp_tlimit"): OLD_CALL + ", which came with 570",
    ("k8stestinfra_gb200", "unrepairable_memory"): OLD_CALL + "; the simulated driver has it from 590 on",
    ("h100-80gb-hbm3_580.159.04__load", "unrepairable_memory"): OLD_CALL + "; the simulated driver has it from 590 on",
    ("telegraf_a100-sxm4-v12", "attached_gpus"): "the capture was cut: it says 4 GPUs and contains 1",
}

ACCEPTED_TEXT = {
    (None, "GPU Part Number"): NO_CALL,
    (None, "Host Max"): "a private call; gpulse asks the kernel of this machine",
    (None, "Sparse Operation Mode"): NO_CALL,
    ("q__tesla-t4_530.30.02", "Module ID"): OLD_CALL + ", which came with 535",
    ("q__h100-80gb-hbm3_580.159.04__idle", "Unrepairable Memory"): OLD_CALL + "; the simulated driver has it from 590 on",
    ("q__h100-80gb-hbm3_580.159.04__load", "Unrepairable Memory"): OLD_CALL + "; the simulated driver has it from 590 on",
}

used = set()


def accept(accepted, capture, subject):
    for key in ((capture, subject), (None, subject)):
        if key in accepted:
            used.add(key)
            return True
    return False


def report(path, *words):
    """What gpulse smi prints of the machine that this capture makes."""
    with tempfile.TemporaryDirectory() as folder:
        machine = f"{folder}/m.json"
        good(gpulse("sim", "import", path, "-o", machine))
        os.mkdir(f"{folder}/root")
        env = dict(os.environ, GPULSE_SIM_STATE=folder, TZ="UTC")
        return good(gpulse("smi", *words, "--sim", machine, "--sim-still", "--root", f"{folder}/root",
                           "--timeout", "60", env=env))


def compare(name, expected, printed, subject_of, accepted):
    """Lines that differ pair by pair, without the accepted ones."""
    differing = []
    matcher = difflib.SequenceMatcher(None, expected, printed, autojunk=False)
    for kind, a1, a2, b1, b2 in matcher.get_opcodes():
        if kind == "equal":
            continue
        pairs = list(zip(expected[a1:a2], printed[b1:b2])) if a2 - a1 == b2 - b1 else None
        for want, got in pairs or [("\n".join(expected[a1:a2]), "\n".join(printed[b1:b2]))]:
            same = pairs and subject_of(want) == subject_of(got)
            if not (same and accept(accepted, name, subject_of(want))):
                differing.append(f"captured {want!r}, printed {got!r}")
    left = sum(1 for a, b in zip(expected, printed) if a != b) if len(expected) == len(printed) else "?"
    print(f"# {name}: " + ("equal" if expected == printed else
                           f"{len(expected)} lines, {left} differ as accepted" if not differing else
                           f"{len(differing)} lines differ"))
    assert not differing, "\n".join(["", *differing[:40]])


# ---- XML ----

def xml_captures():
    for path in sorted(CAPTURES.glob("qx__*.xml")):
        version = re.search(r"nvsmi_device_v(\d+)", path.read_text())
        yield path, path.stem.removeprefix("qx__"), int(version.group(1)) if version else 10


def lines_of_xml(text, is_bare):
    """The lines without the time stamp; bare ones are those of a publisher who laid them out anew."""
    text = re.sub(r"<timestamp>[^<]*</timestamp>", "<timestamp/>", text)
    if is_bare:
        text = re.sub(r'<\?xml version="1.0"[^?]*\?>', "<?xml?>", text)
        text = re.sub(r"<(\w+) ?/>", r"<\1>\n</\1>", text)
        text = re.sub(r"\s*\n\s*(</clocks_event_reason_\w+>)", r"\1", text)
        return [line.strip() for line in text.splitlines() if line.strip()]
    return text.split("\n")


def tag_of(line):
    found = re.match(r"\s*<(\w+)>.*</\1>$", line)
    return found.group(1) if found else None


@test
def xml_of_drivers_since_525_comes_out_as_it_was_captured():
    count = 0
    for path, name, version in xml_captures():
        if version < 12:
            continue
        captured = path.read_text()
        is_bare = not captured.startswith('<?xml version="1.0" ?>\n') or "\n  " in captured
        if not is_bare:
            captured = captured.rstrip("\n") + "\n"
        compare(name, lines_of_xml(captured, is_bare), lines_of_xml(report(path, "-q", "-x"), is_bare), tag_of,
                ACCEPTED_XML)
        count += 1
    assert count == 11, count


def leaves(element, path=""):
    """(path, text) of every element without children."""
    for child in element:
        below = f"{path}/{child.tag}"
        if len(child):
            yield from leaves(child, below)
        elif child.tag != "timestamp":
            yield below, (child.text or "").strip()


# Elements of older XML that gpulse does not print, or not so.
ACCEPTED_OLD = {
    (None, "gpu_part_number"): NO_CALL,
    (None, "max_host_link_gen"): "a private call",
    (None, "graphics_volt"): NO_CALL,
    (None, "gpu_module_id"): OLD_CALL + ", which came with 535",
    ("telegraf_gtx-1070-ti", "power_draw"): "the excerpt names no driver: it is taken for a new one",
}


@test
def every_element_of_older_xml_is_there_with_its_value():
    for path, name, version in xml_captures():
        if version >= 12:
            continue
        captured = Counter(leaves(ET.parse(path).getroot()))
        printed = Counter(leaves(ET.fromstring(report(path, "-q", "-x"))))
        missing = [(where, text) for where, text in (captured - printed).elements()
                   if not accept(ACCEPTED_OLD, name, where.rsplit("/", 1)[1])]
        print(f"# {name}: {sum(captured.values())} elements, {len(missing)} missing")
        assert not missing, f"{name}: {missing[:40]}"


# ---- text ----

def label_of(line):
    found = re.match(r"\s*(.*?) *: ", line)
    return found.group(1) if found else None


@test
def the_text_comes_out_as_it_was_captured():
    count = 0
    for path in sorted(CAPTURES.glob("q__*.txt")):
        captured = re.sub(r"(?m)^(Timestamp +:).*", r"\1", path.read_text()).rstrip("\n")
        printed = re.sub(r"(?m)^(Timestamp +:).*", r"\1", report(path, "-q")).rstrip("\n")
        compare(path.stem, captured.split("\n"), printed.split("\n"), label_of, ACCEPTED_TEXT)
        count += 1
    assert count == 18, count


@test
def chosen_sections_come_out_as_they_were_captured():
    """With the samples that the driver keeps."""
    names = ("q-d-POWER__gpu180W_595.71.05", "q-d-ACCOUNTING__x3_525.60.13",
             "q-d-PAGE_RETIREMENT__azure-8gpu_535.86.10")
    for name in names:
        path = CAPTURES / f"{name}.txt"
        captured = "\n" + path.read_text()[path.read_text().index("==============NVSMI"):]
        printed = report(path, "-q", "-d", name.split("-")[2].split("__")[0])
        captured, printed = (re.sub(r"(?m)^(Timestamp +:).*", r"\1", t).rstrip("\n").split("\n")
                             for t in (captured, printed))
        compare(name, captured, printed, label_of, {})


@test
def every_accepted_difference_occurs():
    unused = {*ACCEPTED_XML, *ACCEPTED_TEXT, *ACCEPTED_OLD} - used
    assert not unused, f"no longer needed: {sorted(map(str, unused))}"
    for (capture, subject), reason in {**ACCEPTED_XML, **ACCEPTED_TEXT, **ACCEPTED_OLD}.items():
        print(f"# accepted: {capture or 'all'}: {subject}: {reason}")


main()
