"""Modules with the interfaces of others, so that programs written for those run unchanged.

    import gpulse.compat
    gpulse.compat.install("GPUtil")   # from now on, "import GPUtil" imports ours

Without changing a program: python -m gpulse.compat PROGRAM.py

For GPUtil, pynvml (nvidia-ml-py), gpustat and nvitop; what differs is at the top of each module.
"""

import importlib
import sys
import warnings
from types import ModuleType

_NAMES = ("GPUtil", "gpustat", "nvitop", "pynvml")


def install(*names: str) -> "list[ModuleType]":
    """Makes `import NAME` return our module, for all names that exist here, or those given. Modules that have imported
    the other one before keep it: there is a warning."""
    modules = []
    for name in names or _NAMES:
        if name not in _NAMES:
            raise ValueError(f"there is no replacement for {name!r}; there are: {', '.join(_NAMES)}")
        modules.append(importlib.import_module(f"gpulse.compat.{name}"))
        ours = f"gpulse.compat.{name}"
        if name in sys.modules and sys.modules[name] is not modules[-1]:
            warnings.warn(f"{name} was imported before gpulse.compat.install({name!r})", stacklevel=2)
        for part in [part for part in sys.modules if part == ours or part.startswith(ours + ".")]:
            sys.modules[part[len("gpulse.compat."):]] = sys.modules[part]
    return modules
