#!/usr/bin/env python3
"""Checks of the source text itself; one TAP test per rule.

Exceptions are listed in tests/lint/exceptions.txt, one per line: "RULE PATH[:NAME]  why". A path that
ends in '*' covers all files that begin with it. The list is meant to shrink.
"""
import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# A folder may include what ranks lower, and itself.
RANKS = {
    "base": 0,
    "inject": 1,
    "model": 1,
    "source": 2, "proc": 2,
    "sample": 3,
    "out": 4,
    "why": 5,
    "smi": 6, "jobs": 6, "tui": 6, "tape": 6,
    "doctor": 7,
    "doctor/readers": 8,
    "doctor/explain": 9,
    "doctor/checks": 10,
    "doctor/advise": 11, "doctor/bundle": 11,
    "bench": 12, "verify": 12,
    "lib": 13,
    "cmd": 14,
}
INCLUDE_PATHS = ("src", "abi", "sim", "include", ".")

MAX_LINE = 100
MAX_FILE = 600        # of the program
MAX_FILE_OTHER = 1000  # tests, and declarations of others
MAX_FUNCTION = 70

BANNED = """strcpy strcat strncpy strncat stpcpy sprintf vsprintf gets strtok strtok_r atoi atol atoll
    atof scanf fscanf vscanf localtime gmtime ctime asctime mktemp tmpnam tempnam tmpfile
    system popen alloca rand srand random usleep bzero getpwuid getpwnam getgrgid
    gethostbyname pthread_cancel vfork""".split()
PRINTING = "printf vprintf puts putchar perror exit setlocale umask chdir".split()
STARTING = """fork clone execl execle execlp execv execve execvp execvpe fexecve posix_spawn
    posix_spawnp dlopen""".split()
JUDGING = """gp_exam_report gp_exam_why gp_exam_link gp_exam_tool gp_exam_remedy gp_exam_command
    gp_exam_module_setting gp_exam_advice gp_exam_unreadable gp_exam_has_failed gp_exam_blame""".split()
PRINTING_FOLDERS = ("src/cmd/", "src/out/", "src/tui/term.")

TEXT_SUFFIXES = {".c", ".h", ".def", ".build", ".md", ".sh", ".py", ".bats", ".bash", ".fish",
                 ".json", ".csv", ".ini", ".service", ".txt", ".dict", ".yml"}
RAW_FOLDERS = ("tests/golden/", "tests/fuzz/corpus/", "data/captures/")


def tracked_files():
    try:
        listing = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, check=True)
        names = [name for name in listing.stdout.decode().split("\0") if name]
    except (FileNotFoundError, subprocess.CalledProcessError):  # a tarball, or no git
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
        names = [name for name in names
                 if not re.match(r"(build(-\w+)?|\.git)/", name) and "__pycache__" not in name]
    return sorted(name for name in set(names) if (ROOT / name).is_file())


FILES = tracked_files()
C_FILES = [name for name in FILES if name.endswith((".c", ".h"))]
OWN_C = [name for name in C_FILES if name.startswith(("src/", "sim/", "abi/", "include/"))]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def blank(match):
    """Replaces comments and string contents by blanks, which keeps line numbers."""
    found = match.group(0)
    if found[0] in "\"'":
        return found[0] + found[0]
    return re.sub(r"[^\n]", " ", found)


def code_of(name):
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank,
                  text_of(name), flags=re.S)


def numbered(text):
    return enumerate(text.split("\n"), 1)


# ---------------------------------------------------------------- rules: yield path, line, message

def folder_of(name):
    """The layer of a file: "base" for src/base/cli.h, "doctor/checks" for src/doctor/checks/amd.c, "sim" for sim/x.c."""
    parts = name.split("/")
    if parts[0] == "src":
        folder = "/".join(parts[1:-1])
        return folder if folder in RANKS else parts[1]
    return parts[0]


def resolve(name, target):
    here = str(Path(name).parent)
    for base in (here, *INCLUDE_PATHS):
        path = (ROOT / base / target).resolve()
        if path.is_file() and ROOT in path.parents:
            return str(path.relative_to(ROOT))
    return None


def may_include(name, included):
    mine, other = folder_of(name), folder_of(included)
    if mine == other:
        return True
    if mine == "abi":
        return False
    if other == "abi":
        return mine in ("sim", "source", "bench", "inject")
    if other == "include":
        return mine in ("lib", "cmd")
    if mine == "sim":
        return other in ("base", "data")
    if mine in RANKS and other in RANKS:
        return RANKS[other] < RANKS[mine]
    return mine in RANKS and other == "data"


def rule_layers():
    for name in OWN_C + [n for n in FILES if n.endswith(".def")]:
        for number, line in numbered(text_of(name)):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            included = match and resolve(name, match.group(1))
            if included and not may_include(name, included):
                yield name, number, f"{folder_of(name)} must not include {included}"


def rule_unknown_folder():
    for name in OWN_C:
        if name.startswith("src/") and folder_of(name) not in RANKS:
            yield name, 1, f"src/{folder_of(name)} has no rank in tests/lint/lint.py"


def rule_curses():
    for name in OWN_C:
        for number, line in numbered(text_of(name)):
            if re.match(r"\s*#\s*include\s+<(n?curses[\w/]*|term)\.h>", line) and \
                    not name.startswith("src/tui/term"):
                yield name, number, "only src/tui/term.c may use curses"


def calls(name, functions):
    pattern = re.compile(r"(?<![\w.>])(" + "|".join(functions) + r")\s*\(")
    for number, line in numbered(code_of(name)):
        if match := pattern.search(line):
            yield name, number, f"{match.group(1)}() is not used here"


def rule_banned_functions():
    for name in OWN_C:
        yield from calls(name, BANNED)


def rule_printing_below_cmd():
    for name in OWN_C:
        if not name.startswith("src/") or name.startswith(PRINTING_FOLDERS):
            continue
        yield from calls(name, PRINTING)
        for number, line in numbered(code_of(name)):
            if re.search(r"\b(stdout|stderr)\b", line):
                yield name, number, "only src/cmd, src/out and src/tui/term.c write to the user"


def rule_doctor_starts_nothing():
    """It examines broken machines, below roots that may belong to anybody."""
    for name in OWN_C:
        if name.startswith("src/doctor/"):
            yield from calls(name, STARTING)


def rule_headers_name_the_file():
    """In a header of several files, a comment that begins with a file's name stands above what is in that file."""
    defined = {match.group(1): Path(name).stem for name in OWN_C if name.endswith(".c")
               for match in re.finditer(r"^\w[^\n;#]*?\b(gp_\w+)\([^;{}]*\)\n\{", code_of(name), re.M)}
    for name in OWN_C:
        here = None
        if not re.match(r"src/doctor/checks/.*\.h$", name):
            continue
        for match in re.finditer(r"/\*\s*(?:(\w+)\.c\b)?.*?\*/|^\w[^\n;#{]*?\b(gp_\w+)\(", text_of(name), re.M | re.S):
            here = match.group(1) or here
            function = match.group(2)
            if here and function and defined.get(function, here) != here:
                yield name, text_of(name)[:match.start()].count("\n") + 1, f"{function}() is in {defined[function]}.c"


def rule_readers_do_not_judge():
    """What a file says is read there, and may be quoted (gp_exam_evidence); what that means, and what to do, is said
    by a check."""
    for name in OWN_C:
        if name.startswith("src/doctor/readers/"):
            yield from calls(name, JUDGING)


def rule_header_guards():
    seen = {}
    for name in OWN_C:
        if not name.endswith(".h"):
            continue
        match = re.search(r"^\s*#ifndef (\w+)\n#define (\w+)\n", code_of(name), re.M)
        wanted = re.sub(r"\W", "_", Path(name).stem).upper() + "_H"
        if not match or match.group(1) != match.group(2):
            yield name, 1, "no include guard"
        elif not re.match("GP(ULSE)?_", match.group(1)) or not match.group(1).endswith(wanted):
            yield name, 1, f"the include guard {match.group(1)} is not GP_…{wanted}"
        elif match.group(1) in seen:
            yield name, 1, f"the same include guard as {seen[match.group(1)]}"
        else:
            seen[match.group(1)] = name


def rule_struct_tags_are_unique():
    """A file that includes two headers with one tag does not compile. Tags without a prefix belong to their file.
    The name of a function's type is not the tag of something else either."""
    seen = {}
    for name in OWN_C:
        for number, line in numbered(code_of(name)):
            match = re.match(r"(?:typedef )?(?:struct|enum|union) ((?:gp|gpulse|sim)_\w+) *\{|"
                             r"typedef [^;]*?\b((?:gp|gpulse|sim)_\w+)\(", line)
            tag = match and (match.group(1) or match.group(2))
            if tag and seen.setdefault(tag, name) != name:
                yield name, number, f"{tag} is also in {seen[tag]}"


def rule_own_header_first():
    for name in OWN_C:
        own = re.sub(r"\.c$", ".h", name)
        if not name.endswith(".c") or own not in FILES:
            continue
        first = re.search(r'^\s*#\s*include\s+["<]([^">]+)[">]', text_of(name), re.M)
        included = first and resolve(name, first.group(1))
        if first and included != own and included != str(Path(own).parent / "internal.h"):
            yield name, 1, f"includes {first.group(1)} before its own header"


def rule_no_postponed_work():
    for name in C_FILES:
        for number, line in numbered(text_of(name)):
            if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
                yield name, number, "do it now, or open an issue"


def rule_white_space():
    for name in FILES:
        if Path(name).suffix not in TEXT_SUFFIXES and Path(name).name != "Makefile":
            continue
        if name.startswith(RAW_FOLDERS):
            continue
        text = text_of(name)
        if text and not text.endswith("\n"):
            yield name, text.count("\n") + 1, "no newline at the end"
        for number, line in numbered(text):
            if line != line.rstrip():
                yield name, number, "white space at the end of the line"
            elif name in C_FILES and "\t" in line:
                yield name, number, "a tab"


def rule_line_length():
    for name in C_FILES:
        for number, line in numbered(text_of(name)):
            if len(line) > MAX_LINE:
                yield name, number, f"{len(line)} columns, at most {MAX_LINE}"


def rule_file_length():
    """A table may be longer: see tests/lint/exceptions.txt."""
    for name in C_FILES:
        lines = text_of(name).count("\n")
        most = MAX_FILE if name.startswith(("src/", "sim/")) else MAX_FILE_OTHER
        if lines > most:
            yield name, 1, f"{lines} lines, at most {most}"


def rule_function_length():
    for name in C_FILES:
        function, start = "?", 0
        for number, line in numbered(code_of(name)):
            if match := re.match(r"[A-Za-z].*?\b(\w+)\s*\(", line):
                function = match.group(1)
            if line.rstrip() == "{":
                start = number
            elif line.rstrip() == "}" and start:
                if number - start - 1 > MAX_FUNCTION:
                    yield f"{name}:{function}", start, \
                        f"{number - start - 1} lines, at most {MAX_FUNCTION}"
                start = 0


def rule_negations_can_fail():
    """The shell's "set -e" ignores the failure of a negated command."""
    for name in FILES:
        if not name.endswith(".bats"):
            continue
        for number, line in numbered(text_of(name)):
            if re.match(r"\s*!", line) and "||" not in line:
                yield name, number, 'this cannot fail: "run ! …" or "! … || explain …"'


def rule_everything_is_built():
    builds = {name: text_of(name) for name in FILES if name.endswith("meson.build")}
    paths = {str(Path(name).parent / path) for name, text in builds.items()
             for path in re.findall(r"'([\w/.-]+\.c)'", text)}
    words = set(re.findall(r"[\w.-]+", "".join(builds.values())))
    for name in FILES:
        stem = Path(name).stem
        if name.startswith(("src/", "sim/")) and name.endswith(".c") and name not in paths or \
                name.startswith("tests/unit/") and name.endswith(".c") and \
                not {stem, name.split("/")[-1], stem.removeprefix("test_")} & words:
            yield name, 1, "no meson.build lists it"


def rule_sources_stand_alone():
    """A line each, so that a new file is one new line."""
    for name in FILES:
        for number, line in numbered(text_of(name)) if name.endswith("meson.build") else ():
            if len(re.findall(r"'src/[\w/]+\.c'", line)) > 2:
                yield name, number, "one source per line"


def rule_options_exclude_options():
    """What an option excludes or needs is the name of another one, in its table or in the rows that tables share."""
    shared = "\n".join(text_of(name) for name in FILES if re.match(r"src/cmd/.*\.h$", name))
    for name in FILES:
        if not re.match(r"src/cmd/.*\.[ch]$", name):
            continue
        text = text_of(name)
        options = set(re.findall(r"\{[\s\\]*(?:'.'|0), \"([a-z-]+)\"", text + shared))
        for number, line in numbered(text):
            for words in re.findall(r"\.(?:excludes|needs) = \"([^\"]*)\"", line):
                for word in words.split():
                    if word not in options:
                        yield name, number, f"there is no option '{word}'"


def rule_no_werror_default():
    """A user's newer compiler may have more warnings; scripts/build.sh sets -Werror for our checks."""
    for name in FILES:
        if name.endswith("meson.build"):
            for number, line in numbered(text_of(name)):
                if re.search(r"werror|-Werror", re.sub(r"#.*", "", line)):
                    yield name, number, "warnings must not fail a user's build"


# ---- every test can fail

def closure(bodies, can_fail, mentions):
    """The names of the bodies that can fail, directly or through a name they mention."""
    failing = {name for name, body in bodies.items() if can_fail(body)}
    while True:
        more = {name for name, body in bodies.items()
                if name not in failing and failing & mentions(body)}
        if not more:
            return failing
        failing |= more


def words(text):
    return set(re.findall(r"\w+", text))


def c_functions(name):
    """Bodies by name: functions with their brace in the first column, and macros."""
    code, bodies = code_of(name), {}
    for match in re.finditer(r"^#define (\w+)\(((?:\\\n|.)*)", code, re.M):
        bodies[match.group(1)] = match.group(2)
    for match in re.finditer(r"^\w[^\n;#]*?\b(\w+)\((?:[^;{}]*?)\)\n\{\n(.*?)^\}", code, re.M | re.S):
        bodies[match.group(1)] = match.group(2)
    return bodies


def rule_unit_tests_can_fail():
    shared = {}
    for name in FILES:
        if re.match(r"tests/unit/\w+\.h$", name):
            shared.update(c_functions(name))
    for name in FILES:
        if not re.match(r"tests/unit/test_\w+\.c$", name):
            continue
        failing = closure({**shared, **c_functions(name)},
                          lambda body: re.search(r"\b(assert_\w+|fail|fail_msg)\s*\(", body), words)
        tests = list(re.finditer(r"^static void (\w+)\(void \*\*\w+\)\n\{", code_of(name), re.M))
        if not tests:
            yield name, 1, "contains no tests"
        for match in tests:
            if match.group(1) not in failing:
                line = code_of(name)[:match.start()].count("\n") + 1
                yield f"{name}:{match.group(1)}", line, "nothing in this test can fail"


def python_can_fail(node):
    for part in ast.walk(node):
        if isinstance(part, ast.Assert) and not isinstance(part.test, ast.Constant):
            return True
        if isinstance(part, ast.Raise) and "Skip" not in ast.dump(part):
            return True
        if isinstance(part, ast.keyword) and part.arg == "check" and \
                getattr(part.value, "value", False) is True:
            return True
    return False


def python_mentions(node):
    return {getattr(part, "id", None) or getattr(part, "attr", None) for part in ast.walk(node)}


def python_functions(name):
    """The functions and methods of a file: its tests, and its helpers by name."""
    tests, helpers = [], {}
    for node in ast.walk(ast.parse(text_of(name))):
        if isinstance(node, ast.FunctionDef):
            if any(getattr(mark, "id", "") == "test" for mark in node.decorator_list):
                tests.append(node)
            else:
                helpers[node.name] = node
    return tests, helpers


def rule_checks_can_fail():
    shared = {}
    for name in FILES:
        if re.match(r"tests/(?!check_)\w+\.py$", name):
            shared.update(python_functions(name)[1])
    for name in FILES:
        if not re.match(r"tests/check_\w+\.py$", name):
            continue
        tests, helpers = python_functions(name)
        failing = closure({**shared, **helpers}, python_can_fail, python_mentions)
        for node in tests:
            if not python_can_fail(node) and not failing & python_mentions(node):
                yield f"{name}:{node.name}", node.lineno, "nothing in this test can fail"


# Shell commands that check something; commands that prepare a test (mkdir, cp …) do not count.
SHELL_CHECK = re.compile(r"(\[\[? |\(\(|grep |diff |cmp |run (-\d|!|[^\n]*-\d )|explain |assert |"
                         r"[^\n]*\|\| explain |[^\n]*\bexit !\()")


BATS_TEST = r'^@test "([^\n]*)" \{\n(.*?)^\}'


def shell_commands(body):
    """The commands of a body, without conditions, skips and comments."""
    for line in body.split("\n"):
        line = line.strip()
        if re.match(r"(#|if |elif |while |until |local |export )", line) or "|| skip" in line:
            continue
        for command in re.split(r"&& |; |\bdo |\bthen |\{ ", line):
            yield command.strip()


def shell_can_fail(body):
    return any(SHELL_CHECK.match(command) for command in shell_commands(body))


def shell_mentions(body):
    return {word for command in shell_commands(body)
            for word in re.findall(r"^(?:\w+=\S* )*(\w+)", command)}


def shell_functions(name):
    return {match.group(1): match.group(2) for match in
            re.finditer(r"^(\w+)\(\) \{\n(.*?)^\}", text_of(name), re.M | re.S)}


def rule_bats_tests_can_fail():
    shared = {}
    for name in FILES:
        if re.match(r"tests/cli/\w+\.bash$", name):
            shared.update(shell_functions(name))
    for name in FILES:
        if not name.endswith(".bats"):
            continue
        failing = closure({**shared, **shell_functions(name)}, shell_can_fail, shell_mentions)
        text = text_of(name)
        for match in re.finditer(BATS_TEST, text, re.M | re.S):
            body = match.group(2)
            if not shell_can_fail(body) and not failing & shell_mentions(body):
                line = text[:match.start()].count("\n") + 1
                yield f"{name}", line, f'nothing in "{match.group(1)}" can fail'
        if text.count("\n@test ") != len(re.findall(BATS_TEST, text, re.M | re.S)):
            yield name, 1, "contains an @test that the lint cannot parse"


# ---- documents

def rule_folders_are_on_the_map():
    folders = {"/".join(name.split("/")[:2]) if name.startswith("src/") else name.split("/")[0]
               for name in FILES if name.count("/") > name.startswith("src/")}
    on_map = set(re.findall(r"^    ([\w/]+) +\S", text_of("CONTRIBUTING.md"), re.M))
    for folder in sorted(folders):
        if not folder.startswith(".") and folder not in on_map:
            yield "CONTRIBUTING.md", 1, f'{folder} is missing under "Where things are"'
    for place in sorted(on_map):
        if re.match(r"src/", place) and place not in folders:
            yield "CONTRIBUTING.md", 1, f"there is no {place}"


def rule_files_are_on_the_map():
    """docs/design/folders.md: each folder of src/ has a section; what it names exists, and all files are named, except commands and checks."""
    page = "docs/design/folders.md"
    sections = re.findall(r"^## (\S+)", text_of(page), re.M)
    for folder in sorted({str(Path(name).parent) for name in FILES if name.startswith("src/")} - set(sections)):
        yield page, 1, f"{folder} has no section"
    for section in re.split(r"^## ", text_of(page), flags=re.M)[1:]:
        folder = section.split("\n", 1)[0]
        files = {Path(name).name.rsplit(".", 1)[0] for name in FILES
                 if str(Path(name).parent) == folder and name.endswith((".c", ".h", ".def"))}
        named = {name.removesuffix(".def") for name in re.findall(r"`([a-z_0-9.]+)`", section)}
        families = [name + "_" for name in re.findall(r"`([a-z]+)_…`", section)]
        for name in sorted(named - files):
            yield page, 1, f"there is no {name} in {folder}"
        for name in sorted(files - named):
            if folder not in ("src/doctor/checks", "src/cmd") and not name.endswith("_internal") and not name.startswith(tuple(families)):
                yield page, 1, f"{folder}/{name} is missing"


# ---- texts for users

LITERALS = re.compile(r'//[^\n]*|/\*.*?\*/|#include[^\n]*|(?:"(?:\\.|[^"\\\n])*"\s*)+', re.S)
USER_DATA = ("data/tables/", "data/explain/", "data/schema/", "data/completion/", "data/systemd/", "data/tmpfiles/")


def user_texts(name):
    """Line and text: the string literals of C, adjacent ones joined, and the lines of data files."""
    text = text_of(name)
    if name.startswith(USER_DATA):
        yield from numbered(text)
    elif name.startswith(("src/", "sim/")) and Path(name).suffix in (".c", ".h", ".def"):
        for match in LITERALS.finditer(text):
            if match.group(0)[0] == '"':
                joined = "".join(re.findall(r'"((?:\\.|[^"\\\n])*)"', match.group(0)))
                yield text[:match.start()].count("\n") + 1, re.sub(r"\\[nt]", " ", joined)


def phrases():
    """Patterns of tests/lint/phrases.txt, with what to write instead."""
    for line in text_of("tests/lint/phrases.txt").splitlines():
        if line and line[0] != "#":
            phrase, _, instead = line.partition("  ")
            yield re.compile(rf"\b{re.escape(phrase)}\b", re.I), phrase, instead.strip()


def rule_phrases():
    """The words of the field; see tests/lint/phrases.txt."""
    unwanted = list(phrases())
    for name in FILES:
        for line, text in user_texts(name):
            for pattern, phrase, instead in unwanted:
                if pattern.search(text):
                    yield name, line, f'"{phrase}": write {instead}'


# ---------------------------------------------------------------- main

def exceptions():
    path = ROOT / "tests/lint/exceptions.txt"
    lines = path.read_text().splitlines() if path.is_file() else []
    return {tuple(line.split(None, 2)[:2]) for line in lines if line and line[0] != "#"}


def exception_for(allowed, title, where):
    for rule, path in allowed:
        if rule == title and (where == path or path[-1] == "*" and where.startswith(path[:-1])):
            return rule, path
    return None


def main():
    allowed = exceptions()
    used = set()
    rules = [(key[5:].replace("_", "-"), rule) for key, rule in globals().items()
             if key.startswith("rule_")]
    print(f"1..{len(rules) + 1}")
    failed = False
    for number, (title, rule) in enumerate(rules, 1):
        found = []
        for where, line, words in rule():
            if exception := exception_for(allowed, title, where):
                used.add(exception)
            else:
                found.append(f"# {where}:{line}: {words}")
        print(f"{'not ' if found else ''}ok {number} {title}")
        print("".join(line + "\n" for line in found), end="")
        failed = failed or bool(found)
    stale = sorted(allowed - used)
    print(f"{'not ' if stale else ''}ok {len(rules) + 1} exceptions-are-needed")
    for title, where in stale:
        print(f"# tests/lint/exceptions.txt: {title} {where} is no longer needed")
    return 1 if failed or stale else 0


if __name__ == "__main__":
    sys.exit(main())
