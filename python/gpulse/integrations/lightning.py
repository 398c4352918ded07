"""For Lightning: Trainer(callbacks=[GPULogger()]) logs numbers of the GPUs to the Trainer's loggers."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from . import Numbers, base_of

_Callback: Any = base_of("lightning.pytorch.callbacks:Callback", "pytorch_lightning.callbacks:Callback")


class GPULogger(_Callback): # type: ignore[misc]
    """Logs after each `every` optimizer steps; by default, as often as the Trainer does. With several processes, the
    first one logs, the GPUs that it uses itself."""

    def __init__(self, every: Optional[int] = None, numbers: Optional[Callable[[], Dict[str, float]]] = None) -> None:
        super().__init__()
        self._every = every
        self._numbers = numbers or Numbers()
        self._logged = 0

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        step = trainer.global_step
        every = self._every or trainer.log_every_n_steps
        # With accumulated gradients, several batches belong to a step.
        if not trainer.is_global_zero or not every or step % every or step == self._logged:
            return
        self._logged = step
        numbers = self._numbers()
        for logger in trainer.loggers:
            logger.log_metrics(numbers, step=step)
