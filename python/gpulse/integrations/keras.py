"""For Keras: model.fit(…, callbacks=[GPULogger(), …]) adds numbers of the GPUs to the logs of each epoch. Put it before
callbacks that store the logs, such as CSVLogger, TensorBoard and WandbMetricsLogger; History comes after it anyway."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from . import Numbers, base_of

_Callback: Any = base_of("keras.callbacks:Callback", "tensorflow.keras.callbacks:Callback")


class GPULogger(_Callback): # type: ignore[misc]
    """`log` is also called with the numbers and the epoch."""

    def __init__(self, log: Optional[Callable[[Dict[str, float], int], Any]] = None,
                 numbers: Optional[Callable[[], Dict[str, float]]] = None) -> None:
        super().__init__()
        self._log = log
        self._numbers = numbers or Numbers()

    def on_epoch_end(self, epoch: int, logs: Optional[Dict[str, Any]] = None) -> None:
        numbers = self._numbers()
        if logs is not None:
            logs.update(numbers)
        if self._log:
            self._log(numbers, epoch)
