"""For Hugging Face's Trainer: trainer.add_callback(GPULogger(trainer.log)) logs numbers of the GPUs whenever the
Trainer logs, to the same places: TensorBoard, W&B, MLflow, the log history."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from . import Numbers, base_of

_TrainerCallback: Any = base_of("transformers:TrainerCallback")


class GPULogger(_TrainerCallback): # type: ignore[misc]
    def __init__(self, log: Callable[[Dict[str, float]], Any],
                 numbers: Optional[Callable[[], Dict[str, float]]] = None) -> None:
        super().__init__()
        self._log = log
        self._numbers = numbers or Numbers()
        self._is_logging = False

    def on_log(self, args: Any, state: Any, control: Any, logs: Optional[Dict[str, Any]] = None, **kwargs: Any) -> None:
        if self._is_logging: # trainer.log() ends here, too
            return
        self._is_logging = True
        try:
            self._log(self._numbers())
        finally:
            self._is_logging = False
