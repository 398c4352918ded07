"""Modules with the interfaces of others, so that programs written for those run unchanged.

    import gpulse.compat
    gpulse.compat.install("GPUtil")   # from now on, "import GPUtil" imports ours

For GPUtil, pynvml (nvidia-ml-py), gpustat and nvitop; what differs is at the top of each module.
"""

import importlib
import sys
from types import ModuleType

_NAMES = ("GPUtil", "gpustat", "nvitop", "pynvml")


def install(*names: str) -> "list[ModuleType]":
    """Makes `import NAME` return our module, for all names that exist here, or those given."""
    modules = []
    for name in names or _NAMES:
        if name not in _NAMES:
            raise ValueError(f"there is no replacement for {name!r}; there are: {', '.join(_NAMES)}")
        modules.append(importlib.import_module(f"gpulse.compat.{name}"))
        ours = f"gpulse.compat.{name}"
        for part in [part for part in sys.modules if part == ours or part.startswith(ours + ".")]:
            sys.modules[part[len("gpulse.compat."):]] = sys.modules[part]
    return modules
