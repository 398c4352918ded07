"""Modules with the interfaces of others, so that programs written for those run unchanged.

    import gpulse.compat
    gpulse.compat.install("GPUtil")   # from now on, "import GPUtil" imports ours
"""

import importlib
import sys
from types import ModuleType

_NAMES = ("GPUtil",)


def install(*names: str) -> "list[ModuleType]":
    """Makes `import NAME` return our module, for all names that exist here, or those given."""
    modules = []
    for name in names or _NAMES:
        if name not in _NAMES:
            raise ValueError(f"there is no replacement for {name!r}; there are: {', '.join(_NAMES)}")
        sys.modules[name] = importlib.import_module(f"gpulse.compat.{name}")
        modules.append(sys.modules[name])
    return modules
