#!/usr/bin/env python3
"""Draws the pictures in docs/pictures from what the program shows, kept in tests/golden by its tests: screens of
gpulse top (top-picture-*.ansi), a sequence of them (top-movie.ansi), and a session in a shell (session-kill.txt).

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
PROMPT = 32
COLORS = {PROMPT: "#5fd38d", 79: "#5fd7af", 110: "#87afd7", 117: "#87d7ff", 141: "#af87ff", 180: "#d7af87",
          203: "#ff5f5f", 221: "#ffd75f", 246: "#949494"}  # the dark theme of src/tui/theme.c
LIGHT = {BACKGROUND: "#f6f8fa", FOREGROUND: "#24292f", "#5fd38d": "#1a7f37", "#5fd7af": "#005f5f", "#87afd7": "#005f87",
         "#87d7ff": "#005faf", "#af87ff": "#5f5faf", "#d7af87": "#626262", "#ff5f5f": "#870000", "#ffd75f": "#875f00",
         "#949494": "#626262"}  # on a light page: the light theme
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


def width_of(line):
    return len(re.sub(r"\x1b\[[0-9;]*m", "", line))


def draw_line(y, line):
    """The parts of the picture for a line of text."""
    return [part for run in runs(line) for part in draw_run(*run, MARGIN + y * CELL_H)]


def frame(width, height, title, content):
    """A picture of this many columns and lines."""
    w, h = width * CELL_W + 2 * MARGIN, height * CELL_H + 2 * MARGIN
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" height="{h}"'
             f' font-family="ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace"'
             f' font-size="13" role="img"><title>{escape(title)}</title>',
             "<style>@media (prefers-color-scheme:light){"
             + "".join(f'[fill="{dark}"]{{fill:{light}}}' for dark, light in LIGHT.items()) + "}</style>",
             f'<rect width="{w}" height="{h}" rx="8" fill="{BACKGROUND}"/>']
    parts += [f'<pattern id="dots{color[1:]}" x="{MARGIN + 0.5}" y="{MARGIN + 0.5}" width="4"'
              f' height="4.25" patternUnits="userSpaceOnUse">{rectangle(0, 0, 3, 3, color)}</pattern>'
              for color in COLORS.values()]
    return "\n".join([*parts, *content]) + "\n</svg>\n"


def draw(text, title):
    lines = text.split("\n")[:-1]
    parts = [part for y, line in enumerate(lines) for part in draw_line(y, line)]
    return frame(max(map(width_of, lines)), len(lines), title, parts)


def intervals(shown):
    """The (begin, end) of each series of frames in which something is shown."""
    edges = [i for i in range(len(shown) + 1) if (i > 0 and shown[i - 1]) != (i < len(shown) and shown[i])]
    return tuple(zip(edges[::2], edges[1::2]))


def animate(frames, title):
    """An animation that repeats frames, each (seconds, lines). A line that several frames share is drawn
    once. Readers who want no motion get the last frame."""
    starts = [0]
    for seconds, _ in frames:
        starts.append(starts[-1] + seconds)
    height = max(len(lines) for _, lines in frames)
    groups = {}  # the lines that are shown at the same times
    for y in range(height):
        column = [lines[y] if y < len(lines) else "" for _, lines in frames]
        for line in filter(None, dict.fromkeys(column)):
            groups.setdefault(intervals([other == line for other in column]), []).append((y, line))
    style, parts = [], []
    for number, (times, lines) in enumerate(groups.items()):
        drawn = [part for y, line in lines for part in draw_line(y, line)]
        if times == ((0, len(frames)),):
            parts += drawn
            continue
        keys = {0: "hidden"}
        for begin, end in times:
            keys |= {begin: "visible", end: "hidden"}
        keys.pop(len(frames), None)
        steps = "".join(f"{100 * starts[i] / starts[-1]:.4g}%{{visibility:{state}}}" for i, state in keys.items())
        style.append(f"@keyframes k{number}{{{steps}}}")
        style.append(f".k{number}{{visibility:{list(keys.values())[-1]};animation-name:k{number}}}")
        parts += [f'<g class="m k{number}">', *drawn, "</g>"]
    style += [f".m{{animation:{starts[-1]:g}s step-end infinite}}",
              "@media (prefers-reduced-motion:reduce){.m{animation:none}}"]
    # The names of the animations come after the shorthand that would reset them.
    style = [style[-2], *style[:-2], style[-1]]
    return frame(max(width_of(line) for _, lines in frames for line in lines), height, title,
                 ["<style>", *style, "</style>", *parts])


def movie(text):
    """The frames of a file in which each follows a line "==== SECOND"."""
    parts = re.split(r"^==== \d+\n", text, flags=re.M)[1:]
    return [(1, part.split("\n")[:-1]) for part in parts]


def session(text):
    """The frames of a session in a shell: commands and answers are typed, and outputs appear at once."""
    prompt, bold, normal = "\x1b[0;32m$\x1b[0m ", "\x1b[0;1m", "\x1b[0m"
    screen, frames = [], []
    for line in text.splitlines():
        command, question = re.match(r"\$ (.*)", line), re.match(r"(.*\[y/N\] )(.*)", line)
        if command:
            frames.append((1.5, [*screen, f"{prompt}█"]))
            frames += [(0.06, [*screen, f"{prompt}{bold}{command[1][:i]}{normal}█"])
                       for i in range(1, len(command[1]) + 1)]
            screen.append(f"{prompt}{bold}{command[1]}{normal}")
            frames.append((0.5, screen[:]))
        elif question:
            frames.append((1.8, [*screen, f"{question[1]}█"]))
            screen.append(f"{question[1]}{bold}{question[2]}{normal}")
            frames.append((0.6, screen[:]))
        else:
            screen.append(line)
    frames.append((4, [*screen, f"{prompt}█"]))
    return frames


def pictures():
    """The name and the content of every picture."""
    golden = ROOT / "tests/golden"
    for path in sorted(golden.glob("top-picture-*.ansi")):
        name = path.stem.replace("top-picture-compare-", "compare/").replace("-picture", "")
        yield f"{name}.svg", draw(path.read_text(), "gpulse top")
    yield "top.svg", animate(movie((golden / "top-movie.ansi").read_text()), "gpulse top")
    yield "kill.svg", animate(session((golden / "session-kill.txt").read_text()), "gpulse kill")


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    different = []
    for name, drawn in pictures():
        picture = ROOT / "docs/pictures" / name
        if check and (not picture.exists() or picture.read_text() != drawn):
            different.append(picture.name)
        elif not check:
            picture.parent.mkdir(parents=True, exist_ok=True)
            picture.write_text(drawn)
    if different:
        sys.exit(f"not what scripts/pictures.py draws: {', '.join(different)}")


main()
