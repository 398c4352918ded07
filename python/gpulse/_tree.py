"""A process and its descendants, from /proc."""

from __future__ import annotations

import os
from typing import List, Set

from ._errors import Unavailable
from ._usage import Reading

_PAGE = os.sysconf("SC_PAGE_SIZE")


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError: # it has exited, or belongs to another user
        return ""


def _children(pid: int) -> List[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(word) for thread in threads for word in _read(f"/proc/{pid}/task/{thread}/children").split()]


def tree_of(pid: int) -> Set[int]:
    found: Set[int] = set()
    todo = [pid]
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo += _children(pid)
    return found


def resident(pid: int, tree: Set[int]) -> Reading:
    """Host memory (RSS) of all of them."""
    pages = {member: _read(f"/proc/{member}/statm").split() for member in tree}
    if not pages.get(pid):
        return Unavailable("process.rss", f"process {pid} cannot be read")
    return _PAGE * sum(int(words[1]) for words in pages.values() if words)


def use_cuda(tree: Set[int]) -> bool:
    """Whether one of them has opened what every CUDA program opens, and a monitor does not."""
    for pid in tree:
        folder = f"/proc/{pid}/fd"
        try:
            if any(os.readlink(f"{folder}/{fd}") == "/dev/nvidia-uvm" for fd in os.listdir(folder)):
                return True
        except OSError:
            continue
    return False
