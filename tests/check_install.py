#!/usr/bin/env python3
"""What "make install" puts where, and that it works from there.

variants: release
"""
import os
import re
import shutil
import tempfile
from pathlib import Path

from tap import BUILD, Skip, good, main, run, test

SOURCE = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
DEST = Path(tempfile.mkdtemp(prefix="gpulse-install-"))


def installed(pattern):
    return sorted(str(path.relative_to(DEST)) for path in DEST.rglob(pattern))


@test
def installs_below_destdir():
    good(run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet",
             env=dict(os.environ, DESTDIR=str(DEST))))
    assert len(installed("bin/gpulse")) == 1, installed("*")


@test
def the_installed_program_runs():
    program = DEST / installed("bin/gpulse")[0]
    assert good(run(program, "--version")).startswith("gpulse ")
    text = good(run(program, "--sim", "h100x2", "query", "name"))
    assert text.count("H100") == 2, text


@test
def what_is_installed_finds_the_program():
    """gpulse-verify runs gpulse, from another folder."""
    program = DEST / installed("bin/gpulse")[0]
    play = DEST / "nvidia-smi"
    play.write_text(f'#!/bin/sh\nexec {program} smi "$@"\n')
    play.chmod(0o755)
    text = good(run(program, "--sim", "h100x2", "--sim-still", "sim", "verify", "--nvidia-smi", play))
    play.unlink()
    assert "100.00 %" in text, text


@test
def completion_is_where_shells_look():
    for pattern in ("share/bash-completion/completions/gpulse", "share/zsh/site-functions/_gpulse",
                    "share/fish/vendor_completions.d/gpulse.fish"):
        assert len(installed(pattern)) == 1, pattern


@test
def manual_pages_are_where_man_looks():
    if not shutil.which("scdoc"):
        raise Skip("no scdoc")
    for page in ("man1/gpulse.1", "man1/gpulse-status.1", "man1/gpulse-query.1", "man1/gpulse-set.1",
                 "man1/gpulse-events.1", "man1/gpulse-serve.1", "man1/gpulse-sim.1", "man7/gpulse-metrics.7"):
        assert len(installed(f"share/man/{page}")) == 1, page


@test
def the_handbook_is_installed_with_its_links():
    missing = []
    for page in ("README.md", *(f"docs/{path.name}" for path in (SOURCE / "docs").glob("*.md"))):
        assert len(installed(f"share/doc/gpulse/{page}")) == 1, page
        path = DEST / installed(f"share/doc/gpulse/{page}")[0]
        for target in re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", path.read_text()):
            if not (path.parent / target).exists():
                missing.append(f"{page}: {target}")
    assert not missing, missing


@test
def schemas_are_installed():
    assert len(installed("share/gpulse/schema/gpulse.query*-1.json")) == 2, installed("*.json")
    for name in ("event", "controls", "report", "serve", "settings"):
        assert len(installed(f"share/gpulse/schema/gpulse.{name}-1.json")) == 1, name


@test
def the_systemd_unit_names_the_installed_program():
    units = installed("lib/systemd/system/gpulse-restore.service")
    assert len(units) == 1, units
    lines = (DEST / units[0]).read_text().splitlines()
    start = [line.split("=", 1)[1] for line in lines if line.startswith("ExecStart=")]
    program = "/" + installed("bin/gpulse")[0]
    assert start == [f"{program} set --restore /etc/gpulse/settings.json --yes"], start
    assert "WantedBy=multi-user.target" in lines


@test
def the_recorders_units():
    """One for the machine, as a user of its own, and one for each user."""
    program = "/" + installed("bin/gpulse")[0]
    for kind, words in (("system", "record --shared --quiet"), ("user", "record --quiet")):
        units = installed(f"lib/systemd/{kind}/gpulse-record.service")
        assert len(units) == 1, units
        assert f"ExecStart={program} {words}" in (DEST / units[0]).read_text().splitlines()
    users = installed("lib/sysusers.d/gpulse.conf")
    assert (DEST / users[0]).read_text() == 'u gpulse - "GPU recorder" /var/lib/gpulse\n', users


@test
def the_recorder_of_the_machine_is_hardened():
    """systemd's own verdict: 10 is a service that may do everything."""
    if not shutil.which("systemd-analyze"):
        raise Skip("no systemd-analyze")
    unit = DEST / installed("lib/systemd/system/gpulse-record.service")[0]
    result = run("systemd-analyze", "security", "--offline=yes", "--no-pager", unit)
    if "unrecognized option" in result.stderr:
        raise Skip("this systemd-analyze looks only at running services")
    level = re.search(r"Overall exposure level for gpulse-record.service: ([\d.]+)", good(result))
    assert float(level[1]) <= 1.0, result.stdout


@test
def the_shared_folder_is_roots():
    files = installed("lib/tmpfiles.d/gpulse.conf")
    assert len(files) == 1, files
    assert (DEST / files[0]).read_text().splitlines()[-1] == "d /run/gpulse 1777 root root -"


@test
def nothing_for_the_build_is_installed():
    for path in installed("*"):
        assert not path.endswith((".a", ".o", ".scd")), path
        assert not path.endswith(".h") or path.endswith("include/gpulse/gpulse.h"), path
        assert "test_" not in path, path


try:
    main()
finally:
    shutil.rmtree(DEST, ignore_errors=True)
