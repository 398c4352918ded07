#!/usr/bin/env python3
"""Generates C code from what is known of error lines: explain.py DATA OUT.c EXAMPLES.c OUT.d

DATA/explain/FAMILY.ini has the entries of a family, DATA/tables/{cuda,nvml}_errors.csv the codes,
which become entries, too. data/explain/README.md describes the keys. An invalid entry fails the
build with its file and line: an unknown key, a second entry with the same id, a pattern that can
never win, an example that is not explained by its own entry. The structs are in
src/doctor/entries.h. The examples are for tests: they are a file of their own, which no program links.
"""
import csv
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

ONE = ["title", "cause", "check", "look", "found", "fix", "source", "case", "generic", "log"]
MANY = ["match", "unless", "example", "maybe"]
NEEDED = ["title", "match", "cause", "fix", "source", "example"]
SHORTEST = 6  # characters of the longest piece of a pattern: the window by which lines are searched
TELLING = 30  # a code's text of this length says by itself whose error it is
HEDGE = re.compile(r"\b(usually|mostly|often|probably|typically|commonly|most likely)\b")
TWICE = re.compile(r"\b(maybe|perhaps|possibly)\b")
VERDICTS = {"": "OK", "info": "INFO", "warn": "WARN", "fail": "FAIL"}
NUMBER = re.compile(r"(?<![A-Za-z0-9_])[0-9]+$")  # not the digits of a name, as in _ZN3c10
DIGITS = set("0123456789")
ORDINARY = 1000  # is added to the weight of patterns that are not generic


class Bad(Exception):
    pass


# ---- reading

def sections(path):
    """Yields line, name and items (line, key, value); a value continues on indented lines."""
    name, items, start = None, [], 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        where = f"{path}:{number}"
        if any(ord(c) < 32 for c in line):
            raise Bad(f"{where}: a control character")
        if not line.strip() or line.startswith(("#", ";")):
            continue
        if line.startswith(" ") and items:
            items[-1][2] = (items[-1][2] + " " + line.strip()).strip()
        elif line.startswith("["):
            if name is not None:
                yield start, name, items
            if not re.fullmatch(r"\[[a-z0-9][a-z0-9._-]*\]", line):
                raise Bad(f"{where}: {line} is no section; write [program.word] in lower case")
            name, items, start = line[1:-1], [], number
        else:
            key, equals, value = line.partition("=")
            if not equals or name is None or line.startswith(" "):
                raise Bad(f"{where}: neither [id] nor key = value")
            items.append([number, key.strip(), value.strip()])
    if name is not None:
        yield start, name, items


def pieces_of(pattern, where):
    """The texts between the stars; backslash before a star or backslash takes its meaning."""
    pieces, piece, rest = [], "", iter(pattern)
    for c in rest:
        if c == "\\":
            piece += next(rest, "\\")
        elif c == "*":
            pieces.append(piece)
            piece = ""
        else:
            piece += c
    pieces = [p for p in pieces + [piece] if p]
    if not pieces or max(map(len, pieces)) < SHORTEST:
        raise Bad(f"{where}: '{pattern}' needs a piece of {SHORTEST} or more characters")
    return pieces


class Pattern:
    def __init__(self, entry, pieces, any_case=False, is_word=False, is_generic=False):
        self.entry, self.any_case, self.is_word = entry, any_case, is_word
        self.pieces = [p.lower() for p in pieces] if any_case else pieces
        self.ends_number = not is_word and NUMBER.search(pieces[-1]) is not None
        self.weight = sum(map(len, pieces)) + (0 if is_generic else ORDINARY)
        self.window = ""  # set by the index

    def matches(self, line):
        if self.is_word:
            return re.search(r"(?<![A-Za-z0-9_])" + re.escape(self.pieces[0]) + r"(?![A-Za-z0-9_])",
                             line) is not None
        line, at = line.lower() if self.any_case else line, 0
        for i in range(len(self.pieces)):
            at = self.end_in(line, i, at)
            if at < 0:
                return False
        return True

    def end_in(self, text, i, at):
        """The end of the i-th piece in a text, from at on; -1: it is not there."""
        piece = self.pieces[i]
        at = text.find(piece, at)
        if self.ends_number and i + 1 == len(self.pieces):
            while at >= 0 and text[at + len(piece):at + len(piece) + 1] in DIGITS:
                at = text.find(piece, at + 1)
        return at + len(piece) if at >= 0 else -1

    def covers(self, other):
        """Whether it matches wherever the other one does."""
        if self.is_word or other.is_word or (other.any_case and not self.any_case):
            return False
        pieces = [p.lower() for p in other.pieces] if self.any_case else other.pieces
        i = at = 0
        for k in range(len(self.pieces)):
            while i < len(pieces) and self.end_in(pieces[i], k, at) < 0:
                i, at = i + 1, 0
            if i == len(pieces):
                return False
            at = self.end_in(pieces[i], k, at)
        ends = at == len(pieces[i]) and not (other.ends_number and i + 1 == len(pieces))
        return not (self.ends_number and ends)  # a digit may follow there


class Entry:
    def __init__(self, identity, family, where):
        self.id, self.family, self.where = identity, family, where
        self.values = dict.fromkeys(ONE, "")
        self.name, self.maybe, self.patterns, self.unless, self.examples = "", "", [], [], []


def read_entry(entry, items, path, is_code):
    texts = {key: [] for key in ONE + MANY}
    for number, key, value in items:
        where = f"{path}:{number}"
        if key not in texts:
            raise Bad(f"{where}: unknown key '{key}'; there are: {' '.join(ONE + MANY)}")
        if not value:
            raise Bad(f"{where}: {key} has no value")
        if key in ONE and texts[key]:
            raise Bad(f"{where}: a second {key}")
        texts[key].append((where, value))
    if is_code and set(k for k in texts if texts[k]) - {"maybe", "check", "look", "found", "log"}:
        raise Bad(f"{entry.where}: {entry.id} is in data/tables: only maybe, check, look, found and log are added here")
    for key in [] if is_code else NEEDED:
        if not texts[key]:
            raise Bad(f"{entry.where}: [{entry.id}] has no {key}")
    for key, allowed in (("case", "any"), ("generic", "yes")):
        if texts[key] and texts[key][0][1] != allowed:
            raise Bad(f"{texts[key][0][0]}: {key} can only be '{allowed}'")
    if texts["log"] and texts["log"][0][1] not in VERDICTS:
        raise Bad(f"{texts['log'][0][0]}: log can only be info, warn or fail")
    for where, cause in texts["cause"]:
        if found := HEDGE.search(cause):
            raise Bad(f"{where}: the cause has '{found[0]}': what the line does not prove is a maybe")
    for where, maybe in texts["maybe"]:
        if found := HEDGE.search(maybe) or TWICE.search(maybe):
            raise Bad(f"{where}: the maybe has '{found[0]}': it is printed after \"maybe\" already")
    for key in ONE:
        if texts[key]:
            entry.values[key] = texts[key][0][1]
    for key in "look", "found":  # a list that goes on in the next line
        entry.values[key] = entry.values[key].replace(" ", "")
    flags = {"any_case": bool(texts["case"]), "is_generic": bool(texts["generic"])}
    entry.patterns += [Pattern(entry, pieces_of(v, where), **flags) for where, v in texts["match"]]
    entry.unless += [Pattern(entry, pieces_of(v, where), any_case=flags["any_case"])
                     for where, v in texts["unless"]]
    entry.maybe = "; or ".join(value for _, value in texts["maybe"])
    entry.examples += texts["example"]


# ---- codes

def add_code(entries, identity, title, row, owner):
    """An entry for a row of a table. A short text means something only after the printing
    program's name and a word for an error."""
    entry = entries[identity] = Entry(identity, "codes", f"{owner}_errors.csv")
    names = [row[key] for key in ("name", "driver_name") if row.get(key)]
    entry.name = ", ".join(names)
    entry.values.update(title=title, cause=row["words"], fix=row["advice"], source=row["source"])
    if row["number"] == "0":
        return
    entry.patterns += [Pattern(entry, [name], is_word=True) for name in names]
    text = row["text"]
    if owner in text.lower() or (owner == "cuda" and len(text) >= TELLING):
        entry.patterns.append(Pattern(entry, [text], any_case=True))
    elif text and len(text) >= TELLING:
        entry.patterns.append(Pattern(entry, [owner, text], any_case=True))
    elif text:
        starts = [[owner, "rror"], [owner, "fail"]] + [["gpuassert: "], ["cudasuccess ("]] * (owner == "cuda")
        entry.patterns += [Pattern(entry, [*start, text], any_case=True) for start in starts]
    # Compilers name codes, too; AMD's and Moore Threads' runtimes have the same texts as CUDA.
    other = ["was not declared", " is undefined", "undeclared", "not handled in switch"]
    other += ["hipError", "MUSA "] if owner == "cuda" else []
    entry.unless += [Pattern(entry, [word]) for word in other]


def add_codes(entries, folder):
    for owner, title in (("cuda", "CUDA"), ("nvml", "NVML")):
        with (folder / f"{owner}_errors.csv").open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                add_code(entries, f"{owner}.{row['number']}", f"{title} error {row['number']}", row,
                         owner)


# ---- whole table

def read_family(path, entries, families):
    family = {"about": "", "words": "", "check": ""}
    for number, name, items in sections(path):
        where = f"{path}:{number}"
        if name == "family":
            for at, key, value in items:
                if key not in family:
                    raise Bad(f"{path}:{at}: unknown key '{key}'; there are: {' '.join(family)}")
                family[key] = value
        elif name in entries and entries[name].family != "codes":
            raise Bad(f"{where}: [{name}] is also at {entries[name].where}")
        else:
            is_code = name in entries
            entry = entries.setdefault(name, Entry(name, path.stem, where))
            entry.where = where
            read_entry(entry, items, path, is_code)
    if not all(family.values()):
        raise Bad(f"{path}:1: [family] needs about, words and check")
    families[path.stem] = family


def windows(text):
    """All that a line can be searched for."""
    text = text.lower()
    return [text[i:i + SHORTEST] for i in range(len(text) - SHORTEST + 1)]


def rarest_window(pattern, counts):
    """Of equally rare ones the first."""
    return min((w for piece in pattern.pieces for w in windows(piece)), key=counts.get)


class Index:
    """Patterns by their rarest windows: most of them need not be tried."""
    def __init__(self, patterns):
        counts = Counter(w for p in patterns for piece in p.pieces for w in windows(piece))
        self.by_window = defaultdict(list)
        for p in patterns:
            p.window = rarest_window(p, counts)
            self.by_window[p.window].append(p)

    def candidates(self, texts):
        for window in {w for text in texts for w in windows(text)}:
            yield from self.by_window.get(window, ())


def winner(index, line):
    """The patterns with the greatest weight, one of each entry."""
    found = [p for p in index.candidates([line])
             if p.matches(line) and not any(u.matches(line) for u in p.entry.unless)]
    best = max((p.weight for p in found), default=0)
    entries = {p.entry.id: p for p in found if p.weight == best}
    return list(entries.values())


def check_patterns(patterns, index):
    """No pattern may lose wherever it matches. As longer patterns win, only an equal one, or any
    that is not generic, can do that to it."""
    equals = {}
    for p in patterns:
        is_generic = p.weight < ORDINARY
        key = (tuple(piece.lower() for piece in p.pieces), p.is_word, is_generic)
        ordinary = [q for q in index.candidates(p.pieces) if q.weight >= ORDINARY] if is_generic else []
        for q in equals.get(key, []) + ordinary:
            if q.covers(p) or q.weight == p.weight and (p.covers(q) or q.pieces == p.pieces):
                raise Bad(f"{p.entry.where}: a pattern of [{p.entry.id}], '{'*'.join(p.pieces)}', "
                          f"is shadowed by '{'*'.join(q.pieces)}' of [{q.entry.id}]")
        equals.setdefault(key, []).append(p)


def check_examples(entries, index):
    for entry in entries.values():
        for where, line in entry.examples:
            found = winner(index, line)
            if [p.entry for p in found] != [entry]:
                ids = " and ".join(p.entry.id for p in found) or "no entry"
                raise Bad(f"{where}: the example of [{entry.id}] is explained by {ids}")


# ---- writing

def quote(text):
    body = text.replace("\\", "\\\\").replace('"', '\\"').replace("??", "?\\?")
    return f'"{body}"'


def quote_window(text):
    """Its first bytes; a character of several may be cut."""
    return '"' + "".join(chr(b) if chr(b).isalnum() and b < 128 else f"\\{b:03o}" for b in text.encode()[:SHORTEST]) + '"'


def joined(pattern):
    return quote("\n".join(pattern.pieces)).replace("\n", "\\n")


def write(out, entries, families, patterns):
    """Returns the examples."""
    names = sorted(families)
    order = sorted(entries.values(), key=lambda e: e.id.encode())
    index = {entry.id: i for i, entry in enumerate(order)}
    out.append("const struct gp_family gp_families[] = {\n")
    for name in names:
        f = families[name]
        count = sum(e.family == name for e in order)
        out.append(f"    {{{quote(name)}, {quote(f['about'])}, {quote(f['words'])}, "
                   f"{quote(f['check'])}, {count}}},\n")
    out.append(f"}};\nconst size_t gp_family_count = {len(names)};\n\n")
    unless = [u for entry in order for u in entry.unless]
    out.append("const struct gp_error_entry gp_entries[] = {\n")
    first = 0
    for e in order:
        v = e.values
        texts = ", ".join(quote(t) for t in (e.id, e.family, v["title"], e.name, v["cause"],
                                            e.maybe, v["check"], v["look"], v["found"], v["fix"],
                                            v["source"]))
        out.append(f"    {{{texts}, {first}, {len(e.unless)}, GP_VERDICT_{VERDICTS[v['log']]}}},\n")
        first += len(e.unless)
    out.append(f"}};\nconst size_t gp_entry_count = {len(order)};\n\n")
    for name, rows in (("gp_patterns", patterns), ("gp_unless", unless or patterns[:1])):
        out.append(f"const struct gp_pattern {name}[] = {{\n")
        for p in rows:
            window = p.window or p.pieces[0].lower()[:SHORTEST]
            flags = ", ".join(str(f).lower() for f in (p.any_case, p.is_word, p.ends_number))
            out.append(f"    {{{joined(p)}, {quote_window(window)}, "
                       f"{index[p.entry.id]}, {p.weight}, {flags}}},\n")
        out.append("};\n")
    out.append(f"const size_t gp_pattern_count = {len(patterns)};\n")
    out.append(f'_Static_assert({len(patterns)} <= GP_PATTERNS_MAX, "too many patterns");\n\n')
    examples = [(e, line) for e in order for _, line in e.examples]
    return (["const struct gp_entry_example gp_entry_examples[] = {\n"] +
            [f"    {{{index[e.id]}, {quote(line)}}},\n" for e, line in examples] +
            [f"}};\nconst size_t gp_entry_example_count = {len(examples)};\n"])


def main():
    folder, target, tested, needs = map(Path, sys.argv[1:])
    entries, families = {}, {}
    head = ["/* Made by scripts/explain.py of the files in data/explain. */\n",
            '#include "doctor/check.h"\n#include "doctor/entries.h"\n\n']
    out = list(head)
    paths = sorted((folder / "explain").glob("*.ini"))
    try:
        add_codes(entries, folder / "tables")
        for path in paths:
            read_family(path, entries, families)
        patterns = [p for entry in entries.values() for p in entry.patterns]
        index = Index(patterns)
        check_patterns(patterns, index)
        check_examples(entries, index)
        examples = write(out, entries, families, patterns)
    except (Bad, OSError, csv.Error, UnicodeError) as bad:
        sys.exit(f"explain.py: {bad}")
    target.write_text("".join(out), encoding="utf-8")
    tested.write_text("".join(head + examples), encoding="utf-8")
    needed = [folder / "explain", *paths, *(folder / "tables").glob("*_errors.csv")]
    needs.write_text(
        f"{target} {tested}: " + " ".join(str(p).replace(" ", "\\ ") for p in needed) + "\n",
        encoding="utf-8")


if __name__ == "__main__":
    main()
