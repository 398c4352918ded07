"""For tests/check_lib*.py: what "make install" puts where."""
import os
import re
import tempfile
from pathlib import Path

from tap import BUILD, good, run

SOURCE = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
HEADER = SOURCE / "include/gpulse/gpulse.h"
DEST = Path(tempfile.mkdtemp(prefix="gpulse-lib-"))
SIMULATED = dict(os.environ, GPULSE_SIM="h100x8", GPULSE_SIM_STILL="1")


def installed(pattern):
    found = [path for path in DEST.rglob(pattern) if not path.is_symlink()]
    assert len(found) == 1, (pattern, found)
    return found[0]


def install():
    good(run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", env=dict(os.environ, DESTDIR=str(DEST))))


def declared():
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    return set(re.findall(r"\b(gpulse_\w+)\(", text))
