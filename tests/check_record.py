#!/usr/bin/env python3
"""`gpulse sim record` writes down what a driver answers: the recording of a machine answers as the
machine does, and its own recording is the same file, byte for byte.

variants: asan
"""
import difflib
import json
import os
import re
import tempfile
from pathlib import Path

from tap import BUILD, good, gpulse, main, run, side_by_side, test

FOLDER = tempfile.TemporaryDirectory()
WORK = Path(FOLDER.name)
os.environ["GPULSE_SIM_STATE"] = str(WORK / "state")
os.environ["GPULSE_SIM_STRICT"] = "1"  # it makes no call that crashes a real library
BUILT_IN = sorted(p.stem for p in Path(BUILD, "sim/machines").glob("*.json"))


def record(machine, name, *more):
    """Records a machine into a file of that name; returns its path and the messages."""
    path = WORK / f"{name}.json"
    result = gpulse("--sim", machine, "--sim-still", "sim", "record", "-o", path, *more)
    good(result)
    return path, result.stderr


def load(path):
    return json.loads(Path(path).read_text())


def shown(machine, *words):
    """All that gpulse says of a machine, without the moment at which it says it."""
    result = gpulse("--sim", machine, "--sim-still", "--root", WORK, "query", *words, "-f", "json")
    assert result.returncode in (0, 6), result.stderr
    document = json.loads(result.stdout)
    document.pop("time")
    document.pop("host")
    for row in rows_of(document):
        for name in ("timestamp", "process.idle", "process.last_active"):
            row.pop(name, None)
            row.get("reasons", {}).pop(name, None)
    return document


def rows_of(document):
    return next(value for value in document.values() if isinstance(value, list))


def answers(machine):
    """What gpulse shows of it; the processes in no order, since a file has them list by list."""
    processes, devices = side_by_side(shown, [(machine, "*", "--processes"), (machine, "*", "--mig")])
    return devices, sorted(json.dumps(row) for row in rows_of(processes))


def changed(machine, change):
    """A built-in machine with a change, as a file."""
    document = load(Path(BUILD, "sim/machines", f"{machine}.json"))
    change(document)
    path = WORK / "changed.json"
    path.write_text(json.dumps(document))
    return path


def difference(one, other):
    """The lines that only one of two documents has."""
    texts = [json.dumps(d, indent=1, sort_keys=True).splitlines() for d in (one, other)]
    return "\n".join(list(difflib.unified_diff(*texts, lineterm="", n=2))[:40])


def round_trip(machine, name):
    first, messages = record(machine, f"{name}.1")
    (second, _), told, told_again = side_by_side(lambda function, *case: function(*case), [
        (record, first, f"{name}.2"), (answers, machine), (answers, first)])
    assert first.read_bytes() == second.read_bytes(), f"{machine}: the recordings differ"
    assert messages == "" and "notes" not in load(first), f"{machine}: {messages}"
    assert told == told_again, f"{machine}: its recording answers otherwise: {difference(told, told_again)}"
    return first


for built_in in (name for name in BUILT_IN if name != "sick"):  # a lost GPU cannot be asked
    def every_machine(machine=built_in):
        round_trip(machine, machine)
    every_machine.__name__ = f"the_recording_of_{built_in}_is_the_machine"
    test(every_machine)


@test
def there_were_machines_to_record():
    assert len(BUILT_IN) >= 12, BUILT_IN


@test
def older_and_newer_drivers_are_recorded_as_such():
    drivers = ("450", "470", "535.43", "535.98", "575", "610")
    paths = side_by_side(round_trip, [(f"h100x2,driver={driver}", f"driver-{driver}") for driver in drivers])
    for driver, path in zip(drivers, paths):
        assert load(path)["driver"]["version"].startswith(driver), path
        assert "missing" not in load(path), "the version alone says what is missing"


@test
def a_symbol_is_recorded_as_missing_or_present():
    def change(m):
        m["missing"] = ["nvmlDeviceGetFanSpeed", "nvmlDeviceGetRetiredPages"]
        m["present"] = ["nvmlDeviceGetHostname_v1"]
    machine = changed("h100", change)
    path = round_trip(machine, "symbols")
    assert load(path)["missing"] == load(machine)["missing"]
    assert load(path)["present"] == load(machine)["present"]
    assert "FanSpeed" not in load(path)["devices"][0]["answers"]


@test
def return_codes_are_kept_as_they_are():
    def change(m):
        answers = m["devices"][0]["answers"]
        answers.update(PowerUsage="NO_PERMISSION", Serial="UNKNOWN", EccMode="CORRUPTED_INFOROM",
                       ComputeRunningProcesses="NO_PERMISSION", Temperature="NOT_READY")
        m["devices"][0]["fields"]["82"] = "NO_DATA"
    machine = changed("h100", change)
    got = load(round_trip(machine, "codes"))["devices"]
    for key in ("PowerUsage", "Serial", "EccMode", "ComputeRunningProcesses", "Temperature"):
        assert got[0]["answers"][key] == load(machine)["devices"][0]["answers"][key], key
    assert got[0]["fields"]["82"] == "NO_DATA"
    assert got[1]["answers"]["PowerUsage"] > 0 and got[0]["processes"] == []


@test
def what_no_built_in_machine_has_is_recorded_too():
    others = {
        "Capabilities": 1,
        "BridgeChipInfo": {"type": 1, "firmware": 0xf0472900},
        "WorkloadPowerProfileCurrentProfiles": {"valid": "ff" + 62 * "0", "requested": "05" + 60 * "0" + "40",
                                                "enforced": 64 * "0"},
        "VgpuHeterogeneousMode": "Disabled",
        "AutoBoostedClocksEnabled": {"current": "Disabled", "default": "Enabled"},
    }

    def change(m):
        m["devices"][0]["answers"].update(others)
        m["devices"][1]["answers"].update(BridgeChipInfo={"type": 0})
    got = load(round_trip(changed("h100", change), "others"))["devices"][0]["answers"]
    for key, answer in others.items():
        assert got[key] == answer, key


@test
def samples_are_recorded_kind_by_kind():
    samples = [{"kind": 0, "count": 7, "duration_us": 123456789012, "max": 70000, "min": 9, "sum": 100001},
               {"kind": 1, "count": 0}, {"kind": 2, "count": "NO_PERMISSION"},
               {"kind": 7, "count": 1, "duration_us": 0, "max": 5, "min": 5, "sum": 5}, {"kind": 8}]

    def change(m):
        m["workload"] = []
        m["devices"][0]["lists"]["samples"] = samples
    path = round_trip(changed("h100", change), "samples")
    recorded = {row["kind"]: row for row in load(path)["devices"][0]["lists"]["samples"]}
    assert len(recorded) == 10 and recorded[3]["count"] == 120, recorded
    for row in samples:
        assert recorded[row["kind"]] == row, row
    assert shown(path, "*", "--rows", "samples") == shown(WORK / "changed.json", "*", "--rows", "samples")


@test
def types_shares_and_instances_of_processes_are_kept():
    def change(m):
        m["workload"] = []
        m["devices"][0]["processes"] = [
            {"pid": 100, "type": kind, "name": kind, "memory_bytes": 1 << 20, "util": 5 + i}
            | {"pid": 100 + i} for i, kind in enumerate(("C", "C+G", "M+C", "G", "M"))]
        m["devices"][0]["processes"].append({"pid": 99, "type": "M", "memory_bytes": None})
    machine = changed("h100", change)
    path = round_trip(machine, "processes")
    assert load(path)["devices"][0]["processes"] == load(machine)["devices"][0]["processes"]
    mig = load(round_trip("a100-mig", "mig"))["devices"][0]
    assert len(mig["mig"]) == 4 and {p["gpu_instance"] for p in mig["processes"]} >= {3}


@test
def a_call_that_hangs_is_noted_and_the_rest_goes_on():
    good(gpulse("sim", "fault", "-m", "h100x2", "--gpu", "1", "hang=1h:nvmlDeviceGetFanSpeed"))
    path, messages = record("h100x2", "hang", "--timeout", "2s")
    good(gpulse("sim", "fault", "-m", "h100x2", "clear"))
    devices = load(path)["devices"]
    assert devices[1]["answers"]["FanSpeed"] == "TIMEOUT", devices[1]["answers"]["FanSpeed"]
    assert devices[1]["answers"]["EnforcedPowerLimit"] == 700000
    assert devices[0]["answers"]["FanSpeed"] == "NOT_SUPPORTED"
    assert load(path)["notes"] == ["GPU 1: nvmlDeviceGetFanSpeed did not respond"]
    assert messages == "gpulse sim: note: GPU 1: nvmlDeviceGetFanSpeed did not respond\n", messages


@test
def a_field_without_an_answer_among_others_is_asked_for_alone():
    good(gpulse("--sim", "h100x1", "sim", "fault", "untouched"))
    try:
        path, _ = record("h100x1", "untouched")
    finally:
        good(gpulse("--sim", "h100x1", "sim", "fault", "clear"))
    whole, _ = record("h100x1", "touched")
    assert load(path)["devices"][0]["fields"] == load(whole)["devices"][0]["fields"] != {}
    assert load(path).get("notes") == load(whole).get("notes")


@test
def a_gpu_that_always_hangs_is_given_up():
    good(gpulse("sim", "fault", "-m", "h100x2", "--gpu", "0", "hang=1h:nvmlDeviceGetP"))
    path, messages = record("h100x2", "stuck", "--timeout", "1s")
    good(gpulse("sim", "fault", "-m", "h100x2", "clear"))
    devices = load(path)["devices"]
    assert "the rest was skipped" in messages and len(messages.splitlines()) <= 5, messages
    assert devices[0]["answers"]["Name"] == "NVIDIA H100 80GB HBM3"
    assert devices[1]["answers"]["PowerUsage"] > 0


@test
def a_gpu_without_a_handle_keeps_its_place():
    good(gpulse("sim", "fault", "-m", "h100x4", "--gpu", "2", "lost"))
    path, messages = record("h100x4", "lost")
    good(gpulse("sim", "fault", "-m", "h100x4", "clear"))
    document = load(path)
    assert document["faults"] == ["2:error=GPU_IS_LOST:nvmlDeviceGetHandleBy"]
    assert "GPU 2: no handle (GPU_IS_LOST)" in messages
    status = gpulse("--sim", path, "status")
    assert status.returncode == 6 and "lost: reset or reboot needed" in status.stdout, status.stdout


@test
def redaction_takes_out_who_the_machine_is():
    kept, _ = record("a100-mig", "kept")
    path, _ = record("a100-mig", "redacted", "--redact")
    before, after = load(kept)["devices"][0], load(path)["devices"][0]
    text = path.read_text()
    secrets = [before["uuid"], before["answers"]["Serial"], *(m["uuid"] for m in before["mig"]),
               *(p["name"] for p in before["processes"])]
    assert len(secrets) >= 8
    for secret in secrets:
        assert secret not in text, secret
    identities = [after["uuid"], *(m["uuid"] for m in after["mig"])]
    assert len(set(identities)) == 5
    for identity in identities:
        assert re.fullmatch(r"(GPU|MIG)-0{8}-0{4}-0{4}-0{4}-0{11}\d", identity), identity
    assert after["answers"]["PowerUsage"] == before["answers"]["PowerUsage"]
    assert good(gpulse("--sim", path, "query", "name", "-f", "csv")).count("A100") == 1


@test
def redaction_knows_the_names_of_boards_racks_and_fabrics():
    kept, redacted = (load(record("gb200", name, *more)[0])["devices"][1]["answers"]
                      for name, more in (("kept", []), ("redacted", ["--redact"])))
    assert kept["PlatformInfo"]["chassis"] == "1820000000001"
    for key, member in (("Serial", None), ("Pdi", None), ("PlatformInfo", "chassis"),
                        ("PlatformInfo", "fabric_guid"), ("GpuFabricInfo", "cluster_uuid")):
        pair = [a[key][member] if member else a[key] for a in (kept, redacted)]
        assert pair[0] != pair[1] and len(pair[0]) == len(pair[1]), (key, member, pair)
    assert kept["PlatformInfo"]["slot"] == redacted["PlatformInfo"]["slot"]
    assert kept["BoardPartNumber"] == redacted["BoardPartNumber"]


@test
def latency_is_measured_on_request():
    good(gpulse("sim", "fault", "-m", "t4", "slow=30ms:nvmlDeviceGetFanSpeed"))
    path, _ = record("t4", "slow", "--latency")
    good(gpulse("sim", "fault", "-m", "t4", "clear"))
    assert load(path)["latency_us"]["nvmlDeviceGetFanSpeed"] >= 30000
    assert "latency_us" not in load(record("t4", "quick")[0])
    good(gpulse("--sim", path, "status"))


@test
def it_says_what_is_wrong():
    def refused(status, words, *command):
        result = gpulse(*command)
        assert result.returncode == status, (command, result.returncode, result.stderr)
        assert re.search(words, result.stderr), result.stderr
    refused(4, "cannot load /nosuch: ", "sim", "record", "--library", "/nosuch")
    refused(4, "unknown simulated machine 'nosuch'", "sim", "record", "-m", "nosuch")
    refused(2, "unexpected argument", "sim", "record", "-m", "t4", "file.json")
    refused(1, "cannot create '/nosuch/file'", "sim", "record", "-m", "t4", "-o", "/nosuch/file")
    good(gpulse("sim", "fault", "-m", "t4", "mismatch"))
    refused(4, "nvmlInit_v2 returns LIB_RM_VERSION_MISMATCH", "sim", "record", "-m", "t4")
    good(gpulse("sim", "fault", "-m", "t4", "clear"))


@test
def another_library_is_recorded_by_its_path():
    library = Path(BUILD).resolve() / "sim/libnvidia-ml.so.1"
    path = WORK / "library.json"
    good(run(os.environ.get("GPULSE", "build/gpulse"), "sim", "record", "--library", library, "-o",
             path, env=dict(os.environ, GPULSE_SIM="t4", GPULSE_SIM_STILL="1")))
    assert path.read_bytes() == record("t4", "by-name")[0].read_bytes()


main()
