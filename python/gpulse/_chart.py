"""A small chart of a measured block, as SVG and as text."""

from __future__ import annotations

from typing import Callable, List, Optional, Sequence

from ._measure import Measure, Point
from ._usage import size_text

_WIDTH, _HEIGHT = 560, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 76, 44, 24, 24
_MEMORY, _LOAD, _GREY = "#1f6feb", "#d9822b", "#6e7781"


def _nice(size: float) -> float:
    """The next power of 2 of a size, which is at least 1 MiB."""
    top = float(2**20)
    while top < size:
        top *= 2
    return top


def _scale_text(size: float) -> str:
    if not size:
        return "0"
    return f"{size / 2**30:g} GiB" if size >= 2**30 else f"{size / 2**20:g} MiB"


def _text(x: float, y: float, text: str, color: str, anchor: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="{color}" text-anchor="{anchor}">{text}</text>'


class _Plane:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds or 1.0
        self.right, self.bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def x(self, seconds: float) -> float:
        return _LEFT + (self.right - _LEFT) * seconds / self._seconds

    def y(self, share: float) -> float:
        return self.bottom - (self.bottom - _TOP) * min(max(share, 0.0), 1.0)

    def lines(self, points: Sequence[Point], share: Callable[[Point], Optional[float]], color: str) -> List[str]:
        """A line, with a gap where the value is unknown."""
        parts: List[List[str]] = [[]]
        for point in points:
            value = share(point)
            if value is None:
                parts.append([])
            else:
                parts[-1].append(f"{self.x(point.seconds):.1f},{self.y(value):.1f}")
        return [f'<polyline fill="none" stroke="{color}" stroke-width="1.5" stroke-linejoin="round" '
                f'points="{" ".join(part)}"/>' for part in parts if len(part) > 1]


def svg(m: Measure) -> str:
    """GPU memory (left scale) and load (right scale) during the block."""
    points = m.curve
    plane = _Plane(max((p.seconds for p in points), default=0.0))
    top = _nice(max((p.memory for p in points if p.memory is not None), default=0.0))
    grid = "".join(f'<line x1="{_LEFT}" x2="{plane.right}" y1="{plane.y(s):.1f}" y2="{plane.y(s):.1f}" '
                   'stroke="#d0d7de" stroke-width="1"/>' for s in (0, 0.5, 1))
    labels = [_text(_LEFT - 6, plane.y(s) + 4, _scale_text(top * s), _MEMORY, "end") for s in (0, 0.5, 1)]
    labels += [_text(plane.right + 6, plane.y(s) + 4, f"{s * 100:.0f} %", _LOAD, "start") for s in (0, 0.5, 1)]
    labels += [_text(_LEFT, 14, "GPU memory", _MEMORY, "start"), _text(plane.right, 14, "load", _LOAD, "end"),
               _text(_LEFT, _HEIGHT - 6, "0 s", _GREY, "start"),
               _text(plane.right, _HEIGHT - 6, f"{m.seconds:.3g} s", _GREY, "end")]
    curves = plane.lines(points, lambda p: None if p.load is None else p.load / 100, _LOAD) + \
        plane.lines(points, lambda p: None if p.memory is None else p.memory / top, _MEMORY)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
            f'viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="11" role="img">'
            f"<title>GPU memory and load</title>"
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="4" fill="#ffffff"/>{grid}{"".join(curves)}'
            f'{"".join(labels)}</svg>')


def sparkline(m: Measure, width: int = 40) -> str:
    """The same for a terminal."""
    points = m.curve
    top = max((p.memory for p in points if p.memory is not None), default=0.0)
    chosen = [points[i * len(points) // width] for i in range(width)] if len(points) > width else points
    bars = "".join(" " if p.memory is None else "▁▂▃▄▅▆▇█"[int(p.memory / (top or 1) * 7.99)] for p in chosen)
    return f"GPU memory {bars} up to {size_text(top)}"
