"""Numbers of GPUs for what people train with: a plain loop here, and callbacks for Lightning, Keras and Hugging
Face's Trainer in the modules lightning, keras and huggingface. A handler for out-of-memory errors is in oom.

Everything logs a plain dictionary, such as {"gpu0/memory.used": 12345, "gpu0/utilization.gpu": 97, …}: as
wandb.log(), mlflow.log_metrics() and Lightning's loggers expect it."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, TypeVar

from .._errors import GpulseError
from .._library import Choice
from .._model import GPU, Session
from .._tree import tree_of

FIELDS = ("memory.used", "memory.free", "utilization.gpu", "temperature.gpu", "power.draw", "energy.consumption")


class Numbers:
    """numbers() returns the current values of the GPUs that this process and its children use, or of all GPUs if
    they use none; with `gpus`, of those, as in Session(). Bytes, percent, °C, W, J. process.memory is the GPU memory of
    these processes. Values that do not exist are left out. If the driver fails, there are none: a training does not
    end because its GPU cannot be observed."""

    def __init__(self, fields: Iterable[str] = FIELDS, gpus: Choice = None) -> None:
        if isinstance(fields, str):
            raise TypeError(f"fields takes a list of metrics, not {fields!r}")
        self._fields = tuple(fields)
        self._gpus = gpus
        self._session: Optional[Session] = None

    def __call__(self) -> Dict[str, float]:
        try:
            if self._session is None:
                self._session = Session("index,pid,used_gpu_memory," + ",".join(self._fields), gpus=self._gpus)
            sample = self._session.sample()
        except GpulseError as error:
            if error.kind == "usage": # no such metric
                raise
            return {}
        tree = tree_of(os.getpid())
        own: Dict[int, List[float]] = {}
        for process in sample.processes:
            if process.get("pid") in tree:
                size = process.get("used_gpu_memory")
                own.setdefault(process._gpu_row(), []).extend([size] if isinstance(size, int) else [])
        numbers: Dict[str, float] = {}
        for row, gpu in enumerate(sample.gpus):
            if self._gpus is None and own and row not in own:
                continue
            numbers.update(self._of(gpu, own.get(row, [])))
        return numbers

    def _of(self, gpu: GPU, own: List[float]) -> Dict[str, float]:
        prefix = f"gpu{gpu.get('index', '?')}/"
        values = {name: gpu.get(name) for name in self._fields}
        numbers = {prefix + name: value for name, value in values.items() if isinstance(value, (int, float))}
        if own:
            numbers[prefix + "process.memory"] = sum(own)
        return numbers


T = TypeVar("T")


def steps(items: Iterable[T], log: Callable[[Dict[str, float], int], Any], every: int = 50,
          numbers: Optional[Callable[[], Dict[str, float]]] = None) -> Iterator[T]:
    """The items, with log(numbers, step) after each `every` of them:

        for batch in steps(batches, lambda numbers, step: wandb.log(numbers, step=step)):
            train(batch)"""
    if every < 1:
        raise ValueError("every must be at least 1")
    numbers = numbers or Numbers()
    for step, item in enumerate(items, 1):
        yield item
        if step % every == 0:
            log(numbers(), step)


def base_of(*names: str) -> Any:
    """The class "MODULE:NAME" of the framework: of the first module that is imported already, or can be."""
    for imported in (True, False):
        for name in names:
            module, _, attribute = name.partition(":")
            if imported and module not in sys.modules:
                continue
            try:
                return getattr(importlib.import_module(module), attribute)
            except (ImportError, AttributeError):
                continue
    raise ImportError("none of these is installed: " + ", ".join(name.partition(":")[0] for name in names))
