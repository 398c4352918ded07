#!/usr/bin/env python3
"""`gpulse sim verify`: nvidia-smi is played by `gpulse smi` on another simulated machine, with differences planted.

variants: asan
"""
import json
import os
import signal
import tempfile
import time
from pathlib import Path

from tap import GPULSE, good, gpulse, main, run, test

FOLDER = Path(tempfile.mkdtemp(prefix="gpulse-verify-"))
FORMS = ["-q", "--query-gpu", "--help-query-gpu", "-L", "the table", "gpulse query"]
# Values of two machines move in two ways.
ENV = dict(os.environ, GPULSE_SIM_STATE=str(FOLDER), COLUMNS="", GPULSE_SIM_STILL="1")


def machine(name, change=None, driver=None):
    """A file of two H100s, changed."""
    made = json.loads(good(gpulse("sim", "record", "-m", "h100x2" + (f",driver={driver}" if driver else ""), env=ENV)))
    if change:
        change(made)
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(made))
    return path


PLAIN = machine("plain")


def play(name, script):
    """An executable that plays nvidia-smi."""
    path = FOLDER / name
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return path


def smi(on, edit="cat", name="nvidia-smi"):
    """gpulse smi on this machine, its output edited; its exit status is kept."""
    return play(name, f"{{ GPULSE_SIM={on} {os.path.abspath(GPULSE)} smi --native \"$@\"; echo $? >&3; }} 3>\"$0.status\" | {edit}\n"
                      "exit $(cat \"$0.status\")\n")


def verify(program, *words, on=PLAIN, **more):
    return gpulse("--sim", on, "sim", "verify", "--nvidia-smi", program, *words, env=dict(ENV, **more))


def differences(program, *words, status=1, **more):
    """What is found, by (output, name); the document too."""
    result = verify(program, "-f", "json", *words, **more)
    assert result.returncode == status, (result.returncode, result.stdout, result.stderr)
    document = json.loads(result.stdout)
    return {(row["of"], row["name"]): row for row in document["different"]}, document


@test
def the_same_machine_is_equal():
    found, document = differences(smi(PLAIN), status=0, GPULSE_SIM_STILL="")
    assert not found and document["score"] == 100, document
    assert document["schema"] == "gpulse.verify/1" and document["driver"] == "580.105.08" and document["host"] is None
    assert [row["of"] for row in document["outputs"]] == FORMS
    assert document["compared"] == document["equal"] == sum(row["compared"] for row in document["outputs"]) > 1000
    assert sum(row["moving"] for row in document["outputs"]) > 0, "the simulated values should move"
    text = good(verify(smi(PLAIN)))
    assert f"100.00 %: {document['equal']} of {document['equal']} values are equal" in text, text
    assert "Different" not in text and "Known" not in text, text


@test
def a_planted_value_is_found_in_every_output_that_has_it():
    other = machine("vbios", lambda m: m["devices"][1]["answers"].update(VbiosVersion="96.00.99.00.02"))
    found, document = differences(smi(other))
    assert set(found) == {("-q", "GPU 1 / VBIOS Version"), ("--query-gpu", "GPU 1 / vbios_version"),
                          ("gpulse query", "GPU 1 / vbios_version")}, found
    assert 99.5 <= document["score"] < 100 and document["compared"] - document["equal"] == 3, document
    row = found["-q", "GPU 1 / VBIOS Version"]
    assert (row["nvidia_smi"], row["gpulse"]) == ("96.00.99.00.02", "96.00.99.00.01"), row
    result = verify(smi(other))
    assert result.returncode == 1
    assert "  -q: GPU 1 / VBIOS Version\n      nvidia-smi  96.00.99.00.02\n      gpulse      96.00.99.00.01\n" in result.stdout


@test
def a_value_that_only_one_of_them_has_is_found():
    def change(m):
        m["devices"][0]["answers"]["ComputeMode"] = "NOT_SUPPORTED"
    found, _ = differences(smi(machine("mode", change)))
    assert set(found) >= {("-q", "GPU 0 / Compute Mode"), ("--query-gpu", "GPU 0 / compute_mode"), ("gpulse query", "GPU 0 / compute_mode")}
    row = found["gpulse query", "GPU 0 / compute_mode"]
    assert (row["nvidia_smi"], row["gpulse"]) == ("[N/A]", "Default"), row


@test
def a_size_of_another_machine_is_found_with_its_unit():
    def change(m):
        m["devices"][0]["answers"]["MemoryInfo"]["total"] += 2 << 20
    found, _ = differences(smi(machine("memory", change)))
    assert ("gpulse query", "GPU 0 / memory.total") in found and ("-q", "GPU 0 / FB Memory Usage / Total") in found, found
    assert any(of == "the table" for of, _ in found), found


@test
def a_line_that_is_missing_or_moved_is_found():
    found, _ = differences(smi(PLAIN, "sed '/Performance State/d'"))
    row = found.pop(("-q", "GPU 0 / Performance State"))
    assert row["nvidia_smi"] is None and row["gpulse"] == "P0", row
    assert set(found) == {("-q", "GPU 1 / Performance State")}, found
    # the fan's line behind the next one
    found, _ = differences(smi(PLAIN, "sed '/^    Fan Speed/{h;d};/^    Performance State/{G}'"))
    assert set(found) == {("-q", "order of the lines")}, found


@test
def blanks_matter_in_the_table():
    found, _ = differences(smi(PLAIN, "sed 's/Bus-Id          Disp/Bus-Id         Disp/'"))
    assert set(found) == {("the table", "line 005")}, found


@test
def a_field_that_only_nvidia_smi_lists_is_found():
    found, _ = differences(smi(PLAIN, "sed '/^\"compute_mode\"/s/.*/\"compute_mood\"/'"))
    assert set(found) == {("--help-query-gpu", "compute_mode"), ("--help-query-gpu", "compute_mood")}, found


@test
def a_value_by_a_private_call_is_known_and_does_not_count():
    found, document = differences(smi(PLAIN, "sed 's/GPU Part Number *: N.A/GPU Part Number : 2330-886-A1/'"), status=0)
    assert not found and document["score"] == 100, found
    assert {row["name"] for row in document["known"]} == {"GPU 0 / GPU Part Number", "GPU 1 / GPU Part Number"}
    assert all(row["why"] for row in document["known"])
    # a wrong value is no known difference
    found, document = differences(smi(PLAIN, "sed 's/Sparse Operation Mode *: N.A/Sparse Operation Mode : On/'"), status=0)
    found, document = differences(smi(PLAIN, "sed 's/FRU Part Number *: N.A/FRU Part Number : 1/;/VBIOS Version/s/96/97/'"))
    assert set(found) == {("-q", "GPU 0 / VBIOS Version"), ("-q", "GPU 1 / VBIOS Version")}


@test
def identities_are_compared_and_hidden():
    uuid = "GPU-3a5b7c9d-1111-2222-3333-444455556666"

    def change(m):
        m["devices"][0].update(uuid=uuid)
        m["devices"][0]["answers"]["Serial"] = "1650000000777"
        m["devices"][0]["pci"]["bus_id"] = "00000000:54:00.0"
    program = smi(machine("identities", change))
    for form in ("text", "json"):
        result = verify(program, "-f", form)
        assert result.returncode == 1
        for secret in (uuid[4:], "1650000000777", "1650000000001", "00000000:54", "00000000:53"):
            assert secret not in result.stdout, (secret, result.stdout)
    found, _ = differences(program)
    assert {("-q", "GPU 0 / GPU UUID"), ("-q", "GPU 0 / Serial Number"), ("--query-gpu", "GPU 0 / pci.bus_id"), ("-L", "line 001")} <= set(found)
    found, _ = differences(program, "--identities")
    assert found["-q", "GPU 0 / GPU UUID"]["nvidia_smi"] == uuid
    assert found["--query-gpu", "GPU 0 / pci.bus_id"]["gpulse"] == "00000000:53:00.0"


@test
def names_of_processes_are_hidden_and_those_of_gpus_are_not():
    def change(m):
        m["devices"][0]["answers"]["Name"] = "NVIDIA H100 NVL"
        m["devices"][1]["processes"][0]["name"] = "/home/alice/secretproject/run.py"
    found, document = differences(smi(machine("names", change)))
    assert found["-q", "GPU 0 / Product Name"]["nvidia_smi"] == "NVIDIA H100 NVL", found
    assert ("-q", "GPU 1 / Processes / Process ID / Name") in found, found
    assert "alice" not in json.dumps(document) and "secretproject" not in json.dumps(document), document
    found, _ = differences(smi(machine("names", change)), "--identities")
    assert "secretproject" in found["-q", "GPU 1 / Processes / Process ID / Name"]["nvidia_smi"]


@test
def another_exit_status_is_found():
    found, _ = differences(play("status", f'GPULSE_SIM={PLAIN} {os.path.abspath(GPULSE)} smi "$@"\n[ "$1" != -L ] || exit 14\n'))
    assert set(found) == {("-L", "exit status")} and found["-L", "exit status"]["nvidia_smi"] == "14", found


@test
def a_program_that_hangs_is_ended():
    pid = FOLDER / "pid"
    program = play("hangs", f'[ "$1" = -q ] || exit 0\nsleep 1000 &\necho $! >{pid}\nwait\n')
    result = verify(program, "--timeout", "500ms")
    assert result.returncode == 4 and "did not end in 500 ms" in result.stderr and not result.stdout, result.stderr
    assert str(program) in result.stderr
    number = int(pid.read_text())
    for _ in range(100):  # its child is killed too, and reaped by somebody else
        state = Path(f"/proc/{number}/stat")
        if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            break
        time.sleep(0.1)
    else:
        os.kill(number, signal.SIGKILL)
        raise AssertionError("the child of nvidia-smi still runs")


@test
def a_program_that_prints_something_else_is_refused():
    for name, script in (("rubbish", "printf 'what \\033[31m\\0377 is this\\n'"), ("empty", "exit 9"),
                         ("endless", "exec yes")):
        result = verify(play(name, script))
        assert result.returncode in (1, 2) and not result.stdout, (name, result)
        assert name in result.stderr and "\x1b" not in result.stderr, result.stderr
    result = verify(play("rubbish", "printf 'what \\033[31m is this\\n'; exit 3"))
    assert result.returncode == 2 and "(exit status 3): -q: not an output of nvidia-smi; it begins with 'what \\x1b[31m is this'" in result.stderr


@test
def without_nvidia_smi_the_error_says_so():
    empty = FOLDER / "empty-path"
    empty.mkdir()
    link = empty / "nvidia-smi"
    for path in (str(empty), ".:relative:", ""):
        result = run(os.path.abspath(GPULSE), "--sim", PLAIN, "sim", "verify", env=dict(ENV, PATH=path), cwd=empty)
        assert result.returncode == 4 and "no nvidia-smi in PATH" in result.stderr and "--nvidia-smi FILE" in result.stderr, result
    result = verify(empty / "none")
    assert result.returncode == 4 and "is not an executable file" in result.stderr, result
    link.symlink_to(os.path.abspath(GPULSE))  # gpulse in nvidia-smi's place is not compared with itself
    result = run(os.path.abspath(GPULSE), "--sim", PLAIN, "sim", "verify", env=dict(ENV, PATH=str(empty)))
    assert result.returncode == 4, result
    result = verify(link)
    assert result.returncode == 2 and "is gpulse itself" in result.stderr, result


@test
def the_one_in_path_is_found():
    folder = FOLDER / "bin"
    folder.mkdir()
    smi(PLAIN).rename(folder / "nvidia-smi")
    env = dict(ENV, PATH=f"{folder}:{os.environ['PATH']}")
    text = good(run(os.path.abspath(GPULSE), "--sim", PLAIN, "sim", "verify", "--identities", env=env))
    assert f"against {folder}/nvidia-smi, driver 580.105.08" in text, text
    text = good(run(os.path.abspath(GPULSE), "--sim", PLAIN, "sim", "verify", env=env))
    assert "against nvidia-smi, driver 580.105.08" in text, text  # a folder may be named after somebody


@test
def every_driver_is_equal_to_itself():
    for driver in ("470", "535", "590", "610"):
        path = machine(f"driver-{driver}", driver=driver)
        found, _ = differences(smi(path), status=0, on=path)
        assert not found, (driver, found)


main()
