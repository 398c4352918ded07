#!/usr/bin/env python3
"""gpulse top as people use it: the program in a terminal (a pty, read by a terminal emulator), with
keys, sizes, signals, other terminals, drivers that hang.

variants: asan
"""
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tap import GPULSE, Skip, good, gpulse, main, run, test
from terminal import LIMIT_S, SCRATCH, Terminal, new_state


def top(*words, sim="h100x8", **more):
    return Terminal("--sim", sim, "top", "-n", "0.2", *words, **more)


def fault(terminal_or_state, *words):
    subprocess.run([GPULSE, "sim", "fault", "-m", *words], check=True,
                   env={**os.environ, "GPULSE_SIM_STATE": terminal_or_state})


def machine_with(pid, *busy):
    """A machine whose one GPU is used by this process; or several ones, busy for so many percent of the time."""
    path = SCRATCH / f"machine{pid}.json"
    path.write_text(json.dumps({
        "gpulse_machine": 1, "source": "check_top",
        "driver": {"version": "580.105.08", "nvml": "13.580.105.08", "cuda": 13000},
        "devices": [{
            "uuid": f"GPU-{i:08}-0000-0000-0000-000000000000",
            "pci": {"bus_id": f"00000000:{i + 1:02}:00.0", "device_id": "0x233010DE", "subsystem_id": "0x16C110DE"},
            "answers": {"Name": "NVIDIA H100 80GB HBM3", "Temperature": 40, **(
                {} if percent is None else {"UtilizationRates": {"gpu": percent, "memory": 0}})},
            "processes": [{"pid": pid, "type": "C", "memory_bytes": 1 << 30, "name": "job"}],
        } for i, percent in enumerate(busy or [None])]}))
    return path


# ---- the way in and out ----

@test
def it_shows_gpus_and_processes_and_q_ends_it():
    with top() as t:
        for words in ("processes 6", "8 GPU", "H100 80GB", "python t", "q:quit"):
            t.see(words)
        corner = t.screen.display[0].rstrip()
        assert re.search(r" 0\.2s \d\d:\d\d$", corner), corner  # seconds would change it in each tick
        t.keys("q")
        assert t.wait() == 0
        t.clean()


@test
def gpulse_alone_is_live_on_a_terminal():
    with Terminal("--sim", "h100x8", "-i", "0-3") as t:
        t.see("4 GPU")
        t.see("processes 4")
        t.keys("q")
        assert t.wait() == 0
    with Terminal("--sim", "h100x8", "-i", "9") as t:
        assert t.wait() == 3


def steps_of_the_demo():
    """The steps in src/tui/guide.def: the key to press, what the line says, and on the screen that it opens."""
    source = Path(__file__).parent.parent / "src/tui"
    keys = dict(re.findall(r'^KEY\((\w+), .*?"([^"]+)", "[^"]*"\)$', (source / "keys.def").read_text(), re.M))
    for action, to_do, opened in re.findall(r'^STEP\((\w+), "([^"]*)",\s+"([^"]*)"\)',
                                            (source / "guide.def").read_text(), re.M):
        name = keys[action].split()[0]
        yield {"Enter": "\r", "0-9": "5"}.get(name, name), f"Press {name} to {to_do}", opened


@test
def the_demo_names_one_key_after_the_other():
    steps = list(steps_of_the_demo())
    assert len(steps) >= 8, steps
    with Terminal("demo", size=(100, 24)) as t:
        t.see("7 of 8 GPU")
        for number, (key, to_do, opened) in enumerate(steps, 1):
            t.see(f"{number}/{len(steps)}  {to_do}")
            t.keys(key)
            if opened and key != "k":  # a simulated process is not signalled, so nothing opens
                t.see(opened)
                t.keys("q")
        t.see("The end. q: quit.")
        t.keys("q")
        assert t.wait() == 0
        t.clean()


@test
def the_demo_can_be_left_at_once_and_needs_a_terminal():
    with Terminal("--sim", "h100x8", "demo") as t:
        t.see("8 GPU")
        t.see("Press ! to")
        t.keys("q")
        assert t.wait() == 0
        t.clean()
    with Terminal("demo", term="dumb") as t:
        assert t.wait() == 1
        assert b"does not support cursor addressing" in t.output
    without = gpulse("demo")
    assert without.returncode == 2 and without.stdout == "", without
    assert "the demo needs a terminal" in without.stderr, without


def tree_to_run():
    """What "make run" finds after a build: the scripts that install and build do nothing here."""
    source = Path(__file__).parent.parent
    tree = Path(tempfile.mkdtemp(dir=SCRATCH))
    (tree / "scripts").mkdir()
    (tree / "build").mkdir()
    for name in ("setup", "build"):
        (tree / f"scripts/{name}.sh").write_text("#!/bin/sh\n")
        (tree / f"scripts/{name}.sh").chmod(0o755)
    (tree / "scripts/run.sh").write_bytes((source / "scripts/run.sh").read_bytes())
    (tree / "build/gpulse").symlink_to(Path(GPULSE).resolve())
    return ["bash", str(tree / "scripts/run.sh")]


def driver_is_here():
    return any(map(os.path.exists, ("/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg")))


@test
def make_run_names_its_steps_and_ends_in_the_demo():
    if driver_is_here():
        raise Skip("this machine has a driver")
    without = run(*tree_to_run())
    lines = good(without).splitlines()
    assert [line[:3] for line in lines[:3]] == ["1/3", "2/3", "3/3"], lines
    assert "no NVIDIA driver found, so this is a simulated machine" in lines[2], lines
    assert sum("H100" in line for line in lines) == 8, lines
    with Terminal(command=tree_to_run()) as t:
        t.see("Press ! to")
        t.keys("q")
        assert t.wait() == 0
        before = t.output[:t.output.index(b"\x1b[?1049h")].decode().splitlines()
        assert len(before) <= 4 and "press q to quit" in before[-1], before


@test
def signals_end_it_and_leave_the_terminal_clean():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        with top() as t:
            t.see("processes 6")
            os.kill(t.pid, number)
            assert t.wait() == (0 if number == signal.SIGINT else 128 + number)
            t.clean()


@test
def a_crash_leaves_the_terminal_clean():
    with top() as t:
        t.see("processes 6")
        os.kill(t.pid, signal.SIGABRT)
        assert t.wait() == -signal.SIGABRT
        assert b"gpulse top has crashed" in t.output
        t.clean()


@test
def ctrl_z_gives_the_terminal_back_and_fg_draws_anew():
    backs = "".join(f"echo back {i}; fg >/dev/null; " for i in range(1, 4))
    shell = f"{GPULSE} --sim h100x8 top -n 0.2; {backs} echo the end"
    with Terminal(command=["bash", "--norc", "-mc", shell]) as t:
        t.see("processes 6")
        for i in range(1, 4):
            at = len(t.output)
            t.until(lambda: len(t.output) > at, "the begin of a picture")
            t.keys("\x1a")
            back = f"back {i}".encode()
            t.until(lambda: back in t.output[at:], "the shell")
            assert b"\x1b[?1049l" in t.output[at:t.output.index(back)]
            at = t.output.index(back)
            t.until(lambda: b"processes" in t.output[at:], "a new picture")
        t.keys("q")
        t.until(lambda: b"the end" in t.output[at:], "the end")
        t.clean()


@test
def one_that_was_stopped_unasked_takes_the_terminal_again():
    shell = f"s=$(stty -g); {GPULSE} --sim h100x8 top; stty $s; echo back; fg >/dev/null; echo the end"
    with Terminal(command=["bash", "--norc", "-mc", shell]) as t:
        t.see("processes 6")
        at = len(t.output)
        os.kill(os.tcgetpgrp(t.fd), signal.SIGSTOP)
        t.until(lambda: b"back" in t.output[at:], "the shell")
        at = t.output.index(b"back")
        t.until(lambda: b"processes" in t.output[at:], "a new picture")
        t.keys("q")
        t.until(lambda: b"the end" in t.output[at:], "the end")
        t.clean()


@test
def nobody_would_let_it_go_on_behind_a_ctrl_z():
    with top() as t:
        t.see("processes 6")
        at = len(t.output)
        t.keys("\x1a")
        t.until(lambda: b"processes" in t.output[at:], "a new picture")
        t.keys("q")
        assert t.wait() == 0
        t.clean()


@test
def a_terminal_that_is_closed_ends_it():
    t = top()
    t.see("processes 6")
    os.close(t.fd)
    end = time.monotonic() + LIMIT_S
    while os.waitpid(t.pid, os.WNOHANG)[0] == 0:
        assert time.monotonic() < end, "still there"
        time.sleep(0.05)


# ---- drivers ----

@test
def keys_work_while_the_driver_starts_for_ever():
    state = new_state()
    fault(state, "h100x8", "hang=60s:nvmlInit")
    with top("--timeout", "30s", GPULSE_SIM_STATE=state) as t:
        t.see("starting")
        t.keys("?")
        t.see("letters next to a GPU")
        t.keys("qq")
        assert t.wait() == 0
        t.clean()


@test
def a_gpu_that_hangs_holds_nothing_up():
    state = new_state()
    fault(state, "h100x8", "--gpu", "3", "hang=60s")
    with top("--timeout", "300ms", GPULSE_SIM_STATE=state) as t:
        t.see("no answer for")
        t.see("processes 5")
        first = t.text()
        t.until(lambda: t.text() != first, "another picture")
        t.keys("?")
        t.see("letters next to a GPU")
        t.keys("?")
        t.not_see("letters next to a GPU")
        t.keys("q")
        assert t.wait() == 0
        t.clean()


@test
def a_gpu_that_hangs_from_the_beginning_hides_no_other():
    state = new_state()
    fault(state, "h100x8", "--gpu", "3", "hang=1h")
    with top("--timeout", "1h", GPULSE_SIM_STATE=state) as t:
        t.until(lambda: b"no answer yet" in t.output, "the first look")
        t.see("processes 5")
        t.see("no answer for")
        t.keys("q")
        assert t.wait() == 0
        t.clean()


@test
def without_a_driver_the_error_is_what_is_left():
    with Terminal("top", GPULSE_NVML="/nonexistent/libnvidia-ml.so.1") as t:
        assert t.wait() == 4
        assert b"cannot load /nonexistent/libnvidia-ml.so.1" in t.output
        t.clean()


@test
def a_gpu_that_is_lost_says_so():
    state = new_state()
    fault(state, "h100x2", "--gpu", "1", "lost")
    with top(sim="h100x2", GPULSE_SIM_STATE=state) as t:
        t.see("lost")
        t.keys("q")
        assert t.wait() == 0


@test
def totals_are_those_of_the_gpus_that_answer():
    state = new_state()
    with top("-n", "0.5", sim="h100x8", size=(100, 24), GPULSE_SIM_STATE=state) as t:
        t.see("/637 GiB")
        assert re.search(r"8 GPUs · 3\.\d/5\.6 kW · 37\d/637 GiB", t.text()), t.text()
        fault(state, "h100x8", "--gpu", "3", "lost")  # a job holds 71 GiB of it
        t.see("/558 GiB")
        assert re.search(r"7 of 8 GPUs · 2\.\d/4\.9 kW · 30\d/558 GiB", t.text()), t.text()
        t.keys("q")
        assert t.wait() == 0


@test
def a_gpu_that_is_denied_says_so():
    state = new_state()
    with top("-n", "0.5", sim="h100x2", size=(80, 24), GPULSE_SIM_STATE=state) as t:
        t.see("2 GPU")
        t.see("simulated")
        fault(state, "h100x2", "--gpu", "1", "deny")
        t.see("! GPU 1 ")
        t.keys("m")
        t.see("graphs: ")
        t.keys("q")
        assert t.wait() == 0


@test
def a_long_number_chooses_a_gpu():
    with top(sim="h100x72", size=(200, 60)) as t:
        t.see("72 GPU")
        t.keys("12")
        t.see("GPU 12")
        t.keys("z3")
        t.see("GPU 3")
        t.keys("q")
        assert t.wait() == 0


@test
def an_error_of_the_driver_is_told():
    state = new_state()
    with top(size=(120, 30), GPULSE_SIM_STATE=state) as t:
        t.see("processes 6")
        while "GPU 3 Xid 94, " not in t.text():  # nobody may listen yet
            fault(state, "h100x8", "--gpu", "3", "xid=94")
            t.take(0.3)
        t.keys("!")
        t.see("alerts")
        t.see("just now")
        t.keys("qq")
        assert t.wait() == 0
        t.clean()


# ---- keys ----

def time_on_processors(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@test
def sorting_filtering_searching():
    with top() as t:
        t.see("sort GPU-MEM")
        t.keys(">")
        t.see("sort ENC")
        t.keys("sq")  # leaves the list
        t.keys("P")
        t.see("sort SM%▼ ENC▼")
        t.keys("fvllm\r")
        t.see("filter vllm")
        t.see("processes 1 of 6")
        t.keys("f\x15\r")  # Ctrl-U
        t.see("processes 6")
        t.keys("fmia\r")
        t.see("filter mia")
        t.keys("\x1b")
        t.see("processes 6")
        t.keys("\t")
        t.see("GPU 0")
        t.see("processes 1 ")
        t.keys("0")
        t.see("processes 6")
        t.keys("s")
        t.see("the hottest first")
        t.keys("f\r")
        t.see("GPUs by free memory")
        t.see("processes 0 · GPU 6")  # which nobody uses
        t.keys("\x1b")
        t.see("▸ processes 6")
        t.keys("\x1b[B\x1b[B")  # arrows
        t.keys("z")
        t.see("PAUSED")
        t.see("z:resume ?:help")
        t.keys("q")
        assert t.wait() == 0


@test
def everything_about_a_gpu():
    with top("-n", "0.5", size=(100, 40)) as t:
        t.see("processes 6")
        t.keys("3\t\r")
        t.see("of 4")  # hundreds of lines: another sampler has been asked
        t.see("what limits it")
        t.see("of the 10 s that it takes")
        t.keys("/vbios\r")
        t.see("vbios_version")
        t.keys("/nosuchthing\r")
        t.see("not found")
        t.keys("q")
        t.see("GPU 3")
        t.keys("q")
        assert t.wait() == 0
        t.clean()


@test
def everything_about_a_process():
    child = subprocess.Popen(["sleep", "600"], env={**os.environ, "MARK_OF_THE_TEST": "4711"})
    try:
        with top("-n", "1h", sim=machine_with(child.pid), size=(100, 50)) as t:
            t.see("sleep 600")
            t.keys("\r")
            t.see("/usr/bin/sleep")
            t.keys("/MARK_OF\r")
            t.see("MARK_OF_THE_TEST=4711")
            before = time_on_processors(t.pid)
            t.take(1)
            assert time_on_processors(t.pid) - before < 0.5, "it does not rest"
            t.keys("qq")
            assert t.wait() == 0
    finally:
        child.kill()
        child.wait()


@test
def a_verdict_sees_all_gpus_of_a_job():
    """Also those that are not selected: on its own, each of them is only busy or idle."""
    with subprocess.Popen(["sleep", "600"]) as child:
        try:
            machine = machine_with(child.pid, 0, 96)
            with top("-n", "0.5", "-i", "0", "--sim-still", sim=machine, size=(100, 40)) as t:
                t.see("1 GPU")
                t.keys("0\t\r")
                t.see("of the 10 s that it takes")
                t.see("The job does not use this GPU.")
                t.see("the job used 1 of its 2 GPUs")
                t.keys("q")
                t.see("sleep 600")
                t.keys("\t\r")
                t.see("/usr/bin/sleep")
                t.see("The job does not use this GPU.")  # of the process: on which of them
                assert re.search(r"^\W*GPU\s+0\b", t.text(), re.M), t.text()
                t.keys("qq")
                assert t.wait() == 0
        finally:
            child.kill()


@test
def pages_that_are_left_at_once_leave_nothing():
    """Their threads are still in a slow driver then. The next page has a verdict all the same."""
    state = new_state()
    fault(state, "h100x8", "slow=10ms")
    with top("-n", "2", size=(100, 40), GPULSE_SIM_STATE=state) as t:
        t.see("processes 6")
        files = f"/proc/{t.pid}/fd"

        def visit():
            t.keys("\r")
            t.see("/ search")
            t.keys("q")
            t.see("processes 6")
        visit()
        before = len(os.listdir(files))
        for _ in range(6):
            visit()
        t.until(lambda: len(os.listdir(files)) <= before + 8, "end of the threads")  # those of one page
        t.keys("\r")
        t.see("what limits it")
        t.keys("qq")
        assert t.wait() == 0


@test
def a_setting_is_changed_and_undone():
    state = new_state()

    def limit():
        words = ["--sim", "h100x8", "query", "power.limit", "-i", "3"]
        return good(gpulse(*words, env={**os.environ, "GPULSE_SIM_STATE": state}))

    with top("-n", "0.5", size=(100, 40), GPULSE_SIM_STATE=state, GPULSE_SIM_ROOT="1") as t:
        t.see("processes 6")
        t.keys("3a")
        t.see("200 to 700 W")
        t.keys("\r" + "\x7f" * 3 + "9000\r")
        t.see("out of range: 200 to 700 W")
        t.keys("\r" + "\x7f" * 3 + "450\r")
        t.see("set power-limit of GPU 3 from 700 W to 450 W? y/n")
        t.keys("y")
        t.see("power-limit 450: done")
        assert "450" in limit(), limit()
        t.keys("\x1b[B")
        t.keys("\r500,1000\ry")
        t.see("accepted; the driver does not report whether")
        t.see("u: restore lock-gpu-clocks reset")
        t.keys("u")
        t.see("lock-gpu-clocks of GPU 3 to reset? y/n")
        t.keys("y")
        t.see("u: restore power-limit 700")
        t.keys("u")
        t.see("to 700 W? y/n")
        t.keys("y")
        t.see("power-limit 700: done")
        assert "450" not in limit(), limit()
        t.keys("q")
        t.see("processes 1 ")
        t.keys("q")
        assert t.wait() == 0
        t.clean()


@test
def who_may_not_change_is_told_so():
    with top("--read-only", size=(100, 40)) as t:
        t.see("processes 6")
        t.keys("a")
        t.see("200 to 700 W")
        t.keys("\r")
        t.see("cannot change settings")
        t.keys("qq")
        assert t.wait() == 0
    with top(size=(100, 40), GPULSE_SIM_ROOT="0") as t:
        t.see("processes 6")
        t.keys("a")
        t.see("200 to 700 W")
        t.keys("\r\x7f\x7f\x7f450\ry")
        t.see("power-limit 450: failed")
        t.keys("qq")
        assert t.wait() == 0


@test
def what_was_set_up_is_there_the_next_time():
    config = SCRATCH / "config"
    with top(size=(100, 40), XDG_CONFIG_HOME=str(config)) as t:
        t.see("processes 6")
        t.keys("gt")
        t.see("tree")
        t.keys("S")
        t.see("saved to")
        t.keys("q")
        assert t.wait() == 0
    text = (config / "gpulse/config.ini").read_text()
    assert "view = card" in text and "tree = yes" in text, text
    with top("--view", "grid", size=(100, 40), XDG_CONFIG_HOME=str(config)) as t:
        t.see("· tree")
        t.see("  0 ")
        assert "CUDA" in t.text() and "PCIe" not in t.text()
        t.keys("q")
        assert t.wait() == 0
    (config / "gpulse/config.ini").write_text("[top]\nview = round\ntree = yes\n")
    with top(size=(100, 40), XDG_CONFIG_HOME=str(config)) as t:
        t.see("bad value 'round' for view")
        t.see("· tree")
        t.keys("q")
        assert t.wait() == 0


@test
def presets_and_regions_are_kept():
    file = Path(tempfile.mkdtemp(dir=SCRATCH)) / "config.ini"
    with top("--config", str(file), "--presets", "gpus:grid,processes processes") as t:
        t.see("processes 6")
        t.see("USED BY")
        t.keys("p2")
        t.see("preset 2 of 2")
        t.until(lambda: "USED BY" not in t.text(), "no GPUs")
        t.keys("D")
        t.see("USED BY")
        t.keys("RS")
        t.see("saved to")
        t.keys("q")
        assert t.wait() == 0
    saved = file.read_text()
    for line in ("presets = gpus:grid,processes processes", "graphs = yes", "gpus = yes", "processes = yes"):
        assert line in saved, saved
    r = gpulse("--sim", "h100x2", "top", "--plain", "-c", "1", "--presets", "gpus gpu")
    assert r.returncode == 2 and "bad preset 2, 'gpu': expected a list of gpus" in r.stderr, r.stderr


@test
def options_that_cannot_be_are_refused():
    for words, message in ((["--sort", "size"], "unknown column 'size'"),
                           (["--view", "round"], "bad value 'round'"),
                           (["--interval", "soon"], "bad value 'soon'"),
                           (["--pid", "abc"], "--pid takes process ids"),
                           (["--type", "X"], "--type takes C, G, M and S"),
                           (["--columns", "pid,x"], "unknown column 'x'")):
        with top(*words) as t:
            assert t.wait() == 2
            assert message in t.output.decode(), t.output
            assert b"1049h" not in t.output


def click(t, x, y):
    t.keys(f"\x1b[<0;{x + 1};{y + 1}M\x1b[<0;{x + 1};{y + 1}m")


def place(t, words):
    """Where the words stand: in a whole picture, which the program takes clicks for."""
    t.until(lambda: t.is_whole() and words in t.text(), f"'{words}' in a whole picture")
    y = next(y for y, line in enumerate(t.screen.display) if words in line)
    return t.screen.display[y].index(words), y


@test
def the_mouse_chooses_sorts_and_opens():
    with top(size=(100, 40)) as t:
        t.see("processes 6")
        assert b"\x1b[?1000h" in t.output or b"\x1b[?1006" in t.output
        click(t, *place(t, "CPU%"))
        t.see("sort CPU%▼")
        click(t, *place(t, " 5 H100"))
        t.see("GPU 5")
        t.keys("5")
        click(t, *place(t, "?:help"))
        t.see("letters next to a GPU")
        t.keys("q")
        t.not_see("letters next to a GPU")
        x, y = place(t, " 2 H100")
        for _ in range(100):  # on a busy machine two clicks may be too far apart for a double one
            click(t, x, y)
            click(t, x, y)
            t.keys("/")  # behind both: then they have been taken, whatever they did
            t.see("search:")
            t.until(t.is_whole, "a whole picture")
            if "a: adjust" in t.text():
                break
            t.see("GPU 2")  # the first chose it
            t.keys("\x1b")
            t.not_see("search:")
        t.see("a: adjust")
        t.keys("\x1b")
        t.not_see("search:")
        t.keys("qq")
        assert t.wait() == 0
        t.clean()
    with top("--mouse=no", size=(100, 40)) as t:
        t.see("processes 6")
        assert b"\x1b[?1000h" not in t.output
        t.keys("q")
        assert t.wait() == 0


@test
def parents_stand_before_their_only_child():
    child = subprocess.Popen(["sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE)
    sleep = int(child.stdout.readline())
    try:
        with top("--tree", "--gpus=no", sim=machine_with(sleep), size=(160, 60)) as t:
            t.see(" › sh › sleep 600")
            t.keys("t")
            t.not_see(" › sh ›")
            t.keys("q")
            assert t.wait() == 0
    finally:
        os.kill(sleep, signal.SIGKILL)
        child.communicate()


@test
def the_tree_says_what_the_children_do():
    """Of a process on a GPU: its child processes are on none."""
    job = subprocess.Popen(["sh", "-c", "sleep 600 & sleep 600 & echo; wait"], stdout=subprocess.PIPE, start_new_session=True)
    job.stdout.readline()
    try:
        with top("--gpus=no", sim=machine_with(job.pid), size=(160, 60)) as t:
            t.see("processes 1")
            t.not_see("children")
            t.keys("t")
            t.see("+2 children    0% CPU")
            t.keys("t")
            t.not_see("children")
            t.keys("q")
            assert t.wait() == 0
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.communicate()


@test
def k_ends_a_process_after_it_has_shown_it():
    child = subprocess.Popen(["sleep", "600"])
    try:
        with top(sim=machine_with(child.pid)) as t:
            t.see("sleep 600")
            t.keys("/sleep\r")
            t.keys("k")
            t.see("end this process")
            assert child.poll() is None
            t.keys("\r")
            t.see(f"sent TERM to {child.pid}")
            t.see("ended; in the last sample it still has memory")  # as it is in the description of the machine
            assert child.wait(LIMIT_S) == -signal.SIGTERM
            t.keys("q")
            t.not_see("end this process")
            t.keys("q")
            assert t.wait() == 0
    finally:
        child.kill()
        child.wait()


# ---- sizes ----

@test
def keys_in_any_order():
    numbers = random.Random(2)
    special = ("\x1b[A", "\x1b[B", "\x1bOP", "\x1b[5~", "\x1b[6~", "\x1b", "\r", "\t", "\x7f")
    with top("--read-only", size=(100, 30)) as t:
        t.see("processes 6")
        for i in range(600):
            key = chr(numbers.randint(32, 126)) if numbers.random() < 0.7 else numbers.choice(special)
            if key not in "qS":  # quit, and what writes a file
                t.keys(key)
            if i % 10 == 0:
                t.skip()
        for keys in ("\x1b", "\x1b", "n", "\x1b", "q"):  # out of whatever is in front
            t.keys(keys)
            t.skip(0.2)
        assert t.wait() == 0


@test
def sizes_from_one_cell_to_a_wall():
    numbers = random.Random(1)
    with top() as t:
        t.see("processes 6")
        for i in range(500):
            t.resize(numbers.choice((1, 2, 20, 80, 500, numbers.randint(1, 500))),
                     numbers.choice((1, 2, 5, 24, 200, numbers.randint(1, 200))))
            t.skip()
        t.resize(100, 30)
        t.until(lambda: "q:quit" in t.screen.display[29], "keys in the last row")
        t.until(lambda: len(t.screen.display[0].rstrip()) >= 95, "a heading as wide as the screen")
        t.see("processes 6")
        t.keys("q")
        assert t.wait() == 0
        t.clean()


@test
def no_size_waits_for_a_sample():
    with top("-n", "1h") as t:
        t.see("processes 6")
        for i in range(40):
            t.resize(90 + i, 30)
            t.until(lambda: len(t.screen.display[0].rstrip()) >= 85 + i, f"a heading of {90 + i} columns")
        t.keys("q")
        assert t.wait() == 0
        t.clean()


# ---- terminals and locales ----

@test
def terminals_that_the_database_does_not_know():
    for term in ("xterm-nosuch", "", None, "xterm-kitty", "vt100", "linux", "screen"):
        with top(term=term) as t:
            t.see("processes 6")
            t.keys("q")
            assert t.wait() == 0, term


@test
def no_more_colors_than_the_terminal_has():
    for term, more, many in (("xterm-16color", {}, False), ("nosuch-color", {}, False),
                             ("nosuch-256color", {}, True), ("nosuch-color", {"COLORTERM": "truecolor"}, True)):
        with top(term=term, **more) as t:
            t.see("processes 6")
            t.keys("q")
            assert t.wait() == 0
            assert (b"38;5;" in t.output) == many, (term, more)


@test
def a_terminal_that_cannot_place_text_gets_lines():
    with top(term="dumb") as t:
        t.see("on GPU 5")
        assert b"\x1b" not in t.output
        os.kill(t.pid, signal.SIGTERM)
        t.wait()


@test
def another_locale_gets_ascii():
    with top(LC_ALL="C") as t:
        t.see("processes 6")
        t.keys("?")
        t.see("letters next to a GPU")
        t.keys("qq")
        assert t.wait() == 0
        assert all(byte < 0x80 for byte in t.output)


@test
def the_console_gets_what_its_fonts_have():
    for words in ((), ("--view", "card")):
        with top(*words, term="linux") as t:
            t.see("processes 6")
            t.keys("q")
            assert t.wait() == 0
            lacking = {c for c in t.output.decode() if "\u2800" <= c <= "\u28ff" or c in "▁▂▃▅▆▇▉▊▋▍▎▏…›▸▾"}
            assert not lacking, lacking


@test
def no_color_gets_none():
    with top(NO_COLOR="1") as t:
        t.see("processes 6")
        t.keys("q")
        assert t.wait() == 0
        for color in range(30, 38):
            assert f"\x1b[{color}m".encode() not in t.output and f";{color}m".encode() not in t.output
        assert b"[38;5;" not in t.output and BACKGROUND not in t.output
    with top() as t:
        t.see("processes 6")
        t.keys("q")
        t.wait()
        assert b"[38;5;" in t.output
    with top(term="linux") as t:  # it has eight colours, and would show the question
        t.see("processes 6")
        t.keys("q")
        t.wait()
        assert any(f"[3{color}m".encode() in t.output for color in range(8))
        assert BACKGROUND not in t.output


# ---- the colour of the background ----

BACKGROUND = b"\x1b]11;?\x1b\\"
DARK_LOAD, LIGHT_LOAD = b"\x1b[38;5;79m", b"\x1b[38;5;23m"  # src/tui/theme.c


@test
def a_light_background_turns_the_colours():
    """The answer may come in pieces, with keys before and after it, or end with BEL."""
    answers = (("\x1b]11;rgb:ffff/ffff/ffff\x1b\\",), ("\x1b]11;rgb:ff/ff/ff\a",),
               ("\x1b]11;rgb:fdfd/f6", "f6/e3e3\x1b\\"))
    for answer in answers:
        with top() as t:
            t.until(lambda: BACKGROUND in t.output, "the question")
            t.see("processes 6")
            assert LIGHT_LOAD not in t.output and DARK_LOAD in t.output  # it does not wait
            t.keys("I")
            t.see("GPU-MEM▲")
            for piece in answer:
                t.keys(piece)
                time.sleep(0.1)
            t.until(lambda: LIGHT_LOAD in t.output, "the light colours")
            t.keys("2")
            t.see("· GPU 2 ·")
            t.keys("q")
            assert t.wait() == 0
            t.clean()


@test
def a_dark_background_changes_nothing():
    with top() as t:
        t.until(lambda: BACKGROUND in t.output, "the question")
        t.see("processes 6")
        t.keys("\x1b]11;rgb:1616/1818/1d1d\x1b\\2")
        t.see("· GPU 2 ·")
        assert LIGHT_LOAD not in t.output and t.output.count(BACKGROUND) == 1
        t.keys("q")
        assert t.wait() == 0


@test
def an_answer_that_is_cut_takes_no_key():
    with top() as t:
        t.see("processes 6")
        t.keys("\x1b]11;rgb:ffff/ff")
        t.keys("I")
        t.see("GPU-MEM▲")
        t.keys("q")
        assert t.wait() == 0
        assert LIGHT_LOAD not in t.output


@test
def an_answer_is_not_typed_into_the_shell():
    """One that is left at once still takes it."""
    script = '"$0" top --config none; stty -icanon min 0 time 5; echo "typed <$(cat -v)>"'
    with Terminal(command=["sh", "-c", script, GPULSE], GPULSE_SIM="h100x8") as t:
        t.until(lambda: BACKGROUND in t.output, "the question")
        t.keys("q\x1b]11;rgb:ffff/ffff/ffff\x1b\\")
        assert t.wait() == 0
        assert b"typed <>" in t.output, t.output[-200:]


@test
def themes_that_do_not_follow_it_ask_nothing():
    for theme, asks in (("light", False), ("mono", False), ("safe", True), ("terminal", True)):
        with top("--theme", theme) as t:
            t.see("processes 6")
            t.keys("q")
            assert t.wait() == 0
            assert (BACKGROUND in t.output) == asks, theme
            assert (LIGHT_LOAD in t.output) == (theme == "light"), theme


@test
def a_file_is_a_theme():
    folder = Path(tempfile.mkdtemp(dir=SCRATCH))
    themes = folder / "gpulse/themes"
    themes.mkdir(parents=True)
    (themes / "mine.theme").write_text("load = #ff8800\n")
    for more, load in (({}, b"38;5;208m"), ({"COLORTERM": "truecolor"}, b"38;2;255;136;0m")):
        with top("--theme", "mine", XDG_CONFIG_HOME=str(folder), **more) as t:
            t.see("processes 6")
            t.keys("q")
            assert t.wait() == 0
            assert load in t.output and DARK_LOAD not in t.output, more
    (themes / "mine.theme").write_text("load = orange\n")
    with top("--theme", "mine", XDG_CONFIG_HOME=str(folder)) as t:
        t.see("mine.theme:1: bad color 'orange' for load; write")
        t.see("processes 6")
        t.keys("q")
        assert t.wait() == 0
        assert DARK_LOAD in t.output
    (themes / "mine.theme").unlink()
    os.mkfifo(themes / "mine.theme")
    with top("--theme", "mine", XDG_CONFIG_HOME=str(folder)) as t:
        t.see("mine.theme: is not a regular file; remove it")
        t.keys("q")
        assert t.wait() == 0
    def complete(word):
        env = {**os.environ, "XDG_CONFIG_HOME": str(folder)}
        return good(gpulse("__complete", "--", "top", "--theme", word, env=env)).split()

    assert sorted(complete("m")) == ["mine", "mono"] and complete("mi") == ["mine"] and complete("x") == []
    (themes / "mine.theme").unlink()
    assert complete("m") == ["mono"]
    r = gpulse("--sim", "h100x2", "top", "--plain", "-c", "1", "--theme", "yours")
    assert r.returncode == 2 and "no theme 'yours'; use one of: default dark" in r.stderr, r.stderr


# ---- without a terminal ----

@test
def plain_lines_have_what_the_screen_has():
    text = good(gpulse("--sim", "h100x2", "--sim-still", "top", "--plain", "--count", "1"))
    for words in ("GPU 0 NVIDIA H100 80GB HBM3: utilization ", "temperature 6", "power 6", "limit 700.00 W",
                  "process 4190001 of mia on GPU 0, type C, GPU memory 71", "python train.py"):
        assert words in text, f"{words}\n{text}"
    ordered = good(gpulse("--sim", "h100x8", "--sim-still", "top", "--plain", "--count", "1", "--sort", "-pid"))
    assert [line.split()[1] for line in ordered.splitlines() if ", idle" in line] == ["4190006"], ordered
    pids = [line.split()[1] for line in ordered.splitlines() if line.startswith("process ")]
    assert pids == [f"419000{i}" for i in range(6, 0, -1)], ordered
    twice = good(gpulse("--sim", "h100x2", "top", "--plain", "--count", "2", "-n", "0.5"))
    assert ", SMs " in twice and ", PCIe received " in twice, twice  # rates, as on the screen
    piped = good(gpulse("--sim", "h100x2", "--sim-still", "top", "--count", "1"))
    lasting, of_both = re.compile(r"for \d+h\d+m"), []
    for lines in (piped, text):  # a minute may end between them
        assert lasting.search(lines), lines
        of_both.append(lasting.sub("for a while", lines).splitlines()[1:])
    assert of_both[0] == of_both[1]


@test
def wrong_words_are_refused():
    for words, text in ((("top", "x"), "top takes no arguments"), (("top", "--sort", "size"), "unknown column 'size'"),
                        (("top", "-n", "0"), "interval"), (("top", "--nosuch"), "nosuch")):
        result = gpulse("--sim", "t4", *words)
        assert result.returncode == 2 and text in result.stderr, f"{words}: {result.stderr}"


# ---- names that want to be obeyed ----

@test
def a_name_cannot_move_the_cursor():
    hostile = "evil\x1b[2J\x1b[1;1Hname\n\u202eabc\xff"
    code = "import time; time.sleep(600)"
    child = subprocess.Popen([hostile, "-c", code], executable=sys.executable)
    try:
        with top(sim=machine_with(child.pid), size=(160, 24)) as t:
            t.see("evil\\x1b[2J")
            assert "1 GPU" in t.screen.display[0]
            assert b"\x1b[2J\x1b[1;1Hname" not in t.output
            t.keys("q")
            assert t.wait() == 0
    finally:
        child.kill()
        child.wait()


main()
