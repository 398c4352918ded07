"""What PyTorch says of its memory, if the program has imported it. It is never imported here."""

from __future__ import annotations

import gc
import os
import sys
import threading
from typing import Any, Dict, List

from ._errors import Unavailable
from ._usage import Usage


class TorchUse:
    """The memory of PyTorch's caching allocator on a CUDA device: allocated by tensors, and reserved from the
    driver. The peaks are PyTorch's own, and exact."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.allocated = Usage("torch.memory_allocated")
        self.reserved = Usage("torch.memory_reserved")

    def to_dict(self) -> Dict[str, Any]:
        return {"device": self.device, "allocated": self.allocated.to_dict(), "reserved": self.reserved.to_dict()}

    def __str__(self) -> str:
        return f"torch cuda:{self.device}: allocated {self.allocated}; reserved {self.reserved}"

    def __repr__(self) -> str:
        return f"<{self}>"


def cuda() -> Any:
    """torch.cuda, if it is in use; otherwise None."""
    module = getattr(sys.modules.get("torch"), "cuda", None)
    return module if module is not None and module.is_initialized() else None


def free_memory() -> None:
    """Collects garbage and empties PyTorch's cache."""
    gc.collect()
    module = cuda()
    if module is not None:
        module.empty_cache()


class TorchBlock:
    """PyTorch's numbers from the beginning to the end of a block. PyTorch has one peak per device, which each block
    resets when it begins; so a block first notes the peaks of those that enclose it."""

    def __init__(self) -> None:
        self._uses: Dict[int, TorchUse] = {}
        self._problem = ""
        self._try(self._begin)

    def _try(self, step: Any) -> None:
        """PyTorch's numbers are an addition: whatever goes wrong with them, the block is not affected."""
        try:
            with _lock:
                step()
        except Exception as problem:
            self._problem = f"{type(problem).__name__}: {problem}"

    def _begin(self) -> None:
        _note_peaks()
        module = cuda()
        if module is not None:
            self._take()
            for device in self._uses:
                module.reset_peak_memory_stats(device)
        _active.append(self)

    def _take(self) -> None:
        module = cuda()
        for device in range(module.device_count()) if module is not None else ():
            use = self._uses.get(device)
            if use is None:
                use = self._uses[device] = TorchUse(device)
                if self in _active: # CUDA was initialized in the block
                    use.allocated._take(0)
                    use.reserved._take(0)
            use.allocated._take(module.memory_allocated(device))
            use.reserved._take(module.memory_reserved(device))

    def _end(self) -> None:
        self._take()
        _note_peaks()
        _active.remove(self)

    def end(self) -> None:
        self._try(self._end)

    def _after(self) -> None:
        module = cuda()
        for device, use in self._uses.items():
            use.allocated._after = module.memory_allocated(device)
            use.reserved._after = module.memory_reserved(device)

    def after(self) -> None:
        self._try(self._after)

    @property
    def uses(self) -> List[TorchUse]:
        if self._problem:
            raise Unavailable("torch", self._problem)
        if "torch" not in sys.modules:
            raise Unavailable("torch", "not imported")
        if not self._uses:
            raise Unavailable("torch", "CUDA is not initialized")
        return list(self._uses.values())


_active: List[TorchBlock] = []
_lock = threading.RLock()
os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.RLock()))


def _note_peaks() -> None:
    module = cuda()
    for block in _active:
        for device, use in block._uses.items():
            use.allocated._raise_peak(module.max_memory_allocated(device))
            use.reserved._raise_peak(module.max_memory_reserved(device))
