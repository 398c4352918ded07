"""%load_ext gpulse: the magics %gpulse and %%gpulse of IPython and Jupyter."""

from __future__ import annotations

import ast
import importlib
from typing import Any

from ._chart import sparkline, svg
from ._measure import Measure
from ._model import gpus
from ._usage import size_text


def _show(m: Measure) -> None:
    display = importlib.import_module("IPython.display").display
    print(m)
    if m.gpus:
        display({"image/svg+xml": svg(m), "text/plain": sparkline(m)}, raw=True)


def _run(shell: Any, source: str) -> Any:
    """Runs a cell, and returns the value of its last expression, which IPython then shows. Its exceptions are those of
    the cell."""
    code = shell.transform_cell(source)
    name = shell.compile.cache(code)
    tree = ast.parse(code, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    flags = shell.compile.flags # of the notebook, not of this file
    exec(compile(tree, name, "exec", flags, dont_inherit=True), shell.user_ns)
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), name, "eval", flags, dont_inherit=True), shell.user_ns)
    return None


def _status() -> None:
    for gpu in gpus():
        used, total, load = gpu.get("memory.used"), gpu.get("memory.total"), gpu.get("utilization.gpu")
        memory = f"{size_text(used)} of {size_text(total)}" if isinstance(used, int) and isinstance(total, int) else "?"
        print(f"GPU {gpu.get('index')}: {gpu.get('name')}, {memory}, load {'?' if load is None else load} %")


def load(shell: Any) -> None:
    def magic(line: str, cell: Any = None) -> Any:
        """%%gpulse            measures the cell
%gpulse STATEMENT   measures the statement
%gpulse             shows the GPUs as they are now

The measurement is in the variable gpulse_last."""
        source = line if cell is None else cell
        if not source.strip():
            return _status()
        m = None
        try:
            with Measure() as m:
                shell.user_ns["gpulse_last"] = m
                return _run(shell, source)
        finally:
            if m:
                _show(m)

    shell.register_magic_function(magic, "line_cell", "gpulse")
