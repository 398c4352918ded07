#!/usr/bin/env python3
"""What a user can do to root, or to another user, who runs gpulse: by files, names and processes.

variants: release
"""
import json
import os
import subprocess
from pathlib import Path

from tap import Skip, main, test
from users import ANN, BAD, HOME, Attacker, begin_anew, environment, libc, run_as_root, sh

LIMIT_S = 120
SECRET = "root's own\n"
RACES = 300


def as_root(*words, cwd="/", **more):
    """gpulse as root, who has a home and a state folder of its own."""
    return subprocess.run([HOME / "gpulse", *words], env=environment(0), cwd=cwd, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="surrogateescape",
                          timeout=LIMIT_S, check=False, **more)


def by(play, uid=BAD):
    """What this user has done, and has ended."""
    Attacker(play, uid).close()


def root_file():
    """A file of root's, that nobody but root may write."""
    path = Path("/run/precious")
    path.write_text(SECRET)
    path.chmod(0o600)
    return path


# ---- D.1: root writes through links ----

WRITERS = {
    "query -o": lambda path: ("query", "index", "-o", path),
    "query -o --append": lambda path: ("query", "index", "-o", path, "--append"),
    "query -o --replace": lambda path: ("query", "index", "-f", "openmetrics", "-o", path, "--replace", "-c", "1"),
    "events -o": lambda path: ("events", "-o", path, "--duration", "1ms"),
    "set --save": lambda path: ("set", "--save", path),
    "smi -f": lambda path: ("smi", "-f", path),
    "sim record -o": lambda path: ("sim", "record", "-o", path),
}


def add_writer(name, words):
    def through_a_link():
        begin_anew()
        precious = root_file()
        by(lambda: os.symlink(precious, "/tmp/out"))
        result = as_root(*words("/tmp/out"))
        assert precious.read_text() == SECRET, precious.read_text()
        assert os.lstat("/tmp/out").st_uid in (BAD, 0)
        if result.returncode != 0:
            assert str(BAD) in result.stderr + result.stdout, result

    def through_a_name_that_it_will_use():
        begin_anew()
        precious = root_file()
        by(lambda: [os.symlink(precious, f"/tmp/out{tail}") for tail in (".new", ".tmp", "~", ".1", ".gpulse")] and None)
        result = as_root(*words("/tmp/out"))
        assert result.returncode == 0, result
        assert precious.read_text() == SECRET

    def into_a_pipe_that_nobody_reads():
        begin_anew()
        by(lambda: os.mkfifo("/tmp/out", 0o666))
        by(lambda: os.mkfifo("/tmp/out.new", 0o666))
        result = as_root(*words("/tmp/out"))
        assert result.returncode != 0, result

    def into_a_pipe_that_another_user_reads():
        begin_anew()
        by(lambda: os.mkfifo("/tmp/out", 0o666))
        reader = os.open("/tmp/out", os.O_RDONLY | os.O_NONBLOCK)
        result = as_root(*words("/tmp/out"))
        got = os.read(reader, 1 << 16)
        os.close(reader)
        assert result.returncode != 0 and got == b"", (result, got)

    def into_a_file_of_anothers():
        begin_anew()

        def make():
            os.write(os.open("/tmp/out", os.O_WRONLY | os.O_CREAT), b"mine\n")
            os.chmod("/tmp/out", 0o666)
        by(make)
        kept = open("/tmp/out", encoding="ascii")
        result = as_root(*words("/tmp/out"))
        # refused, or a new file that is root's: never what the other one may read and change
        assert kept.read() == "mine\n"
        assert result.returncode != 0 or os.stat("/tmp/out").st_uid == 0, result

    for function in (through_a_link, through_a_name_that_it_will_use, into_a_pipe_that_nobody_reads,
                     into_a_pipe_that_another_user_reads, into_a_file_of_anothers):
        function.__name__ = f"{name} {function.__name__}"
        test(function)


for writer, with_path in WRITERS.items():
    add_writer(writer, with_path)


FOLLOWED, REPLACED = ("samples.csv", "output.log"), ("run.json", "incident-1.txt")  # if they are links
FAILING = "echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB' >&2; sleep 2.5; exit 7"


def targets_after_a_job(plant):
    """What a recorded job writes to the files that the links in its directory lead to."""
    begin_anew()
    targets = {name: Path("/run", name) for name in (*FOLLOWED, *REPLACED)}
    for target in targets.values():
        target.write_text(SECRET)
    os.mkdir("/tmp/records")
    os.chmod("/tmp/records", 0o777)
    plant(lambda: [os.symlink(target, f"/tmp/records/{name}") for name, target in targets.items()] and None)
    result = as_root("run", "--dir", "/tmp/records", "--keep-output", "--", "sh", "-c", FAILING)
    assert result.returncode == 7, result
    for name in REPLACED:
        assert not os.path.islink(f"/tmp/records/{name}") and os.stat(f"/tmp/records/{name}").st_uid == 0, name
    return result.stderr, {name: target.read_text() for name, target in targets.items()}


@test
def run_dir_writes_through_no_link():
    _, after = targets_after_a_job(lambda link: link())  # root's own: shows that all of these names are written
    assert {name for name, text in after.items() if text != SECRET} == set(FOLLOWED), after
    stderr, after = targets_after_a_job(by)
    assert set(after.values()) == {SECRET}, after
    for name in FOLLOWED:
        assert f"'/tmp/records/{name}': it is a link created by uid {BAD}" in stderr, stderr


@test
def a_name_that_is_a_link_now_and_then():
    """The attacker exchanges a link and a file while root opens the name."""
    begin_anew()
    precious = root_file()
    os.mkdir("/tmp/open")
    os.chmod("/tmp/open", 0o777)

    def play():
        os.symlink(precious, "/tmp/open/out")
        os.write(os.open("/tmp/open/other", os.O_WRONLY | os.O_CREAT), b"mine\n")
        os.chmod("/tmp/open/other", 0o666)
        return lambda: libc.renameat2(-100, b"/tmp/open/out", -100, b"/tmp/open/other", 2)  # RENAME_EXCHANGE
    attacker = Attacker(play)
    try:
        for _ in range(RACES):
            result = as_root("query", "index", "-o", "/tmp/open/out")
            assert precious.read_text() == SECRET, result
            assert result.returncode != 0, result
    finally:
        attacker.close()
    texts = [path.read_text() for path in Path("/tmp/open").iterdir() if not path.is_symlink()]
    assert texts == ["mine\n"], texts


@test
def pipes_and_devices_of_ones_own_are_written():
    begin_anew()
    words = ("query", "index", "-i", "0", "-f", "csv", "--no-header", "-o")
    os.mkfifo("/tmp/out")
    reader = os.open("/tmp/out", os.O_RDONLY | os.O_NONBLOCK)
    result = as_root(*words, "/tmp/out")
    assert (result.returncode, os.read(reader, 100)) == (0, b"0\n"), result
    os.close(reader)
    terminal, name = os.openpty()
    result = as_root(*words, os.ttyname(name))
    assert (result.returncode, os.read(terminal, 100)) == (0, b"0\r\n"), result
    os.close(terminal)
    os.close(name)
    assert as_root(*words, "/dev/null").returncode == 0


def run_with(variables, kept=False):
    result = subprocess.run([HOME / "gpulse", "run", "-q", "--", "true"], env={**environment(0), **variables}, cwd="/",
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            timeout=LIMIT_S, check=False)
    said = result.stderr.startswith("gpulse: no record is kept: ") and result.stderr.count("\n") == 1
    assert result.returncode == 0 and (result.stderr == "" if kept else said), result


@test
def root_with_the_home_of_another_user_writes_nothing_there():
    """sudo -E, or a sudo that keeps HOME: the user's links would lead root's records elsewhere."""
    begin_anew()
    os.mkdir("/run/elsewhere")

    def make():
        os.makedirs("/tmp/home/.local/state")
        os.symlink("/run/elsewhere", "/tmp/home/.local/state/gpulse")
    by(make)
    for variables in ({"HOME": "/tmp/home"}, {"XDG_STATE_HOME": "/tmp/home/.local/state"}):
        run_with(variables)
        assert os.listdir("/run/elsewhere") == [], os.listdir("/run/elsewhere")


@test
def root_with_a_home_that_others_can_write_to_writes_nothing_there():
    """HOME=/tmp, as in containers, and homes of users that belong to root, as for SFTP."""
    begin_anew()
    os.mkdir("/run/home")
    os.mkdir("/run/sftp")
    os.mkdir("/run/sftp/.local")
    os.chown("/run/sftp/.local", BAD, BAD)

    def make():
        for folder in ("/tmp/.local/state", "/dev/shm", "/run/sftp/.local/state"):
            os.makedirs(f"{folder}/gpulse/runs", 0o777)
    by(make)
    for variables, folder in (({"HOME": "/tmp"}, "/tmp/.local/state"), ({"XDG_STATE_HOME": "/dev/shm"}, "/dev/shm"),
                              ({"HOME": "/run/sftp"}, "/run/sftp/.local/state")):
        run_with(variables)
        assert os.listdir(f"{folder}/gpulse/runs") == [], variables
    run_with({"HOME": "/tmp/missing"})  # which anybody may create at any moment
    assert not os.path.exists("/tmp/missing")
    run_with({"HOME": "/run/home"}, kept=True)
    assert os.listdir("/run/home/.local/state/gpulse/runs")
    run_with({"HOME": "/run/new"}, kept=True)
    assert os.listdir("/run/new/.local/state/gpulse/runs")


@test
def records_are_for_their_user_alone():
    begin_anew()
    os.mkdir("/tmp/records", 0o755)
    result = as_root("run", "--dir", "/tmp/records", "--", "sleep", "1.5")
    assert result.returncode == 0, result
    files = list(Path("/tmp/records").iterdir())
    assert files
    for file in files:
        assert file.stat().st_mode & 0o077 == 0, (file, oct(file.stat().st_mode))


@test
def links_of_ones_own_are_followed():
    begin_anew()
    Path("/run/target").write_text("old")
    os.symlink("/run/target", "/tmp/out")
    assert as_root("query", "index", "-i", "0", "-f", "csv", "--no-header", "-o", "/tmp/out").returncode == 0
    assert Path("/run/target").read_text() == "0\n"
    assert as_root("query", "index", "-i", "0", "-f", "csv", "--no-header", "-o", "/dev/stdout").stdout == "0\n"


# ---- D.3: a reused process group ----

@test
def a_group_with_a_reused_number_is_anothers():
    begin_anew()
    if not os.path.exists("/proc/sys/kernel/ns_last_pid"):
        raise Skip("no pid can be chosen here")
    script = r'''
import ctypes, json, os, signal, subprocess, sys, time
libc = ctypes.CDLL(None)
libc.prctl(36, 1, 0, 0, 0)  # takes in orphans
def child(work, uid=0, pid=None):
    if pid:
        with open("/proc/sys/kernel/ns_last_pid", "w") as file:
            file.write(str(pid - 1))
    made = os.fork()
    if made == 0:
        if uid:
            os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
        work()
        os._exit(0)
    return made
def stubborn():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.setsid()
    time.sleep(600)
def leader():
    os.setpgid(0, 0)
    child(stubborn)
    time.sleep(600)
def stranger():
    os.setsid()
    child(lambda: time.sleep(600), 0)
    time.sleep(600)
first = child(leader)
time.sleep(0.5)
machine = json.load(open(os.environ["GPULSE_SIM"]))
machine["workload"] = [{"name": "x", "pid": first, "gpus": [0], "util": 1, "memory_bytes": 1 << 20}]
os.environ["GPULSE_SIM"] = "/tmp/m.json"
json.dump(machine, open("/tmp/m.json", "w"))
killer = subprocess.Popen([sys.argv[1], "kill", str(first), "--tree", "--yes", "--grace", "1s", "--wait", "1s"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
os.waitpid(first, 0)  # its pid is free now
again = child(stranger, int(sys.argv[2]), first)
if again != first:
    killer.wait()
    print("SKIP")
    sys.exit()
killer.wait()
def members_now():
    stats = {pid: open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split() for pid in os.listdir("/proc") if pid.isdigit()}
    return [pid for pid, stat in stats.items() if stat[2] == str(first) and stat[0] != "Z"]
until = time.monotonic() + 30  # where it was killed they never become two
while len(members := members_now()) != 2 and time.monotonic() < until:
    time.sleep(0.1)
print("alive" if len(members) == 2 else "ended", members)
os.killpg(first, 9)
'''
    result = subprocess.run(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "python3", "-c", script,
                             str(HOME / "gpulse"), str(ANN)], env=environment(0), stdout=subprocess.PIPE, text=True,
                            timeout=LIMIT_S, check=False)
    if "SKIP" in result.stdout:
        raise Skip("the pid was given to somebody else")
    assert result.stdout.startswith("alive"), result.stdout


# ---- D.6: files of users about their containers ----

@test
def a_large_file_about_containers_is_not_read():
    begin_anew()
    root = Path("/tmp/root")
    (root / "etc").mkdir(parents=True)
    (root / "etc/passwd").write_text(f"bad:x:{BAD}:{BAD}::/home/bad:/bin/sh\n")
    folder = root / "home/bad/.local/share/containers/storage/overlay-containers"
    folder.mkdir(parents=True)
    file = folder / "containers.json"
    ident = "3f084b4c7b789c1a0f174da3fcd339e31125d3096b3ff46a0bef4fad71d09362"
    machine = json.loads((HOME / "m.json").read_text())
    machine["workload"] = [{"name": "x", "pid": 4711, "gpus": [0], "util": 1, "memory_bytes": 1 << 20}]
    Path("/tmp/m.json").write_text(json.dumps(machine))
    proc = root / "proc/4711"
    proc.mkdir(parents=True)
    (proc / "stat").write_text("4711 (x) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21\n")
    (proc / "cgroup").write_text(f"0::/user.slice/libpod-{ident}.scope\n")
    (proc / "cmdline").write_bytes(b"python\0")
    os.chown(proc, BAD, BAD)

    def name():
        result = as_root("--sim", "/tmp/m.json", "--root", str(root), "ps", "--columns", "pid,container_name", "-f", "csv",
                         "--no-header")
        assert result.returncode == 0, result
        return result.stdout.strip()
    entry = {"id": ident, "names": ["mine"]}
    file.write_text(json.dumps([entry]))
    assert name() == "4711,mine", name()
    file.write_text(json.dumps([entry] + [{"id": "0" * 64, "names": ["x" * 64]}] * 30000))
    assert name() == "4711,", name()
    file.unlink()
    elsewhere = Path("/dev/shm/elsewhere")
    elsewhere.write_text(json.dumps([entry]))
    file.symlink_to(elsewhere)
    assert name() == "4711,", name()
    # a folder that is a link, as to a file system that does not answer
    file.unlink()
    folder.rmdir()
    Path("/dev/shm/folder").mkdir()
    Path("/dev/shm/folder/containers.json").write_text(json.dumps([entry]))
    folder.symlink_to("/dev/shm/folder")
    assert name() == "4711,", name()


# ---- where reservations are kept ----

def as_user(*words, around=(), **variables):
    return subprocess.run([*around, "setpriv", f"--reuid={ANN}", f"--regid={ANN}", "--clear-groups", str(HOME / "gpulse"), *words],
                          env={**environment(ANN), **variables}, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False)


RELIANT = {"pick": ("pick",), "queue": ("queue",), "run": ("run", "--", "true"), "dry run": ("run", "--dry-run", "--", "true")}


@test
def who_keeps_reservations_privately_is_told_first():
    begin_anew()
    os.mkdir("/tmp/mine", 0o700)
    os.chown("/tmp/mine", ANN, ANN)
    os.mkdir("/tmp/ours")
    os.chmod("/tmp/ours", 0o1777)
    for name, words in RELIANT.items():
        result = as_user(*words, GPULSE_STATE_DIR="/tmp/mine")
        assert result.returncode == 0, (name, result)
        first = result.stderr.splitlines()[0]
        assert first == ("gpulse: reservations are stored in '/tmp/mine' (GPULSE_STATE_DIR): they are not visible "
                         "to other users, and those of other users are not visible here"), (name, result.stderr)
        for variables in ({"GPULSE_STATE_DIR": "/tmp/ours"}, {}):
            result = as_user(*words, **variables)
            assert result.returncode == 0 and "are stored in" not in result.stderr, (name, result)
    assert as_user("run", "-q", "--", "true", GPULSE_STATE_DIR="/tmp/mine").stderr == ""


@test
def who_keeps_reservations_in_a_container_is_told_first():
    begin_anew()
    around = ("unshare", "--ipc")
    if subprocess.run([*around, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skip("no namespaces can be made here")
    for name, words in RELIANT.items():
        result = as_user(*words, around=around)
        assert result.returncode == 0, (name, result)
        assert ("reservations are stored in '/dev/shm' of this container: they are not visible outside it"
                in result.stderr.splitlines()[0]), (name, result.stderr)
        assert "share '/run/gpulse' with the container" in result.stderr
    begin_anew(has_run=True)  # as somebody shares it
    assert "container" not in as_user("queue", around=around).stderr


@test
def a_folder_for_reservations_must_be_there():
    begin_anew()
    Path("/tmp/file").write_text("")
    os.mkdir("/tmp/here")
    for path, why in {"/tmp/missing": "No such file or directory", "/tmp/file": "Not a directory", "here": "it must be an absolute path"}.items():
        for name, words in RELIANT.items():
            result = as_user(*words, GPULSE_STATE_DIR=path)
            assert result.returncode == 2, (path, name, result)
            assert f"GPULSE_STATE_DIR is '{path}'" in result.stderr and why in result.stderr, (path, name, result)
    assert sorted(os.listdir("/tmp")) == ["file", "here"]


@test
def a_folder_that_is_full_is_named():
    begin_anew(size="64k")
    os.mkdir("/tmp/ours")
    os.chmod("/tmp/ours", 0o1777)

    def fill():
        with open("/tmp/ours/filler", "wb", buffering=0) as file:
            try:
                while file.write(b"x" * 4096):
                    pass
            except OSError:
                pass
    by(fill)
    result = as_user("run", "--", "true", GPULSE_STATE_DIR="/tmp/ours")
    assert result.returncode != 0 and "/tmp/ours" in result.stderr and "No space left" in result.stderr, result
    assert f"uid {BAD}" in result.stderr, result


# ---- lines that are not the kernel's ----

@test
def what_users_can_write_into_the_log_is_said_to_be_so():
    """logger -t kernel "NVRM: Xid …" """
    begin_anew()
    os.mkfifo("/run/no-kmsg")
    places = ("/var/log", "/sys/module", "/dev/kmsg")
    try:
        sh("mount", "-t", "tmpfs", "none", "/var/log")
        sh("mount", "-t", "tmpfs", "none", "/sys/module")
        sh("mount", "--bind", "/run/no-kmsg", "/dev/kmsg")
        os.mkdir("/sys/module/nvidia")
        Path("/sys/module/nvidia/version").write_text("580.105.08\n")
        line = "Nov 23 02:00:02 gpu01 kernel: [   12.000000] NVRM: Xid (PCI:0000:53:00): 79, pid=1, GPU has fallen off the bus.\n"
        for name in ("syslog", "messages"):
            Path("/var/log", name).write_text(line)
            out = as_root("doctor", "--only", "log").stdout
            assert f"journalctl -k: users can write to /var/log/{name}, too" in out, out
            os.rename(f"/var/log/{name}", "/var/log/kern.log")  # whose facility is the kernel's alone
            out = as_root("doctor", "--only", "log").stdout
            assert "Xid 79" in out and "users can write" not in out, out
            os.unlink("/var/log/kern.log")
    finally:
        for place in places:
            subprocess.run(["umount", "-l", place], stderr=subprocess.DEVNULL, check=False)


# ---- D.7: names of steps ----

@test
def a_pipeline_stays_in_its_folder_and_prints_no_escapes():
    begin_anew()
    os.mkdir("/tmp/steps")
    for name in ("../../../esc", "a/b", "..", ".hidden", "x\033[31m"):
        Path("/tmp/steps/p.ini").write_text(f"[{name}]\ncommand = true\n")
        result = as_root("run", "--pipeline", "/tmp/steps/p.ini", "--dir", "/tmp/steps/records")
        assert result.returncode != 0, (name, result)
        assert "\033" not in result.stderr + result.stdout, result
    assert not os.path.exists("/tmp/esc") and not os.path.exists("/esc")
    Path("/tmp/steps/p.ini").write_text("[good]\ncommand = echo \033]0;owned\a\n")
    result = as_root("run", "--pipeline", "/tmp/steps/p.ini", "--dry-run")
    assert result.returncode == 0, result
    assert "\033" not in result.stdout and "\a" not in result.stdout, result.stdout
    assert "good: gpulse run" in result.stdout


# ---- D.8: what is not what it calls itself ----

@test
def a_planted_folder_of_mps_names_its_owner():
    begin_anew()
    root = Path("/tmp/root")
    device = root / "sys/bus/pci/devices/0000:01:00.0"
    device.mkdir(parents=True)
    for name, text in {"vendor": "0x10de", "device": "0x2204", "class": "0x030000"}.items():
        (device / name).write_text(text + "\n")
    (root / "tmp/nvidia-mps").mkdir(parents=True)
    for owner in (BAD, 0):
        os.chown(root / "tmp/nvidia-mps", owner, owner)
        result = as_root("--root", str(root), "doctor")
        text = result.stdout + result.stderr
        assert "nvidia-mps" in text, text
        assert (f"uid {BAD}" in text) == (owner == BAD), text
        assert ("nvidia-cuda-mps-control -d" in text) == (owner == 0), text


if __name__ == "__main__":
    run_as_root(__file__)
    main()
