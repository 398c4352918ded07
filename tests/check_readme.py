#!/usr/bin/env python3
"""README.md and the handbook in docs/: what they tell readers to type works, and what they link to exists.

Every line of a code block marked "sh" that runs gpulse is executed, in the order of the page, on the simulated machine
h100x8 and in a folder of its own, which has the files and programs that the pages mention.

variants: asan
"""
import os
import re
import shutil
import signal
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path

from tap import GPULSE, gpulse, main, test

ROOT = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
README = ROOT / "README.md"
HANDBOOK = [ROOT / f"docs/{name}.md" for name in (
    "install", "migrate", "share", "diagnose", "bench", "script", "library", "simulate", "hardware", "faq", "record")]
PAGE_LINES = 150

# What is added to commands that run until Ctrl-C, ask, take minutes, or report on the machine of the test. The first
# pattern that matches counts.
BOUNDED = [(re.compile(pattern), replacement) for pattern, replacement in (
    (r"gpulse events( (?!--list).*)?$", r"\g<0> --duration 500ms"),
    (r"gpulse record -o .*", r"\g<0> --duration 3s"),
    (r"gpulse (query|ps) .*-n .*", r"\g<0> -c 1"),
    (r"gpulse (why|advise)(.*?)( --for 1m| --watch)?$", r"gpulse \1\2 --for 1s"),
    (r"gpulse kill --name .*", r"\g<0> --yes"),
    (r"gpulse fit-batch", r"\g<0> --steady 1s --confirm no"),
    (r"gpulse doctor --root /mnt/backup$", r"gpulse doctor --root ."),
    (r"gpulse doctor( --only.*| --python.*| --bundle.*)?$", r"\g<0> --root ."),
)]
# Commands that are not executed, and why.
LEFT_OUT = {
    "gpulse completion fish | source": "for another shell",
    "gpulse completion zsh > ~/.zfunc/_gpulse": "for another shell",
    "sudo gpulse set --save /etc/gpulse/settings.json": "needs a folder in /etc",
    "gpulse record status": "needs the recording of the machine",
    'gpulse --tape /var/lib/gpulse/gpulse.tape --at "2h ago" ps': "needs the recording of the machine",
}
# Exit statuses other than 0 that are meant to be shown.
STATUS = {
    "gpulse --sim h100x8 status": 6,  # after the fault: GPU 3 does not answer
    "gpulse --sim h100x8 doctor --only health": 2,  # after the fault: GPU 3 is lost
    "gpulse kill -i 3 --mine --dry-run": 3,  # no process of this user
    "gpulse why 4711 --for 1m": 3,  # no such process
    "gpulse advise 4711": 3,
    **{f"gpulse bench {words}": 3 for words in (  # simulated GPUs have no speed
        "check", "check --save new.json", "matmul --svg curve.svg", "gemm --precision bf16,fp8", "memory -g all", "burn --for 10m", "burn --for 1h --log l.csv")},
    "gpulse bench check --against new.json": 1,  # no such file
    "gpulse doctor --python ~/venv": 1,  # no such environment
    "gpulse kill --mine --idle 10m": 3,  # nor here
    'gpulse ps --tape night.tape --at "yesterday 03:10"': 2,  # it was recorded just now
    "gpulse diff before.tape after.tape": 2,  # too little was recorded
    "gpulse explain last": 1,  # no job of this user is recorded
}
# The job that a command needs while it runs.
JOBS = {"gpulse kill --name train.py --tree": ("--gpu", "7", "--name", "train.py")}

FILES = {
    "train.log": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
                 "23.64 GiB of which 1.24 GiB is free. Process 12345 has 22.40 GiB memory in use.\n",
    "capture.xml": (ROOT / "data/captures/qx__telegraf_tesla-t4.xml").read_text(),
    "bin/gpulse": f"#!/bin/sh\nexec {Path(GPULSE).resolve()} \"$@\"\n",
    "bin/sudo": "#!/bin/sh\nexport GPULSE_SIM_ROOT=1\nexec \"$@\"\n",
    "bin/torchrun": "#!/bin/sh\nexec gpulse sim load --mem 1GiB --for 100ms\n",
    # A training holds as many GiB as its batch size.
    "bin/python": "#!/bin/sh\ncase \"$*\" in\n*--batch-size*) exec gpulse sim load --mem \"${*##* }GiB\" --for 2s ;;\n"
                  "*) exec gpulse sim load --mem 1GiB --for 100ms ;;\nesac\n",
}


class Reader:
    """Somebody who types what a page says, in a folder of their own."""

    def __init__(self, page):
        self.folder = Path(tempfile.mkdtemp(prefix="gpulse-readme-"))
        for name in ("bin", "home", "notes", "sim"):
            (self.folder / name).mkdir(mode=0o700)
        for name, text in FILES.items():
            (self.folder / name).write_text(text)
        for text in blocks(page, "ini"):
            (self.folder / "steps.ini").write_text(text)
        for program in (self.folder / "bin").iterdir():
            program.chmod(0o755)
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "GPULSE_", "XDG_"))}
        self.env |= {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", "HOME": f"{self.folder}/home",
                     "GPULSE_SIM": "h100x8", "GPULSE_SIM_STATE": f"{self.folder}/sim", "GPULSE_SIM_TIMEOUT": "5m",
                     "GPULSE_STATE_DIR": f"{self.folder}/notes"}

    def types(self, line):
        """What is wrong with the line, or an empty text."""
        command = line
        for pattern, replacement in BOUNDED:
            if pattern.match(line):
                command = pattern.sub(replacement, line)
                break
        env = dict(self.env)
        if STATUS.get(line) == 6:
            del env["GPULSE_SIM_TIMEOUT"]  # a GPU that hangs is waited for as on a real machine
        job = self.start_job(JOBS[line]) if line in JOBS else None
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, check=False)
        if job:
            job.kill()
            job.wait()
        if done.returncode == STATUS.get(line, 0):
            return ""
        return f"{command}\n  exited with status {done.returncode}: {done.stdout[-1000:]}"

    def start_job(self, options):
        """A simulated job, which holds memory when this returns."""
        job = subprocess.Popen([self.folder / "bin/gpulse", "sim", "load", *options], env=self.env, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        assert "holds" in job.stdout.readline(), options
        return job

    def leaves(self):
        shutil.rmtree(self.folder)


def blocks(page, language):
    """The contents of a page's code blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.M | re.S)


def command_lines(page):
    """The lines of a page's code blocks that run gpulse, without comments."""
    lines = (re.sub(r"\s+#.*", "", line) for block in blocks(page, "sh") for line in block.splitlines())
    return [line for line in lines if re.search(r"(^|[ (])gpulse( |$)", line) and not line.startswith(("git ", "sudo systemctl"))]


def everything_works(page):
    lines = [line for line in command_lines(page) if line not in LEFT_OUT]
    assert lines or not blocks(page, "sh"), "the page was not understood"
    reader = Reader(page)
    try:
        wrong = [problem for problem in map(reader.types, lines) if problem]
    finally:
        reader.leaves()
    assert not wrong, "\n".join(wrong)


@test
def pages_are_short():
    long = {page.name: n for page in (README, *HANDBOOK) if (n := len(page.read_text().splitlines())) > PAGE_LINES}
    assert not long, long


@test
def every_command_of_the_readme_works():
    assert len(command_lines(README)) > 25, command_lines(README)
    everything_works(README)


@test
def every_command_of_the_handbook_works():
    for page in HANDBOOK:
        everything_works(page)


@test
def exceptions_are_still_needed():
    lines = {line for page in (README, *HANDBOOK) for line in command_lines(page)}
    assert not {*LEFT_OUT, *STATUS, *JOBS} - lines, {*LEFT_OUT, *STATUS, *JOBS} - lines
    unused = [pattern.pattern for pattern, _ in BOUNDED if not any(map(pattern.match, lines))]
    assert not unused, unused


def masked(text):
    """The table below the line with host and time, without measured values."""
    return re.sub(r"\s*\d+(?= ?(?:°C|%|/|MiB))", "#", text.split("\n", 1)[1]).strip()


@test
def the_output_in_the_readme_is_that_of_the_program():
    shown = [block for block in blocks(README, "") if block.startswith("$ gpulse ")]
    assert shown, "no output"
    for block in shown:
        command, output = block.removeprefix("$ gpulse ").split("\n", 1)
        printed = gpulse(*command.split()).stdout
        assert masked(printed) == masked(output), printed


@test
def every_link_exists():
    missing = []
    for page in (README, *sorted((ROOT / "docs").glob("*.md"))):
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if not re.match(r"\w+:|#", target) and not (page.parent / target.split("#")[0]).exists():
                missing.append(f"{page.name}: {target}")
    assert not missing, missing


@test
def the_readme_links_to_every_page():
    text = README.read_text()
    missing = [page.name for page in HANDBOOK if f"(docs/{page.name})" not in text]
    assert not missing, missing


@lru_cache(maxsize=None)
def help_text(*command):
    return gpulse(*command, "--help").stdout


@lru_cache(maxsize=None)
def help_options(*command):
    """The options in the help of a command: {"-i", "--id", …}."""
    labels = re.findall(r"^ +(-.*?)(?:  |$)", help_text(*command), re.M)
    return {option for label in labels for option in re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", label)}


@lru_cache(maxsize=None)
def commands():
    """Every command: ("ps",), ("sim", "load"), …"""
    def listed(*program):
        return [(*program, name) for name in re.findall(r"^  ([a-z-]+)  ", help_text(*program), re.M)]
    return [*listed(), *listed("sim")]


def options_of(line):
    """The options in a gpulse command line, and those that its command has."""
    words = line.split(" -- ")[0].split()
    typed = [word.split("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)]
    names = [word for word in words if not word.startswith("-")]
    # the first of these words is the command: doctor has an argument that is called advise, too
    command = min((c for c in commands() if set(c) <= set(names)), default=(),
                  key=lambda c: (names.index(c[0]), -len(c)))
    known = help_options() | help_options(*command)
    return [f"-{letter}" for option in typed if option[1] != "-" for letter in option[1:]] + \
        [option for option in typed if option[1] == "-"], known


@test
def every_option_is_in_the_help():
    all_options = help_options().union(*(help_options(*command) for command in commands()))
    unknown = []
    for page in (README, *HANDBOOK):
        codes = [code.split("`")[0] for code in re.findall(r"`([^`\n]+)`", page.read_text())]
        for line in [*command_lines(page), *codes]:
            if "gpulse smi" in line:
                continue  # nvidia-smi's options: check_smi_*.py
            if re.search(r"(^|[ (])gpulse ", line):
                typed, known = options_of(line[line.index("gpulse "):])
            elif re.match(r"--?[a-zA-Z]", line):
                typed, known = [line.split()[0].split("=")[0]], all_options
            else:
                continue
            unknown += [f"{page.name}: {line}: {option}" for option in typed if option not in known]
    assert not unknown, "\n".join(unknown)


main()
