#!/usr/bin/env python3
"""Help, manual pages and completion of the built programs.

variants: asan release
"""
import os
import re
import shutil
import subprocess
import tempfile
import unicodedata
from pathlib import Path

from tap import BUILD, GPULSE, Skip, good, gpulse, main, needs_terminal, run, test


def complete(*words):
    """The candidates, without what they mean."""
    lines = good(gpulse("__complete", "--", *words)).splitlines()
    return [line.split("\t")[0] for line in lines]


COMMANDS = complete("")
# The page of gpulse sim is written by its own program.
PAGES = ["gpulse", *(command for command in COMMANDS if command != "sim"), "metrics"]


@test
def help_of_the_program_names_every_command():
    text = good(gpulse("--help"))
    assert re.findall(r"^  ([a-z-]+)  ", text, re.M) == COMMANDS and len(COMMANDS) >= 20, (text, COMMANDS)
    for word in ("Usage:", "\nExit codes:", "\nWatch:\n  top ", "\nProcesses:\n  ps ",
                 "\nShare and run:\n", "\nDiagnose:\n", "\nScript and control:\n",
                 "\nWithout a GPU:\n  sim ", "--sim MACHINE", "GPULSE_SIM", "\n  69  "):
        assert word in text, word
    assert "__" not in text


@test
def help_fits_eighty_columns():
    """gpulse smi has the help of nvidia-smi."""
    for words in (["--help"], *([command, "--help"] for command in COMMANDS if command != "smi")):
        for line in good(gpulse(*words)).splitlines():
            width = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)
            # An example is a command to copy: it is not broken.
            assert width <= (100 if line.startswith("  gpulse") else 80), (words, line)
            assert line == line.rstrip(), (words, line)


@test
def help_of_a_command_shows_options_and_examples():
    for command, group in (("status", "Show"), ("query", "Select"), ("set", "Change")):
        text = good(gpulse(command, "--help"))
        for word in (f"Usage: gpulse {command}", f"\n{group}:\n", "\nExamples:\n",
                     "\nCommon options (-i, --timeout, --sim, …): gpulse --help\n"):
            assert word in text, (command, word)
        assert "--timeout TIME" not in text, command


def listed_options(command):
    """The options that a command's help lists: (letter or "", long name, what its value is)."""
    found = []
    for line in good(gpulse(command, "--help")).splitlines():
        option = re.match(r"  (?:-(\w), |    )--([\w-]+)(?:\[=| )?(\S*)", line)
        if option:
            found.append((option[1] or "", option[2], option[3].rstrip("]")))
    return found


@test
def options_mean_the_same_everywhere():
    """A letter belongs to one option. gpulse status follows gpustat's letters."""
    gpustats = set("acfupFeP")
    meaning = {}
    for command in COMMANDS:
        if command in ("smi", "sim"):
            continue
        for letter, name, value in listed_options(command):
            if letter and not (command == "status" and letter in gpustats):
                assert meaning.setdefault(letter, name) == name, (command, letter, name, meaning)
            if name == "interval":
                assert value == "TIME" and letter == "n", (command, letter, value)
            if name == "count":
                assert value == "N" and letter == ("" if command == "status" else "c"), command
            if name == "gpus" and command != "top":
                assert (letter, value) == ("g", "N"), (command, letter, value)
    assert meaning["n"] == "interval" and meaning["c"] == "count" and meaning["g"] == "gpus"


@test
def help_of_a_command_opens_its_manual_page():
    """On a terminal; otherwise it is the help."""
    assert good(gpulse("help", "ps")) == good(gpulse("ps", "--help"))
    assert "did you mean 'ps'" in gpulse("help", "pss").stderr
    assert good(gpulse("help", "--help")) == good(gpulse("help", "-h")) == good(gpulse("--help"))
    needs_terminal()
    page = Path(BUILD) / "docs/gpulse-ps.1"
    with tempfile.TemporaryDirectory() as folder:
        man = Path(folder, "man")
        man.write_text('#!/bin/sh\necho "MAN $*"\n')
        man.chmod(0o755)
        shown = subprocess.run(
            ["script", "-qec", f"{GPULSE} help ps", "/dev/null"], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, text=True, check=True,
            env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}).stdout
        # a build with sanitizers has no pages
        assert bool(re.search(r"MAN -l \S*/docs/gpulse-ps\.1", shown)) == page.exists(), shown
        assert ("Usage: gpulse ps" in shown) != page.exists(), shown


@test
def help_goes_to_the_output_and_usage_errors_do_not():
    assert gpulse("--help").stderr == ""
    wrong = gpulse("stauts")
    assert wrong.returncode == 2 and wrong.stdout == "", wrong
    assert "did you mean 'status'" in wrong.stderr, wrong.stderr
    wrong = gpulse("status", "--no-such-option")
    assert wrong.returncode == 2 and wrong.stdout == "", wrong


@test
def version_names_the_build_the_libraries_and_the_driver():
    lines = good(gpulse("--version")).splitlines()
    assert re.fullmatch(r"gpulse \d+\.\d+\.\d+", lines[0]), lines
    assert [line.split(":")[0] for line in lines[1:]] == ["build", "libraries", "driver"], lines


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
def every_command_has_a_manual_page():
    built = {path.name for path in Path(BUILD, "docs").glob("*.[1-8]")}
    if not built:
        raise Skip("this build makes no manual pages")
    wanted = {"gpulse.1", "gpulse-metrics.7", *(f"gpulse-{command}.1" for command in COMMANDS)}
    assert wanted <= built, f"missing: {wanted - built}"


@test
def manual_pages_refer_to_each_other_and_to_the_handbook():
    for page in PAGES[:-1]:
        see_also = good(gpulse("__man", page)).split("# SEE ALSO\n")[1]
        assert "share/doc/gpulse/README.md" in see_also, page
        wanted = COMMANDS if page == "gpulse" else ("metrics",)
        assert all(f"*gpulse-{name}*(" in see_also for name in wanted), (page, see_also)


@test
def completion_offers_commands():
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
def completion_scripts_are_printed():
    for shell, file in (("bash", "gpulse.bash"), ("zsh", "_gpulse"), ("fish", "gpulse.fish")):
        assert good(gpulse("completion", shell)) == Path("data/completion", file).read_text()
    wrong = gpulse("completion", "csh")
    assert wrong.returncode == 2 and "bash, zsh, fish" in wrong.stderr, wrong


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


main()
