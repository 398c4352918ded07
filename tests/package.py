"""For tests/check_*.py: programs that import gpulse, on the simulated driver."""
import os
import sys
import tempfile
from pathlib import Path

from tap import BUILD, GPULSE, good, run

SOURCE = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
STATE = tempfile.mkdtemp(prefix="gpulse-package-")
ENV = dict(os.environ, GPULSE_SIM="h100x8", GPULSE_SIM_STILL="1", GPULSE_SIM_STATE=STATE,
           GPULSE=str(Path(GPULSE).resolve()), PYTHONPATH=str(SOURCE / "python"), PYTHONDONTWRITEBYTECODE="1",
           GPULSE_LIBRARY=str((Path(BUILD) / "libgpulse.so.0").resolve()))

# What the programs may use. A simulated job holds exactly the memory that it was started with.
JOBS = '''
import gc, os, subprocess, sys, time
import gpulse
gc.disable() # garbage is collected when measure() does that, and not before
MIB, GIB = 2**20, 2**30

class Job:
    def __init__(self, *words, gpu=6):
        self.process = subprocess.Popen([os.environ["GPULSE"], "sim", "load", "--gpu", str(gpu), *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        if not self.process.stdout.readline():
            raise RuntimeError(self.process.communicate()[1])

    def end(self):
        self.process.terminate()
        self.process.communicate()

class Kept(Job):
    """Only the garbage collector frees it."""
    def __init__(self, *words):
        super().__init__(*words)
        self.me = self

    def __del__(self):
        self.end()

def wait_until(is_true):
    while not is_true():
        time.sleep(0.002)

def unavailable(get):
    try:
        value = get()
    except gpulse.Unavailable as missing:
        return f"{missing.metric}: {missing.reason}"
    raise AssertionError(f"there is a value: {value}")
'''


def python(code, **env):
    """What a program prints."""
    return good(run(sys.executable, "-c", JOBS + code, env=dict(ENV, **env)))
