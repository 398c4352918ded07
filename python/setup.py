"""Puts libgpulse and what it needs into the wheel, under gpulse/lib.

The library is the one in GPULSE_LIBRARY, or that of a build of this source tree, or else it is built
with meson. The simulated driver and its machines come along, if they are beside the library in a build
tree."""

import atexit
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70.1
    from wheel.bdist_wheel import bdist_wheel

NAME = "libgpulse.so.0"
SIMULATOR = "libnvidia-ml.so.1"
BUNDLED = "libjansson.so.4"
SOURCE = Path(__file__).resolve().parent.parent

# Files of an earlier build would get into the wheel.
BUILD = tempfile.mkdtemp(prefix="gpulse-wheel-")
atexit.register(shutil.rmtree, BUILD, ignore_errors=True)


def run(*command):
    try:
        return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True).stdout
    except FileNotFoundError:
        raise SystemExit(f"cannot build {NAME}: {command[0]} is not installed") from None
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{error.stdout}\ncannot build {NAME}: {command[0]} failed") from None


def library():
    chosen = os.environ.get("GPULSE_LIBRARY")
    if chosen:
        if not Path(chosen).is_file():
            raise SystemExit(f"GPULSE_LIBRARY: no such file: {chosen}")
        return Path(chosen)
    for build in ("build-release", "build"):
        if (SOURCE / build / NAME).is_file():
            return SOURCE / build / NAME
    if not (SOURCE / "src/lib/libgpulse.map").is_file():
        raise SystemExit(f"no {NAME} to put into the wheel; set GPULSE_LIBRARY to its path, or "
                         "build from the source tree of gpulse")
    run("meson", "setup", f"{BUILD}/meson", SOURCE)
    run("meson", "compile", "-C", f"{BUILD}/meson", "gpulse:shared_library")
    return Path(f"{BUILD}/meson") / NAME


def needed(path):
    """Where the loader finds jansson for this library."""
    found = re.search(rf"{re.escape(BUNDLED)} => (\S+)", run("ldd", path))
    if not found:
        raise SystemExit(f"{path}: the loader does not find {BUNDLED}")
    return Path(found[1]).resolve()


def copy_stripped(source, target):
    """Without debug information, of which a library has more than of everything else."""
    shutil.copyfile(source, target)
    if shutil.which("strip"):
        run("strip", "--strip-unneeded", target)


class BuildWithLibrary(build_py):
    def run(self):
        super().run()
        folder = Path(self.build_lib) / "gpulse" / "lib"
        folder.mkdir(parents=True, exist_ok=True)
        source = library()
        copy_stripped(source, folder / NAME)
        shutil.copyfile(needed(source), folder / BUNDLED)
        notice = Path("/usr/share/doc/libjansson4/copyright")
        if notice.is_file():
            shutil.copyfile(notice, folder / f"{BUNDLED}.copyright")
        simulator = source.resolve().parent / "sim"
        if (simulator / SIMULATOR).is_file():
            shutil.copytree(simulator / "machines", folder / "sim/machines")
            copy_stripped(simulator / SIMULATOR, folder / "sim" / SIMULATOR)
        if needed(folder / NAME).parent != folder.resolve():
            raise SystemExit(f"{source} does not search for libraries next to itself; use one from a "
                             "build directory, not an installed one")


class PlatformWheel(bdist_wheel):
    """For any Python 3 on this kind of machine."""

    def get_tag(self):
        return "py3", "none", re.sub(r"[-.]", "_", sysconfig.get_platform())


class PlatformDistribution(Distribution):
    def has_ext_modules(self):
        return True


setup(cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel}, distclass=PlatformDistribution,
      options={"build": {"build_base": BUILD}})
