"""The exceptions of this package."""

from __future__ import annotations

from typing import Any

_WORDS = {-2: "usage", -3: "no-device", -4: "driver", -5: "permission", -6: "memory", -7: "timeout", -8: "fork",
          -9: "busy", -10: "never", -11: "canceled"}


class GpulseError(RuntimeError):
    """A call failed. `kind` is one of failed, usage, no-device, driver, permission, memory, timeout,
    fork, busy (too few GPUs are free), never (this machine cannot meet the request) and canceled; `driver_code` is the
    driver's own return code, or 0."""

    def __init__(self, text: str, code: int = -1, driver_code: int = 0) -> None:
        super().__init__(text)
        self.kind: str = _WORDS.get(code, "failed")
        self.driver_code = driver_code


class Unavailable(LookupError, AttributeError):
    """There is no such value now. `metric` is its name, `reason` says why: "not supported",
    "no permission", "GPU is lost", … It is an AttributeError, so that hasattr(gpu.fan, "speed") is False."""

    def __init__(self, metric: str, reason: str) -> None:
        super().__init__(f"{metric}: {reason}")
        self.metric: str = metric
        self.reason: str = reason

    def __reduce__(self) -> Any:
        return type(self), (self.metric, self.reason)
