"""For tests/check_*.py: functions marked @test, run one after the other, reported as TAP.

    from tap import gpulse, main, test

    @test
    def status_names_every_gpu():
        assert gpulse("--sim", "h100x2", "status").stdout.count("H100") == 2

    main()
"""
import concurrent.futures
import importlib
import os
import signal
import subprocess
import sys
import traceback

GPULSE = os.environ.get("GPULSE", "build/gpulse")
BUILD = os.environ.get("GPULSE_BUILD", "build")
VARIANT = os.environ.get("GPULSE_VARIANT", "default")

# A simulated driver that does not hang is waited for, however busy the machine is.
os.environ["GPULSE_SIM_TIMEOUT"] = "5m"
# What starts a test in the background may have had these ignored, which programs inherit.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

_tests = []


class Skip(Exception):
    """Raised by a test that cannot run here; the text says why."""


def test(function):
    _tests.append(function)
    return function


def run(*command, timeout=600, **more):
    """Runs a command without a terminal; the result has returncode, stdout and stderr as text."""
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=timeout, **more)


def gpulse(*words, **more):
    return run(GPULSE, *words, **more)


def good(result):
    """The standard output of a run that must have succeeded."""
    assert result.returncode == 0, \
        f"{result.args} ended with {result.returncode}: {result.stderr[-2000:]}"
    return result.stdout


def needs_terminal():
    """Skips a test that runs a program on a terminal where there are none, as in a bare chroot."""
    try:
        for fd in os.openpty():
            os.close(fd)
    except OSError as error:
        raise Skip(f"no pseudo-terminal to be had: {error.strerror}; is /dev/pts mounted?") from error


def system_module(name):
    """A module that the package manager installs, which another Python may lack: then the test starts anew under
    the system's. None: neither has it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        system = "/usr/bin/python3"
        if sys.executable != system and os.path.exists(system):
            os.execv(system, [system, *sys.argv])
        return None


def side_by_side(function, cases):
    """What function(*case) returns for each case, in their order. Some are done at a time: a program that
    measures over a time, or that nobody answers, does little but wait."""
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return list(pool.map(lambda case: function(*case), cases))


def in_slice(tests):
    """Those of a slice, as tests/run asks for them: of GPULSE_SLICE="2/4", the second of every four."""
    number, _, count = os.environ.get("GPULSE_SLICE", "1/1").partition("/")
    return tests[int(number) - 1::int(count)]


def main():
    """GPULSE_TEST=TEXT: only the tests whose names contain it."""
    chosen = in_slice([function for function in _tests
                       if os.environ.get("GPULSE_TEST", "") in function.__name__.replace("_", " ")])
    print(f"1..{len(chosen)}", flush=True)
    failed = 0
    for number, function in enumerate(chosen, 1):
        name = function.__name__.replace("_", " ")
        try:
            function()
            print(f"ok {number} {name}", flush=True)
        except Skip as reason:
            print(f"ok {number} {name} # SKIP {reason}", flush=True)
        except Exception:
            failed += 1
            print(f"not ok {number} {name}")
            for line in traceback.format_exc().splitlines():
                print(f"# {line}")
            sys.stdout.flush()
    sys.exit(1 if failed else 0)
