"""For tests/mutate: the bugs that can be planted in a text of C, found by their form."""
import hashlib
import random
import re

KEYWORDS = {"if", "while", "for", "switch", "return", "sizeof", "assert", "else", "do", "defined"}
CLEANUP = re.compile(r"(^free_\w+|free|close\w*|unlink\w*|munmap|rmdir|_fini|_unref|_reset|"
                     r"_release|_destroy|_unlock|_leave|_stop|_decref)$")
SWAPPED = {"==": "!=", "!=": "==", "&&": "||", "||": "&&",
           "<": "<=", "<=": "<", ">": ">=", ">=": ">"}
NAMES = {"==": "equality", "!=": "equality", "&&": "logic", "||": "logic"}


class Bug:
    """text[start:end] becomes after; the id says the same bug after lines around it have moved."""

    def __init__(self, path, text, line, function, kind, start, end, after):
        self.path, self.line, self.function, self.kind = path, line, function, kind
        self.start, self.end, self.after = start, end, after
        first = text.rfind("\n", 0, start) + 1
        last = text.find("\n", end)
        self.old_line = " ".join(text[first:last].split())
        self.new_line = " ".join((text[first:start] + after + text[end:last]).split())
        self.id = None  # given by bugs_of(), which knows of equal ones

    def apply(self, text):
        return text[:self.start] + self.after + text[self.end:]

    def key(self):
        return self.path, self.function, self.old_line, self.new_line


def blanked(text):
    """The code alone, every character where it was: no comments, no texts, no preprocessor."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))

    def blank_text(match):
        return match.group(0)[0] + "_" * (len(match.group(0)) - 2) + match.group(0)[-1]

    def blank_any(match):
        return blank_text(match) if match.group(0)[0] in "\"'" else blank(match)

    text = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank_any,
                  text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", blank, text, flags=re.M)


def closing(code, at):
    """Where the bracket that opens at `at` is closed, or None."""
    depth = 0
    for place in range(at, min(len(code), at + 4000)):
        depth += (code[place] in "([{") - (code[place] in ")]}")
        if depth == 0:
            return place
    return None


def condition_before(code, mark):
    """Where the condition of the "?" at `mark` begins."""
    depth = 0
    for place in range(mark - 1, max(0, mark - 1000), -1):
        char = code[place]
        depth += (char in ")]}") - (char in "([{")
        if depth < 0 or depth == 0 and char in ",;{}?:" or \
                depth == 0 and re.match(r"(?<![=!<>])=(?!=)", code[place:place + 2]) and \
                code[place - 1] not in "=!<>":
            return place + 1
        if depth == 0 and re.match(r"return\b", code[place:place + 7]) and \
                not code[place - 1].isalnum() and code[place - 1] != "_":
            return place + 6
    return None


def conditions(code, text):
    for match in re.finditer(r"\b(?:if|while) (\()", code):
        start, end = match.start(1), closing(code, match.start(1))
        if end is not None and text[start:end + 1] not in ("(true)", "(0)", "(1)"):
            yield "condition", start, end + 1, f"(!{text[start:end + 1]})"
    for match in re.finditer(r" \? ", code):
        start = condition_before(code, match.start())
        if start is not None and code[start:match.start()].strip():
            start += len(code[start:]) - len(code[start:].lstrip())
            end = start + len(code[start:match.start()].rstrip())
            yield "condition", start, end, f"!({text[start:end]})"


def operators(code):
    for match in re.finditer(r"(?<=\s)(==|!=|&&|\|\||<=|>=|<|>)(?=\s)", code):
        sign = match.group(1)
        yield NAMES.get(sign, "bound"), match.start(), match.end(), SWAPPED[sign]
    for match in re.finditer(r" [+-] 1\b(?![.\w])", code):
        yield "bound", match.start(), match.end(), ""


def calls(code):
    """Statements that are nothing but a call."""
    for match in re.finditer(r"(?<=[;{}):e])\s*\n\s*((?:\(void\))?(\w+)\()", code):
        name, start = match.group(2), match.start(1)
        end = closing(code, match.end() - 1)
        if name in KEYWORDS or name.isupper() or end is None or code[end + 1:end + 2] != ";":
            continue
        yield "cleanup" if CLEANUP.search(name) else "call", start, end + 1, "(void)0"


def results(code, text, signature):
    """What a function returns."""
    for match in re.finditer(r"\breturn ([^;{}]+);", code):
        value, start, end = match.group(1), match.start(1), match.end(1)
        real = text[start:end]
        at = signature(start)
        if value in ("true", "false"):
            after = "false" if value == "true" else "true"
        elif value == "0":
            after = "1" if re.search(r"\b(size_t|uint\w*|unsigned|bool)\b", at) else "-1"
        elif value == "NVML_SUCCESS":
            after = "NVML_ERROR_UNKNOWN"
        elif value.startswith("NVML_ERROR_"):
            after = "NVML_SUCCESS"
        elif re.fullmatch(r"-?GP_E\w+|-1|status|result|error", value):
            after = "0"
        elif re.match(r"\w*err\w*\(", value) and closing(code, code.index("(", start)) == end - 1:
            after = f"((void){real}, 0)"
        else:
            continue
        yield "result", start, end, after


def enums_of(texts):
    """For every enumerator its neighbours."""
    near = {}
    for text in texts:
        for match in re.finditer(r"\benum\s*\w*\s*\{([^{}]*)\}", blanked(text)):
            body = re.sub(r"=[^,]*", "", match.group(1))
            names = [name for name in re.findall(r"\b[A-Z]\w+\b", body)
                     if not re.search(r"(COUNT|MAX|_N|_LAST|_END)$", name)]
            for before, after in zip(names, names[1:]):
                near.setdefault(before, []).append(after)
                near.setdefault(after, []).append(before)
    return near


def constants(code, near):
    for match in re.finditer(r"\b[A-Z][A-Z0-9_a-z]{3,}\b", code):
        if match.group(0) in near and code[match.start() - 5:match.start()] != "case ":
            for other in near[match.group(0)]:
                yield "constant", match.start(), match.end(), other


def functions_of(code):
    """(start, end, signature, name) of every function's body; the brackets are in column 0."""
    for match in re.finditer(r"^([A-Za-z_][^;{}=#]*\))\s*\n\{\n", code, re.M):
        end = code.find("\n}", match.end())
        names = re.findall(r"(\w+)\s*\(", match.group(1))
        yield match.end() - 2, end, match.group(1), names[0] if names else "?"


def bugs_of(path, text, near):
    """Every bug that can be planted in a file, in order."""
    code = blanked(text)
    bodies = list(functions_of(code))

    def body_at(place):
        return next((body for body in bodies if body[0] <= place < body[1]), None)

    def signature(place):
        body = body_at(place)
        return body[2].split("(")[0] if body else ""

    found = list(constants(code, near))
    enums = [match.span() for match in re.finditer(r"\benum\s*\w*\s*\{[^{}]*\}", code)]
    found = [bug for bug in found if not any(a <= bug[1] < b for a, b in enums)]
    if path.endswith(".c"):
        inner = [*conditions(code, text), *operators(code), *calls(code),
                 *results(code, text, signature)]
        found += [bug for bug in inner if body_at(bug[1])]
    bugs, seen = [], {}
    for kind, start, end, after in sorted(found):
        body = body_at(start)
        bug = Bug(path, text, text.count("\n", 0, start) + 1, body[3] if body else "-", kind,
                  start, end, after)
        place = (bug.key(), start - text.rfind("\n", 0, start), kind)
        seen[place] = seen.get(place, 0) + 1
        bug.id = hashlib.sha1(repr((place, seen[place])).encode()).hexdigest()[:8]
        bugs.append(bug)
    return bugs


def folder_of(path):
    return path.split("/")[1] if path.startswith("src/") else path.split("/")[0]


def drawn(bugs, folders, seed):
    """All bugs in a random order: each time a folder, then a line of it, then a bug of the line."""
    chance = random.Random(seed)
    pools = {folder: {} for folder in folders}
    for bug in bugs:
        if folder_of(bug.path) in pools:
            pools[folder_of(bug.path)].setdefault((bug.path, bug.line), []).append(bug)
    lines = {folder: sorted(pool) for folder, pool in pools.items()}
    for folder in folders:
        chance.shuffle(lines[folder])
    while any(lines.values()):
        folder = chance.choice([name for name in folders if lines[name]])
        here = pools[folder][lines[folder].pop()]
        yield chance.choice(here)
