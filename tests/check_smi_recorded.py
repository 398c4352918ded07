#!/usr/bin/env python3
"""All that a real nvidia-smi printed for 290 command lines, good and wrong ones, against `gpulse smi` on the record that
`gpulse sim record` made of the same driver and GPU minutes before. Numbers that moved meanwhile may differ, the words
and the exit status may not. Where nvidia-smi prints its help, gpulse prints its own.

variants: asan
"""
import json
import os
import shlex
import subprocess
import tempfile

from captures import CAPTURES
from smi_lines import helps, reason_of, shape
from tap import gpulse, main, side_by_side, test

NAME = "h100-80gb-hbm3_580.159.04"
RECORD = CAPTURES / f"record__{NAME}.json"
COMMANDS = json.loads((CAPTURES / f"commands__{NAME}.json").read_text())


def difference(command, folder):
    """None, or how gpulse's answer differs."""
    env = dict(os.environ, GPULSE_SIM_STATE=folder, TZ="UTC")
    try:
        done = gpulse("smi", *shlex.split(command["words"]), "--sim", RECORD, "--sim-still", "--root", folder, env=env, timeout=60)
    except subprocess.TimeoutExpired:
        return "it does not end"
    if done.returncode != command["status"]:
        return f"status {done.returncode}, nvidia-smi's {command['status']}: {done.stdout[:200]!r}"
    if command.get("help"):
        return None if helps(done.stdout, command["message"]) else f"not {command['message']!r} and the help, but {done.stdout[:200]!r}"
    ours, theirs = ([shape(line) for line in text.split("\n")] for text in (done.stdout, command["text"]))
    if ours != theirs:
        first = next((pair for pair in zip(ours, theirs) if pair[0] != pair[1]), ("…", "…"))
        return f"{len(ours)} lines, nvidia-smi {len(theirs)}: {first[0]!r} where it has {first[1]!r}"
    return None


@test
def every_command_line_is_answered_alike():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700)
        found = side_by_side(difference, [(command, folder) for command in COMMANDS])
    bad = [f"{c['words']}: {d}" for c, d in zip(COMMANDS, found) if d and not reason_of(c["words"])]
    unneeded = [c["words"] for c, d in zip(COMMANDS, found) if not d and reason_of(c["words"])]
    print(f"# {len(COMMANDS)} command lines, {sum(1 for d in found if d)} answered otherwise, for reasons")
    assert not bad, "\n".join(bad)
    assert not unneeded, f"no longer otherwise: {unneeded}"


main()
