#!/usr/bin/env python3
"""Draws the pictures of `gpulse top` in docs/pictures from the screens in tests/golden.

usage: scripts/pictures.py [--check]

--check: only check whether the pictures are up to date.
"""
import re
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
CELL_W, CELL_H, MARGIN = 8, 17, 10
BASELINE = 13  # of a line, from its top
BACKGROUND, FOREGROUND = "#16181d", "#d8dce3"
COLORS = {31: "#ff6b68", 32: "#5fd38d", 33: "#e5c07b", 34: "#6cb6ff", 35: "#c792ea", 36: "#56c8d8"}
EIGHTHS_LOW = "▁▂▃▄▅▆▇█"
EIGHTHS_LEFT = "▏▎▍▌▋▊▉█"


def runs(line):
    """The runs of a line with the same attributes: column, text, colour, bold, reversed."""
    x, color, bold, reverse = 0, FOREGROUND, False, False
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b"):
            codes = [int(code) for code in part[2:-1].split(";")]
            color = next((COLORS[code] for code in codes if code in COLORS), FOREGROUND)
            bold, reverse = 1 in codes, 7 in codes
        elif part:
            yield x, part, color, bold, reverse
            x += len(part)


def rectangle(x, y, w, h, color):
    return f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" fill="{color}"/>'


def block(blocks, x, y, color):
    """Block characters are drawn as rectangles, because fonts leave gaps between them."""
    if blocks[0] in EIGHTHS_LOW[:-1]:
        height = CELL_H * (EIGHTHS_LOW.index(blocks) + 1) / 8
        return rectangle(x, y + CELL_H - height, CELL_W, height, color)
    width = len(blocks) * CELL_W * (EIGHTHS_LEFT.index(blocks[0]) + 1) / 8
    return rectangle(x, y + 3, width, CELL_H - 5, color)


def dots(char, x, y):
    """The dots of a braille character, as path segments."""
    bits = ord(char) - 0x2800
    places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)]
    return "".join(f"M{x + 0.5 + 4 * column:g} {y + 0.5 + 4.25 * row:g}h3v3h-3z"
                   for i, (column, row) in enumerate(places) if bits >> i & 1)


def draw_run(x, text, color, bold, reverse, top):
    left = MARGIN + x * CELL_W
    if reverse:
        yield rectangle(left, top, len(text) * CELL_W, CELL_H, color)
        color = BACKGROUND
    for match in re.finditer("⣿+", text):  # one pattern instead of single dots
        yield rectangle(left + match.start() * CELL_W, top, len(match.group()) * CELL_W, CELL_H,
                        f"url(#dots{color[1:]})")
    path = "".join(dots(c, left + i * CELL_W, top) for i, c in enumerate(text)
                   if 0x2800 <= ord(c) < 0x28ff)
    if path:
        yield f'<path d="{path}" fill="{color}"/>'
    for match in re.finditer("█+|[▁-▇▉-▏]", text):
        yield block(match.group(), left + match.start() * CELL_W, top, color)
    for match in re.finditer(r"[^\s▁-▏⠀-⣿]+(?: [^\s▁-▏⠀-⣿]+)*", text):
        weight = ' font-weight="bold"' if bold else ""
        words = match.group()
        yield (f'<text x="{left + match.start() * CELL_W}" y="{top + BASELINE}" fill="{color}"'
               f'{weight} textLength="{len(words) * CELL_W}">{escape(words)}</text>')


def draw(text, title):
    lines = text.split("\n")[:-1]
    width = max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines)
    w, h = width * CELL_W + 2 * MARGIN, len(lines) * CELL_H + 2 * MARGIN
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}"'
             f' font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace"'
             f' font-size="13" role="img"><title>{escape(title)}</title>',
             f'<rect width="{w}" height="{h}" rx="8" fill="{BACKGROUND}"/>']
    parts += [f'<pattern id="dots{color[1:]}" x="{MARGIN + 0.5}" y="{MARGIN + 0.5}" width="4"'
              f' height="4.25" patternUnits="userSpaceOnUse">{rectangle(0, 0, 3, 3, color)}</pattern>'
              for color in COLORS.values()]
    for y, line in enumerate(lines):
        for run in runs(line):
            parts += draw_run(*run, MARGIN + y * CELL_H)
    return "\n".join(parts) + "\n</svg>\n"


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    different = []
    for golden in sorted((ROOT / "tests/golden").glob("top-picture-*.ansi")):
        picture = ROOT / "docs/pictures" / f"{golden.stem.replace('-picture', '')}.svg"
        drawn = draw(golden.read_text(), "gpulse top")
        if check and (not picture.exists() or picture.read_text() != drawn):
            different.append(picture.name)
        elif not check:
            picture.parent.mkdir(exist_ok=True)
            picture.write_text(drawn)
    if different:
        sys.exit(f"not what scripts/pictures.py draws: {', '.join(different)}")


main()
