#!/usr/bin/env python3
"""Help, manual pages and completion of the built programs.

variants: asan release
"""
import shutil
import subprocess
import unicodedata
from pathlib import Path

from tap import BUILD, GPULSE, Skip, good, gpulse, main, run, test

COMMANDS = ("top", "status", "ps", "mem", "query", "set", "events", "sim")
PAGES = ("gpulse", "top", "status", "ps", "mem", "query", "set", "events", "metrics")


def complete(*words):
    """The candidates, without what they mean."""
    lines = good(gpulse("__complete", "--", *words)).splitlines()
    return [line.split("\t")[0] for line in lines]


@test
def help_of_the_program_names_every_command():
    text = good(gpulse("--help"))
    for command in COMMANDS:
        assert f"\n  {command} " in text, command
    for word in ("usage:", "exit codes:", "--sim MACHINE", "GPULSE_SIM"):
        assert word in text, word
    assert "__" not in text


@test
def help_fits_eighty_columns():
    for words in (["--help"], *([command, "--help"] for command in COMMANDS)):
        for line in good(gpulse(*words)).splitlines():
            width = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)
            # An example is a command to copy: it is not broken.
            assert width <= (100 if line.startswith("  gpulse") else 80), (words, line)
            assert line == line.rstrip(), (words, line)


@test
def help_of_a_command_shows_options_and_examples():
    for command in ("status", "query", "set"):
        text = good(gpulse(command, "--help"))
        for word in (f"usage: gpulse {command}", "\noptions:\n", "\ncommon options:\n",
                     "\nexamples:\n"):
            assert word in text, (command, word)


@test
def help_goes_to_the_output_and_usage_errors_do_not():
    assert gpulse("--help").stderr == ""
    wrong = gpulse("stauts")
    assert wrong.returncode == 2 and wrong.stdout == "", wrong
    assert "did you mean 'status'" in wrong.stderr, wrong.stderr
    wrong = gpulse("status", "--no-such-option")
    assert wrong.returncode == 2 and wrong.stdout == "", wrong


@test
def version_is_one_line():
    text = good(gpulse("--version"))
    assert text.startswith("gpulse ") and text.count("\n") == 1, text


@test
def manual_pages_are_taken_by_scdoc():
    if not shutil.which("scdoc"):
        raise Skip("no scdoc")
    sources = [(page, good(gpulse("__man", page))) for page in PAGES]
    sources.append(("sim", good(run(f"{BUILD}/sim/gpulse-sim", "__man"))))
    for page, source in sources:
        made = subprocess.run(["scdoc"], input=source.encode(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        assert made.returncode == 0, (page, made.stderr)
        assert b".SH NAME" in made.stdout, page


@test
def completion_offers_commands():
    assert set(COMMANDS) <= set(complete("")), complete("")
    assert complete("sta") == ["status"]
    assert complete("--sim", "h100x8", "sta") == ["status"]
    assert not any(word.startswith("_") for word in complete(""))


@test
def completion_offers_options_and_their_values():
    assert "--format" in complete("query", "--form")
    assert "--sim" in complete("--s")
    assert "csv" in complete("query", "--format", "c")
    assert complete("status", "--color", "al") == ["always"]
    assert complete("status", "--color=al") == ["--color=always"]


@test
def completion_offers_metrics():
    assert "memory.used" in complete("query", "memory.u")
    assert "memory.used,temperature.gpu" in complete("query", "memory.used,temperature.g")


@test
def completion_offers_controls():
    assert "power-limit=" in complete("set", "power")
    assert "mig-mode=" in complete("set", "power-limit=300", "mig")


@test
def completion_reaches_into_sim():
    offered = complete("sim", "")
    assert "list" in offered and "exec" in offered, offered


@test
def completion_in_bash():
    script = f"""
        source data/completion/gpulse.bash
        compopt() {{ :; }}
        try() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _gpulse; echo "${{COMPREPLY[*]}}"; }}
        try {GPULSE} sta
        try {GPULSE} status --color = al
        try {GPULSE} query memory.used,temperature.gpu.t
        try {GPULSE} set power-limit=300 compute-m
        """
    lines = good(run("bash", "--norc", "-c", script)).splitlines()
    assert lines[0] == "status", lines
    assert lines[1] == "always", lines
    assert lines[2].startswith("memory.used,temperature.gpu"), lines
    assert lines[3] == "compute-mode=", lines


@test
def pictures_are_those_of_the_screens():
    good(run(Path(__file__).parent.parent / "scripts/pictures.py", "--check"))


main()
