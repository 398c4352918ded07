#!/usr/bin/env python3
"""The wheel and the source distribution of the Python package: built and installed without network, they work with the
library that they carry, and with nothing of the system.

variants: release
"""
import json
import os
import platform
import re
import shutil
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tap import BUILD, good, main, run, test

SOURCE = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
LIBRARY = (Path(BUILD) / "libgpulse.so.0").resolve()
FOLDER = Path(tempfile.mkdtemp(prefix="gpulse-check-wheel-"))
CLEAN = {name: value for name, value in os.environ.items()
         if not name.startswith(("GPULSE_", "PYTHON", "PIP_", "LD_", "VIRTUAL_ENV"))}
CLEAN |= {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_CACHE_DIR": "1", "HOME": str(FOLDER), "TMPDIR": str(FOLDER)}
WITH_LIBRARY = dict(CLEAN, GPULSE_LIBRARY=str(LIBRARY))
# The system's Python, if another one lacks what builds wheels.
PYTHON = next((python for python in (sys.executable, "/usr/bin/python3")
               if shutil.which(python) and run(python, "-c", "import setuptools, wheel, pip", env=CLEAN).returncode == 0), None)


def pip(*words, env=WITH_LIBRARY, **more):
    return run(PYTHON, "-m", "pip", *words, env=env, **more)


def package(name):
    """A copy of python/, because building one leaves files in it."""
    copy = FOLDER / name / "python"
    shutil.copytree(SOURCE / "python", copy, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    return copy


def wheel_of(source, name, env=WITH_LIBRARY):
    out = FOLDER / name
    good(pip("wheel", "--no-build-isolation", "--no-deps", "-w", out, source, env=env))
    found = list(out.iterdir())
    assert len(found) == 1, found
    return found[0]


def environment(name, *options):
    """A virtual environment: its Python, and a function that lists its files."""
    folder = FOLDER / name
    good(run(PYTHON, "-m", "venv", "--without-pip", *options, folder, env=CLEAN))
    return folder / "bin/python", lambda: {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


def installed_works(python):
    """With the library in the package, and the jansson next to it."""
    text = good(run(python, "-c", """
import gpulse, json, os
maps = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
print(json.dumps([os.path.dirname(gpulse.__file__), [gpu.name for gpu in gpulse.gpus()], sorted(maps)]))
""", env=dict(CLEAN, GPULSE_SIM="h100x8", GPULSE_SIM_STATE=str(FOLDER / "sim"), PYTHONDONTWRITEBYTECODE="1"),
                    cwd=FOLDER))
    folder, names, maps = json.loads(text)
    assert names == ["NVIDIA H100 80GB HBM3"] * 8, names
    for name in ("libgpulse.so.0", "libjansson.so.4"):
        assert f"{folder}/lib/{name}" in maps, maps
    assert [path for path in maps if "jansson" in path] == [f"{folder}/lib/libjansson.so.4"], maps


@test
def a_wheel_for_any_python_on_this_kind_of_machine():
    wheel = wheel_of(package("from-tree"), "wheels")
    version = re.search(r"version: '([\d.]+)'", (SOURCE / "meson.build").read_text())[1]
    assert wheel.name == f"gpulse-{version}-py3-none-linux_{platform.machine()}.whl", wheel
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not re.match(r"gpulse-[\d.]+\.dist-info/", name)}
    ours = {str(path.relative_to(SOURCE / "python")) for path in (SOURCE / "python/gpulse").rglob("*.py")}
    machines = {f"gpulse/lib/sim/{Path(folder, name).relative_to(Path(BUILD) / 'sim')}"
                for folder, _, files in os.walk(Path(BUILD, "sim/machines"), followlinks=True) for name in files}
    libraries = {f"gpulse/lib/{name}" for name in ("libgpulse.so.0", "libjansson.so.4", "sim/libnvidia-ml.so.1")}
    assert names - {"gpulse/lib/libjansson.so.4.copyright"} == ours | machines | libraries | {"gpulse/py.typed"}, names ^ ours
    assert wheel.stat().st_size < 3 << 20, wheel.stat()


@test
def it_works_alone_and_leaves_nothing():
    python, files = environment("venv")
    before = files()
    wheel, = (FOLDER / "wheels").iterdir()
    good(pip("--python", python, "install", "--no-deps", wheel, env=CLEAN))
    installed_works(python)
    good(pip("--python", python, "uninstall", "-y", "gpulse", env=CLEAN))
    assert files() == before, files() ^ before


@test
def pip_install_of_the_folder():
    python, _ = environment("direct", "--system-site-packages")  # setuptools
    good(pip("--python", python, "install", "--no-build-isolation", "--no-deps", package("direct-source")))
    installed_works(python)


@test
def a_source_distribution_and_its_wheel():
    source = package("for-sdist")
    good(run(PYTHON, "-c", "import setuptools.build_meta as b; b.build_sdist('dist')", cwd=source, env=CLEAN))
    archive, = (source / "dist").iterdir()
    with tarfile.open(archive) as tar:
        assert not [name for name in tar.getnames() if ".so" in name] and any(name.endswith("/setup.py") for name in tar.getnames())
    wheel = wheel_of(archive, "from-sdist")
    tree, = (FOLDER / "wheels").iterdir()
    assert wheel.name == tree.name
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(tree) as other:
        assert sorted(one.namelist()) == sorted(other.namelist())
    r = pip("wheel", "--no-build-isolation", "--no-deps", "-w", FOLDER / "none", archive, env=CLEAN)
    assert r.returncode != 0 and "set GPULSE_LIBRARY to its path" in r.stdout + r.stderr, r


@test
def the_library_of_the_tree_is_found():
    source = package("tree")
    (source.parent / "build-release").symlink_to(Path(BUILD).resolve())
    assert wheel_of(source, "from-build", env=CLEAN).stat().st_size > 100000


@test
def meson_builds_a_library_that_is_missing():
    source = package("bare")
    for name in ("src/lib", "include"):
        shutil.copytree(SOURCE / name, source.parent / name)
    # the project, reduced to a library with the right name and dependencies
    (source.parent / "meson.build").write_text(
        "project('gpulse', 'c')\n"
        "shared_library('gpulse', 'l.c', dependencies: dependency('jansson'), link_args: '-Wl,--no-as-needed',\n"
        "  soversion: '0', build_rpath: '$ORIGIN')\n")
    (source.parent / "l.c").write_text("const char *gpulse_version(void); const char *gpulse_version(void) { return \"\"; }\n")
    assert wheel_of(source, "from-meson", env=CLEAN)
    targets = json.loads(good(run("meson", "introspect", "--targets", BUILD)))
    assert any((t["name"], t["type"]) == ("gpulse", "shared library") for t in targets)


@test
def what_is_wrong_is_said():
    for env, text in (({"GPULSE_LIBRARY": "/does/not/exist.so"}, "GPULSE_LIBRARY: no such file: /does/not/exist.so"),
                      ({}, "set GPULSE_LIBRARY to its path")):
        r = pip("wheel", "--no-build-isolation", "--no-deps", "-w", FOLDER / "none", package(f"wrong-{len(env)}"), env=CLEAN | env)
        assert r.returncode != 0 and text in r.stdout + r.stderr, r


@test
def an_installed_library_searches_only_where_the_system_does():
    good(run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", env=dict(os.environ, DESTDIR=str(FOLDER / "dest"))))
    library, = (FOLDER / "dest").rglob("libgpulse.so.0.0.0")
    assert "$ORIGIN" in good(run("readelf", "-d", LIBRARY)) and "$ORIGIN" not in good(run("readelf", "-d", library))
    r = pip("wheel", "--no-build-isolation", "--no-deps", "-w", FOLDER / "none", package("installed"),
            env=dict(CLEAN, GPULSE_LIBRARY=str(library)))
    assert r.returncode != 0 and "use one from a build directory" in r.stdout + r.stderr, r


try:
    if PYTHON:
        main()
    print("1..0 # SKIP no Python with pip, setuptools and wheel")
finally:
    shutil.rmtree(FOLDER)
