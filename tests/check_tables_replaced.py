#!/usr/bin/env python3
"""Tables of facts that replace the built-in ones: which are used, and which are refused and why."""
import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tap import GPULSE, Skip, main, test  # noqa: E402

SOURCE = Path(__file__).resolve().parent.parent / "data" / "tables"
BUILT_IN = (SOURCE / "DATE").read_text(encoding="ascii").strip()
NOBODY = 65534
os.umask(0o022)


def day(offset):
    """A date so many days from now, as the program sees it."""
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return (today + datetime.timedelta(days=offset)).isoformat()


class Place:
    """A home, and folders of tables in it that only this user can change."""

    def __init__(self, where=None):
        self.where = where

    def __enter__(self):
        self.top = Path(tempfile.mkdtemp(prefix="gpulse-tables-", dir=self.where))
        self.data = self.top / "data"
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.top)

    def folder(self, date, path="given", tables=("drivers", "cards")):
        folder = self.top / path
        folder.mkdir(parents=True)
        for name in tables:
            shutil.copy(SOURCE / f"{name}.csv", folder)
            (folder / f"{name}.csv").chmod(0o644)
        if date:
            (folder / "DATE").write_text(f"{date}\n", encoding="ascii")
        return folder

    def users(self, date):
        return self.folder(date, "data/gpulse/tables")

    def run(self, *args, **more):
        env = dict(os.environ, HOME=str(self.top), XDG_DATA_HOME=str(self.data))
        return subprocess.run([GPULSE, "doctor", "gpus", "H100 SXM5", *args], env=env, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=120, check=False,
                              **more)

    def used(self, *args):
        """(date, folder, what was said on standard error)"""
        done = self.run(*args, "-f", "json")
        assert done.returncode == 0, done.stderr
        tables = json.loads(done.stdout)["tables"]
        return tables["date"], tables["folder"], done.stderr


def edit(folder, table, old, new):
    path = folder / f"{table}.csv"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def refused(place, folder, words):
    date, used, said = place.used("--tables", str(folder))
    assert (date, used) == (BUILT_IN, None), (date, used)
    assert words in said and f"using the tables that are built in, of {BUILT_IN}" in said, said


@test
def nothing_is_there_and_nothing_is_said():
    with Place() as place:
        assert place.used() == (BUILT_IN, None, "")


@test
def the_facts_of_the_folder_are_used():
    with Place() as place:
        folder = place.folder(day(0))
        edit(folder, "cards", "H100 SXM5,9.0,80,", "H100 SXM5,9.0,81,")
        done = place.run("--tables", str(folder))
        assert "81 GB" in done.stdout, done.stdout
        assert f"tables of {day(0)}, in {folder}\n" in done.stdout and not done.stderr
        assert "81 GB" not in place.run().stdout


@test
def the_newest_wins_and_the_one_that_is_asked_for():
    with Place() as place:
        users = place.users(day(0))
        assert place.used() == (day(0) if day(0) > BUILT_IN else BUILT_IN,
                                str(users) if day(0) > BUILT_IN else None, "")
        (users / "DATE").write_text("2020-02-29\n", encoding="ascii")
        assert place.used() == (BUILT_IN, None, "")
        assert place.used("--tables", str(users)) == ("2020-02-29", str(users), "")


@test
def a_newer_folder_of_the_user_is_used():
    with Place() as place:
        users = place.users(day(1))  # the clocks of two machines may differ
        date, folder, said = place.used()
        assert (date, folder, said) == (day(1), str(users), "")


@test
def old_tables_say_so():
    with Place() as place:
        for age, is_said in ((180, False), (181, True)):
            folder = place.folder(day(-age), f"old{age}")
            done = place.run("--tables", str(folder))
            assert (f"{age} days old" in done.stdout) == is_said, done.stdout
            document = json.loads(place.run("--tables", str(folder), "-f", "json").stdout)
            assert document["tables"] == {"date": day(-age), "age_days": age, "folder": str(folder)}


@test
def advice_and_exams_have_the_field():
    with Place() as place:
        folder = place.folder(day(-300))
        env = dict(os.environ, HOME=str(place.top), XDG_DATA_HOME=str(place.data))
        for words in (["--only", "hardware"], ["advise", "cuda", "--gpu", "8.9"]):
            command = [GPULSE, "doctor", *words, "--tables", str(folder)]
            done = subprocess.run([*command, "-f", "json"], env=env, capture_output=True, check=False)
            assert json.loads(done.stdout)["tables"]["age_days"] == 300
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
            assert "300 days old" in done.stdout, done.stdout


@test
def a_malformed_table_is_refused_with_file_and_line():
    cases = ((",long-term,2028-06,", ",long-term,soon,", "ends is 'soon': no month"),
             ("branch,cuda,", "branch,CUDA,", "drivers.csv:1: column 2 is 'CUDA', not 'cuda'"),
             ("580,13.0", "575,13.0", "its key is that of line"),
             ("both,what nvidia-smi shows\n", "both,what nvidia-smi shows,x\n", "more than 6 cells"))
    with Place() as place:
        for number, (old, new, words) in enumerate(cases):
            folder = place.folder(day(0), f"bad{number}")
            edit(folder, "drivers", old, new)
            refused(place, folder, words)
            refused(place, folder, f"{folder}/drivers.csv:")


@test
def the_date_is_checked():
    with Place() as place:
        refused(place, place.folder(None, "none"), "DATE: missing; it contains the date")
        for date, words in (("today", "'today' is no date"), ("2026-02-30", "'2026-02-30' is no date"),
                            ("", "'' is no date"), (day(3), "is in the future")):
            refused(place, place.folder(date or "\n", f"date{date}"), words)


@test
def a_folder_without_tables_or_with_a_misspelled_one_is_refused():
    with Place() as place:
        refused(place, place.folder(day(0), "empty", ()), "has no table, such as drivers.csv")
        folder = place.folder(day(0))
        (folder / "driver.csv").write_text("x\n", encoding="ascii")
        refused(place, folder, "driver.csv: no table has this name")


@test
def a_folder_that_is_not_there_is_wrong_usage():
    with Place() as place:
        done = place.run("--tables", f"{place.top}/none")
        assert done.returncode == 2 and "--tables: " in done.stderr and not done.stdout


@test
def only_plain_files_are_read():
    with Place() as place:
        fifo = place.folder(day(0), "fifo", ("drivers",))
        os.mkfifo(fifo / "cards.csv", 0o600)
        refused(place, fifo, "cards.csv: not a regular file")
        os.remove(fifo / "DATE")
        os.mkfifo(fifo / "DATE", 0o600)
        refused(place, fifo, "DATE: not a regular file")
        link = place.folder(day(0), "link", ("drivers",))
        os.symlink(SOURCE / "cards.csv", link / "cards.csv")
        refused(place, link, "cards.csv: Too many levels of symbolic links")
        nested = place.folder(day(0), "nested", ("drivers",))
        (nested / "cards.csv").mkdir()
        refused(place, nested, "cards.csv: not a regular file")


@test
def large_and_sparse_files_are_refused():
    with Place() as place:
        large = place.folder(day(0), "large", ("drivers",))
        with (large / "cards.csv").open("wb") as file:
            file.truncate(1 << 40)
        refused(place, large, "cards.csv: larger than 4 MiB")
        sparse = place.folder(day(0), "sparse", ("drivers",))
        with (sparse / "cards.csv").open("wb") as file:
            file.truncate(1 << 20)
        date, used, said = place.used("--tables", str(sparse))
        assert (date, used) == (BUILT_IN, None)
        assert "cards.csv: has holes" in said or "a control character" in said, said


@test
def what_others_can_change_is_refused():
    with Place() as place:
        folder = place.folder(day(0))
        (folder / "cards.csv").chmod(0o666)
        refused(place, folder, "cards.csv: others can write to it; run chmod go-w on it")
        (folder / "cards.csv").chmod(0o644)
        folder.chmod(0o777)
        refused(place, folder, f"{folder}: others can write to it")
        folder.chmod(0o755)
        place.top.chmod(0o777)
        refused(place, folder, f"{place.top}: others can write to it")
        place.top.chmod(0o1777)  # like /tmp, where nobody can rename what is another's
        assert place.used("--tables", str(folder)) == (day(0), str(folder), "")


@test
def a_group_can_write_only_if_it_is_the_users_own():
    if os.getuid() != 0:
        raise Skip("only root can make files of other groups")
    with Place("/var/tmp") as place:  # which other users can reach
        folder = place.folder(day(0))
        os.chmod(folder, 0o775)
        refused(place, folder, f"{folder}: others can write to it")
        for path in (place.top, folder, *folder.iterdir()):
            os.chown(path, NOBODY, NOBODY)
        program = place.top / "bin"
        shutil.copytree(Path(GPULSE).parent, program, symlinks=True,
                        ignore=lambda top, names: [n for n in names if n not in ("gpulse", "gpulse-doctor")])
        for group, words in ((NOBODY, ""), (100, "others can write to it")):
            os.chown(folder, NOBODY, group)
            done = subprocess.run([program / "gpulse", "doctor", "gpus", "H100 SXM5", "--tables", folder],
                                  user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", text=True,
                                  capture_output=True, check=False, env={"HOME": "/nonexistent"})
            assert done.returncode == 0 and (words in done.stderr if words else not done.stderr), done.stderr


@test
def another_users_folder_is_refused_also_behind_a_link():
    if os.getuid() != 0:
        raise Skip("only root can make files of another user")
    with Place() as place:
        theirs = place.folder(day(0), "theirs")
        os.chown(theirs, NOBODY, NOBODY)
        refused(place, theirs, f"{theirs}: belongs to another user")
        os.symlink(theirs, place.top / "mine")
        refused(place, place.top / "mine", f"{theirs}: belongs to another user")
        file = place.folder(day(0), "file")
        os.chown(file / "cards.csv", NOBODY, NOBODY)
        refused(place, file, "cards.csv: belongs to another user")


@test
def a_refused_folder_of_the_user_leaves_the_built_in_tables():
    with Place() as place:
        users = place.users(day(1))
        edit(users, "drivers", "580,13.0", "580,thirteen")
        date, folder, said = place.used()
        assert (date, folder) == (BUILT_IN, None)
        assert "cuda is 'thirteen': no version; using the tables that are built in" in said, said


main()
