#!/usr/bin/env python3
"""Generates C code for the words that a published report may contain: words.py SOURCES OUT.c OUT.d

These are the words in gpulse's own texts: string literals of C files, the tables in data/tables, what
data/explain says of the kernel's lines, and the list src/doctor/bundle/words.txt, where '#' begins a comment line. A '#' at the end of a word stands for a
number or a version: "python#" matches python3.11. A printf conversion after a word counts as one, too.
Words are compared case-insensitively.
"""
import re
import sys
from pathlib import Path

SOURCES = ("src/doctor/**/*.[ch]", "src/doctor/**/*.def", "src/cmd/doctor*.c", "src/model/*.def", "src/source/*.c",
           "src/source/nvml/*.c", "src/base/err.c", "data/tables/*.csv",
           "data/explain/kernel.ini", "src/doctor/bundle/words.txt")
LITERAL = re.compile(r'/\*.*?\*/|#include[^\n]*|"((?:[^"\\\n]|\\.)*)"', re.DOTALL)  # or text without any
CONVERSION = r"%[-+ 0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j)?[a-zA-Z]"
WORD = re.compile(r"[\w.+-]+#?")
# With a number appended, these are common names of machines and users.
NAMES = {"gpu#", "host#", "node#", "server#", "machine#", "user#", "rank#"}


def c_texts(text):
    for literal in LITERAL.findall(text):
        literal = re.sub(r"\\.", " ", literal).replace("#", " ").replace("%%", " ")
        # text glued to the end of a conversion varies; a word before it has a number appended
        yield re.sub(rf"{CONVERSION}(?:{CONVERSION}|[\w.+-])*", "# ", literal)


def list_texts(text):
    return [line for line in text.splitlines() if not line.startswith("#")]


def said_texts(text):
    """Of entries: what is said, and not the lines that it is said of."""
    text = re.sub(r"\n +", " ", text)
    return re.findall(r"^(?:title|cause|check|fix) = (.*)$", text, re.MULTILINE)


def words_of(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        text = text.replace("#", " ")
    texts = {".c": c_texts, ".h": c_texts, ".def": c_texts, ".ini": said_texts}
    for part in texts.get(path.suffix, list_texts)(text):
        for word in WORD.findall(part):
            core = word.rstrip("#").strip(".+-_").lower()
            if len(core) > 1 and not core[0].isdigit():
                yield core + "#" if word.endswith("#") else core


def main(root, out, depfile):
    names = sorted(str(path) for pattern in SOURCES for path in Path(root).glob(pattern))
    words = {word for name in names for word in words_of(Path(name))} - NAMES
    rows = "".join(f'    "{word}",\n' for word in sorted(words, key=str.encode))
    Path(out).write_text(
        '/* Made by scripts/words.py. */\n#include "doctor/bundle/words.h"\n\n'
        f"const char *const gp_words[] = {{\n{rows}}};\n\nconst size_t gp_word_count = {len(words)};\n", encoding="utf-8")
    Path(depfile).write_text(f"{out}: {' '.join(names)}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
