#!/usr/bin/env python3
"""`-q` and `--query-gpu` of one machine. Where data/captures has both from the same moment, one simulated machine is made
of the two, and both outputs must come out of it as they were captured. What nvidia-smi prints in one of them need not
be what it prints in the other.

variants: asan
"""
import json
import os
import re
import tempfile
from pathlib import Path

from captures import CAPTURES
from tap import good, gpulse, main, test

PRIVATE = {"GPU Part Number", "Sparse Operation Mode", "Host Max"}  # docs/smi.md
PRIVATE_FIELDS = {"pcie.link.gen.hostmax"}
NO_FUNCTION = "[Function Not Found]"  # Windows, bbx.time_run: [N/A] here, as everywhere else

# Lines of -q whose value moves between two calls: theirs is then that of the CSV, a moment later.
MOVING = re.compile(r"(Tx|Rx) Throughput|Fan Speed|Performance State|Idle|SW Power Cap(ping)?|Used|Free|GPU|Memory|Encoder|Decoder|"
                    r"Average (FPS|Latency)|GPU Current Temp|(GPU )?(Average|Instantaneous) Power Draw|Graphics|SM|Video|"
                    r"Memory Current Temp|GPU T.Limit Temp")


def imported(path):
    return json.loads(good(gpulse("sim", "import", path)))


def merge(kept, more):
    """What the CSV says goes before what -q says, unless it says nothing."""
    if isinstance(kept, dict) and isinstance(more, dict):
        return {key: merge(kept[key], more[key]) if key in kept and key in more else more.get(key, kept.get(key))
                for key in {**kept, **more}}
    return kept if more == "NOT_SUPPORTED" else more


class Machine:
    def __init__(self, document):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "m.json"
        self.path.write_text(json.dumps(document))

    def smi(self, *words):
        env = dict(os.environ, GPULSE_SIM_STATE=self.folder.name, TZ="UTC")
        return good(gpulse("smi", *words, "--sim", self.path, "--sim-still", "--root", self.folder.name, "--timeout", "60", env=env))

    def row(self, names):
        line = self.smi(f"--query-gpu={','.join(names)}", "--format=csv,noheader").rstrip("\n")
        return dict(zip(names, line.split(", ")))

    def report(self):
        """{path of labels: value} of the first GPU"""
        found, path = {}, []
        for line in self.smi("-q").splitlines():
            level = (len(line) - len(line.lstrip())) // 4
            label, _, value = line.strip().partition(" : ")
            path[level:] = [label.strip()]
            found.setdefault("/".join(path[1:]), value)
        return found


def document_of(name):
    document = imported(CAPTURES / f"q__{name}.txt")
    csv = imported(CAPTURES / f"query-gpu__{name}.txt")
    assert len(document["devices"]) == len(csv["devices"])
    for device, more in zip(document["devices"], csv["devices"]):
        for part in ("answers", "fields"):
            device[part] = merge(device.get(part, {}), more.get(part, {}))
    return document


def label(line):
    return line.partition(" : ")[0].strip()


@test
def both_outputs_of_one_machine():
    names = [path.stem.removeprefix("q__") for path in sorted(CAPTURES.glob("q__*.txt"))
             if (CAPTURES / path.name.replace("q__", "query-gpu__")).exists()]
    assert len(names) == 15, names
    for name in names:
        machine = Machine(document_of(name))
        captured = (CAPTURES / f"q__{name}.txt").read_text().rstrip("\n").split("\n")
        printed = machine.smi("-q").rstrip("\n").split("\n")
        assert len(captured) == len(printed), (name, len(captured), len(printed))
        moved, wrong = 0, []
        for a, b in zip(captured, printed):
            if a == b or a.startswith("Timestamp") or label(a) == label(b) in PRIVATE:
                continue
            moved += 1
            if label(a) != label(b) or not MOVING.fullmatch(label(a)) or "N/A" in a + b:
                wrong.append(f"captured {a!r}, printed {b!r}")
        assert not wrong, "\n".join([name, *wrong])
        assert moved < 24, (name, moved)

        header, row = (CAPTURES / f"query-gpu__{name}.txt").read_text().split("\n")[:2]
        fields = [re.sub(r" \[.*", "", column) for column in header.split(", ")]
        theirs, ours = dict(zip(fields, row.split(", "))), machine.row(fields)
        wrong = {field: (theirs[field], ours[field]) for field in fields if theirs[field] != ours[field] and field != "timestamp"
                 and field not in PRIVATE_FIELDS and theirs[field] != NO_FUNCTION}
        assert not wrong, (name, wrong)
        print(f"# {name}: {len(captured)} lines, of which {moved} moved, {len(fields)} fields")


SRAM = {"ECC Errors/Volatile/SRAM Uncorrectable Parity": "ecc.errors.uncorrected.volatile.sram.parity",
        "ECC Errors/Aggregate/SRAM Threshold Exceeded": "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",
        "ECC Errors/Aggregate Uncorrectable SRAM Sources/SRAM L2": "ecc.errors.uncorrected.aggregate.sram.l2"}


@test
def counters_of_a_gpu_without_ecc_are_in_the_csv_only():
    machine = Machine(document_of("rtx-4080-super_595.71.05__idle"))
    row, report = machine.row(list(SRAM.values())), machine.report()
    assert [report[name] for name in SRAM] == ["N/A"] * 3 and list(row.values()) == ["0", "No", "0"], (report, row)
    assert report["ECC Errors/Channel Repair Pending"] == "No"
    # with ECC switched off, the mode is known
    document = document_of("h100-80gb-hbm3_590.48.01__idle")
    document["devices"][0]["answers"]["EccMode"].update(current="Disabled")
    report = Machine(document).report()
    assert [report[name] for name in SRAM] == ["0", "No", "0"], report


@test
def a_platform_has_rows_unless_the_gpu_is_connected_directly():
    document = document_of("h100-80gb-hbm3_590.48.01__idle")
    answers = document["devices"][0]["answers"]
    rows = ["Slot Number", "Tray Index", "Host ID", "Peer Type", "GPU Fabric GUID"]
    for peer, chassis, guid, wanted in (
            (0, "1820000000001", "0x0000000000000001", ["N/A", "N/A", "N/A", "N/A", "N/A"]),
            (1, "1820000000001", "0x0000000000000001", ["0", "0", "1", "Switch Connected", "0x0000000000000001"]),
            (1, "NOT_SUPPORTED", "NOT_SUPPORTED", ["0", "0", "1", "Switch Connected", "N/A"])):
        answers["PlatformInfo"].update(peer=peer, chassis=chassis, fabric_guid=guid)
        report = Machine(document).report()
        assert [report[f"Platform Info/{row}"] for row in rows] == wanted, (peer, report)


@test
def one_counter_that_a_capture_lacks_does_not_refuse_the_others():
    document = document_of("h100-80gb-hbm3_590.48.01__idle")
    status = document["devices"][0]["answers"]["SramEccErrorStatus"]
    status.update(l2="NOT_SUPPORTED", sm=7)
    fields = ["ecc.errors.uncorrected.aggregate.sram.l2", "ecc.errors.uncorrected.aggregate.sram.sm"]
    assert list(Machine(document).row(fields).values()) == ["0", "7"]
    status.update({name: "NOT_SUPPORTED" for name in status})
    assert list(Machine(document).row(fields).values()) == ["[N/A]", "[N/A]"]


@test
def the_form_of_the_errors_follows_the_architecture():
    forms = {"Pascal": "ECC Errors/Volatile/Single Bit/Device Memory", "Turing": "ECC Errors/Volatile/SRAM Uncorrectable",
             "Ampere": "ECC Errors/Volatile/SRAM Uncorrectable Parity", "Hopper": "ECC Errors/Volatile/SRAM Uncorrectable Parity"}
    document = document_of("h100-80gb-hbm3_590.48.01__idle")
    device = document["devices"][0]
    for device_id in ("0x233010DE", "0x1B0610DE"):  # Hopper's, Pascal's
        for architecture, line in forms.items():
            device["pci"]["device_id"] = device_id
            device["answers"]["Architecture"] = architecture
            report = Machine(document).report()
            others = {form for form in forms.values() if form in report}
            assert others == {line}, (device_id, architecture, others)
    device["answers"]["Architecture"] = "NOT_SUPPORTED"  # then the id decides, here Pascal's
    assert forms["Pascal"] in Machine(document).report()


main()
