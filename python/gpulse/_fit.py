"""The search for the largest batch size that fits a GPU: that of `gpulse fit-batch`, which src/jobs/fit.h explains.
It chooses the next size from the results so far; there is no GPU and no clock here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Tuple

TRIALS = 14
TRIALS_MAX = 64
CONFIRMS = 5
POINTS = 3 # newest trials that determine the next size
BATCH_MAX = 2**31 - 1
MARGIN_LEAST = 512 << 20
TIGHT_SHARE = 0.985

NEAR_PERCENT, KEEP_PERCENT, STEP_DOWN_PERCENT, NOISE_PERCENT = 3, 10, 93, 50
ALIKE_BYTES, ALIKE_RATIO, ALIKE_TRIALS, ALIKE_LEAST_PERCENT = 64 << 20, 64, 3, 50

# Why a search is over. Those that have no answer: the others.
ANSWERS = ("found", "max", "trials")
TEXTS = {
    "found": "larger sizes do not fit, or leave less than the margin",
    "max": "the largest size allowed fits",
    "trials": "the largest that fitted within the allowed trials",
    "nothing": "even the smallest size does not fit",
    "independent": "memory does not depend on the batch size",
    "preallocates": "the program takes the same large share of GPU memory at every batch size",
    "unconfirmed": "no size passed the confirming call",
    "host": "the host has too little memory (RAM)",
    "searching": "not over yet",
}
_RAN = ("ok", "tight")


@dataclass(frozen=True)
class Trial:
    """A call with a batch size: "ok", "tight" (the memory was full, so the peak is a lower bound), "oom", or "host"
    (the host's memory ran out); the highest GPU memory of this process in bytes."""

    batch_size: int
    verdict: str
    peak: int
    seconds: float = 0.0
    is_confirming: bool = False


@dataclass(frozen=True)
class Request:
    """Sizes are multiples of `multiple`; a share `margin` of the total memory stays free."""

    capacity: int
    total: int
    min: int = 1
    start: int = 0
    max: int = 0
    multiple: int = 1
    margin: float = 0.05
    trials: int = TRIALS
    confirm: bool = False


def check(r: Request) -> None:
    """Raises ValueError, except for problems with the GPU's memory."""
    rules = (
        (r.min < 1, "the smallest batch size must be at least 1"),
        (r.max < 0 or r.start < 0, "batch sizes cannot be negative"),
        (r.multiple < 1, "batch sizes must be multiples of at least 1"),
        (max(r.min, r.max, r.start, r.multiple) > BATCH_MAX, f"batch sizes are at most {BATCH_MAX}"),
        (0 < r.max < r.min, f"the smallest batch size ({r.min}) is above the largest ({r.max})"),
        (0 < r.start < r.min, f"the first batch size ({r.start}) is below the smallest ({r.min})"),
        (0 < r.max < r.start, f"the first batch size ({r.start}) is above the largest ({r.max})"),
        (not 1 <= r.trials <= TRIALS_MAX, f"the search has 1 to {TRIALS_MAX} trials"),
        (not 0 <= r.margin < 1, "the margin must be from 0 to below 1"),
    )
    for is_wrong, why in rules:
        if is_wrong:
            raise ValueError(why)
    if -(-r.min // r.multiple) > (r.max or BATCH_MAX) // r.multiple:
        raise ValueError(f"no multiple of {r.multiple} is in the allowed range of batch sizes")


class Fit:
    def __init__(self, request: Request) -> None:
        check(request)
        r = self.request = request
        margin = max(int(r.margin * r.total), MARGIN_LEAST)
        if r.capacity <= margin:
            raise ValueError(f"the GPU has {r.capacity >> 20} MiB free, and the margin of {margin >> 20} MiB leaves "
                             "nothing")
        self.goal = r.capacity - margin # a trial that uses more is too large
        self.min = self._up(r.min)
        self.max = self._down(r.max)
        self.top = self.max or self._down(BATCH_MAX)
        self.fits = 0  # largest that fits; 0: none yet
        self.fails = 0 # smallest that does not; 0: none yet
        self.trials: List[Trial] = []
        self.next = max(self.min, self._down(r.start))
        self.is_confirming = False
        self._searched = "searching"
        self.end = "searching"

    def _down(self, batch: int) -> int:
        return batch // self.request.multiple * self.request.multiple

    def _up(self, batch: int) -> int:
        return self._down(batch + self.request.multiple - 1)

    # ---- the line: memory as a linear function of the batch size ----

    def _line(self, count: int) -> Tuple[int, float, float, float]:
        """(points, fixed bytes, bytes per sample, R^2) by least squares over the newest points; with fewer than two
        the rest is 0."""
        points = [(t.batch_size, t.peak) for t in reversed(self.trials) if t.verdict == "ok" and not t.is_confirming]
        points = points[:count]
        n = len(points)
        if n < 2:
            return n, 0.0, 0.0, 0.0
        mean_x = sum(x for x, _ in points) / n
        mean_y = sum(y for _, y in points) / n
        sxx = sum((x - mean_x) ** 2 for x, _ in points)
        sxy = sum((x - mean_x) * (y - mean_y) for x, y in points)
        syy = sum((y - mean_y) ** 2 for _, y in points)
        b = sxy / sxx
        return n, mean_y - b * mean_x, b, b * sxy / syy if syy > 0 else 1.0

    def _meets_goal(self) -> Optional[int]:
        """The size at which the line of the newest points meets the goal."""
        points, fixed, sample, _ = self._line(POINTS)
        if points < 2 or not sample > 0:
            return None
        batch = max((self.goal - fixed) / sample, 0.0)
        return self._down(int(batch)) if batch < BATCH_MAX else self.top

    @property
    def is_independent(self) -> bool:
        """Whether nothing was too large, and the peaks do not rise with the batch."""
        points, _, sample, r2 = self._line(TRIALS_MAX)
        return self.fails == 0 and points >= 2 and not (sample > 0 and r2 * 100 >= NOISE_PERCENT)

    def need(self, batch: int) -> Optional[int]:
        """Bytes that a batch would need, by the line of all points."""
        points, fixed, sample, _ = self._line(TRIALS_MAX)
        size = fixed + sample * batch
        return int(size) if points >= 2 and sample > 0 and size > 0 else None

    # ---- preallocated memory ----

    def _alike(self) -> Tuple[List[int], bool]:
        """The sizes that ran, and whether their peaks are close to each other and a large share of the memory."""
        ran = [t for t in self.trials if t.verdict in _RAN]
        peaks = [t.peak for t in ran]
        alike = bool(peaks) and max(peaks) - min(peaks) <= ALIKE_BYTES and \
            min(peaks) >= self.request.capacity // 100 * ALIKE_LEAST_PERCENT
        return [t.batch_size for t in ran], alike

    def _preallocates(self, is_over: bool) -> bool:
        sizes, alike = self._alike()
        return alike and len(sizes) >= ALIKE_TRIALS and (is_over or max(sizes) // min(sizes) >= ALIKE_RATIO)

    def _next_alike(self) -> int:
        """Even the smallest size exceeded the goal. If larger ones do so with the same amount of memory, the size is
        not the reason. The next size to test this with; 0: none."""
        sizes, alike = self._alike()
        if len(sizes) < len(self.trials) or not alike or max(sizes) // min(sizes) >= ALIKE_RATIO:
            return 0
        batch = min(4 * max(sizes), self.top)
        return batch if batch > max(sizes) else 0

    # ---- the search ----

    def _next_above(self) -> int:
        """Nothing was too large yet. With few points, or without a line, no guess is made."""
        low = self.fits
        meets = self._meets_goal()
        batch = 4 * low if self._line(TRIALS_MAX)[0] < POINTS else 2 * low if meets is None else meets
        return min(max(batch, low + self.request.multiple), 4 * low, self.top)

    def _next_between(self) -> int:
        low, width = self.fits, self.fails - self.fits
        keep = self._up((width * KEEP_PERCENT + 99) // 100)
        batch = self._meets_goal()
        if batch is None or not low < batch < self.fails:
            batch = low + self._down(width // 2)
        return max(low + keep, min(batch, self.fails - keep))

    def _next(self) -> int:
        if self.fails == self.min:
            return self._next_alike()
        if self.fits == 0:
            return max(self.min, self._down(self.fails // 2))
        return self._next_between() if self.fails else self._next_above()

    def _end_by_bounds(self) -> str:
        may_try = len(self.trials) < self.request.trials and self.fits < self.top
        width = self.fails - self.fits
        if self.fails == self.min:
            return "searching" if may_try and self._next_alike() else "nothing"
        if self.fits and self.fits == self.max:
            return "max"
        if self.fits and self.fails and (width <= self.request.multiple or width * 100 < self.fits * NEAR_PERCENT):
            return "found"
        if may_try:
            return "searching"
        return "independent" if not self.max and self.is_independent else "trials"

    def _search_end(self) -> str:
        end = self._end_by_bounds()
        # the largest size allowed has run: that answers the question, unless the ratio is reached
        return "preallocates" if self._preallocates(end not in ("searching", "max")) else end

    def _take_trial(self, trial: Trial) -> None:
        """A size is too large if it does not run or exceeds the goal."""
        if self.fails != self.min:
            if trial.verdict in _RAN and trial.peak <= self.goal:
                self.fits = trial.batch_size
            else:
                self.fails = trial.batch_size
        self._searched = self._search_end()
        if self._searched == "searching":
            self.next = self._next()
        elif self.request.confirm and self._searched in ANSWERS and self.fits:
            self.next = self.fits
            self.is_confirming = True
        else:
            self.end = self._searched

    def _take_confirming(self, trial: Trial) -> None:
        """It may use all memory, to the last byte: only a failure counts."""
        if trial.verdict in _RAN:
            self.end = self._searched
        elif trial.batch_size == self.min or sum(t.is_confirming for t in self.trials) == CONFIRMS:
            self.end = "unconfirmed"
        else:
            self.next = max(self.min, self._down(trial.batch_size * STEP_DOWN_PERCENT // 100))
            self._searched = "found"

    def take(self, verdict: str, peak: int, seconds: float = 0.0) -> None:
        """Records the result of a trial with `next`: "ok", "tight", "oom" or "host"."""
        if verdict == "ok" and peak >= TIGHT_SHARE * self.request.capacity:
            verdict = "tight"
        trial = Trial(self.next, verdict, peak, seconds, self.is_confirming)
        self.trials.append(trial)
        if verdict == "host":
            self.end = "host"
        elif self.is_confirming:
            self._take_confirming(trial)
        else:
            self._take_trial(trial)

    @property
    def answer(self) -> int:
        """0: none."""
        if self.end not in ANSWERS or self.fits == 0:
            return 0
        return self.next if self.is_confirming else self.fits
