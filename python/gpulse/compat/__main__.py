"""python -m gpulse.compat PROGRAM.py [ARGUMENT…], or -m MODULE [ARGUMENT…]: runs a program with the replacements."""

import os
import runpy
import sys

from . import install


def main() -> None:
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    if not arguments[is_module:]:
        sys.exit("usage: python -m gpulse.compat PROGRAM.py [ARGUMENT...]\n"
                 "       python -m gpulse.compat -m MODULE [ARGUMENT...]")
    install()
    sys.argv = arguments[is_module:]
    if is_module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")


main()
