#!/usr/bin/env python3
"""tests/lint/lint.py: a phrase of tests/lint/phrases.txt is found wherever users would read it.

variants: release
"""
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tap import main, test

ROOT = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
LISTED = [line.partition("  ")[0] for line in (ROOT / "tests/lint/phrases.txt").read_text().splitlines()
          if line and line[0] != "#"]


def findings(files, exceptions="", rule="phrases"):
    """What a rule finds in a tree with these files: path and line, then what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "tests/lint").mkdir(parents=True)
        for name in ("lint.py", "phrases.txt"):
            shutil.copy(ROOT / "tests/lint" / name, root / "tests/lint" / name)
        (root / "tests/lint/exceptions.txt").write_text(exceptions)
        (root / "CONTRIBUTING.md").write_text("")
        (root / "docs/design").mkdir(parents=True)
        (root / "docs/design/folders.md").write_text("")
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        result = subprocess.run([sys.executable, root / "tests/lint/lint.py"], cwd=root, timeout=60,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    lines = result.stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.endswith(f" {rule}"))
    found = []
    for line in lines[start + 1:]:
        if not line.startswith("#"):
            break
        found.append(line[2:])
    assert lines[start].startswith("not ok") == bool(found), result.stdout
    assert not found or result.returncode == 1, result
    return found


@test
def every_phrase_is_found():
    assert len(LISTED) > 20 and len(set(LISTED)) == len(LISTED)
    for phrase in LISTED:
        found = findings({"src/cmd/x.c": f'puts("it is {phrase} here");\n'})
        assert any(line.startswith(f'src/cmd/x.c:1: "{phrase}": write ') for line in found), (phrase, found)


@test
def what_an_option_excludes_is_an_option():
    table = '{0, "all", .excludes = "pid user"},\n{\'p\', "pid"},\n'
    rule = "options-exclude-options"
    assert findings({"src/cmd/x.c": table}, rule=rule) == ["src/cmd/x.c:1: there is no option 'user'"]
    assert findings({"src/cmd/x.c": table, "src/cmd/y.h": '    {  \\\n 0, "user"}\n'}, rule=rule) == []


@test
def a_file_of_the_program_has_at_most_600_lines():
    rule = "file-length"
    line = "int x;\n"
    assert findings({"src/cmd/x.c": line * 600, "sim/x.h": line * 600, "tests/unit/x.c": line * 1000}, rule=rule) == []
    long = {"src/cmd/x.c": line * 601, "sim/x.h": line * 601, "tests/unit/x.c": line * 1001}
    assert findings(long, rule=rule) == ["sim/x.h:1: 601 lines, at most 600", "src/cmd/x.c:1: 601 lines, at most 600",
                                         "tests/unit/x.c:1: 1001 lines, at most 1000"]
    table = "file-length src/cmd/x.c  a table\n"
    assert len(findings(long, table, rule)) == 2
    assert findings({"src/cmd/x.c": line}, table, "exceptions-are-needed")


@test
def folders_in_a_folder_have_ranks():
    rule = "layers"
    own = {"src/doctor/exam.h": "", "src/doctor/readers/log.h": '#include "doctor/exam.h"\n', "src/doctor/checks/fix.h": ""}
    assert findings({**own, "src/doctor/checks/x.c": '#include "doctor/readers/log.h"\n'}, rule=rule) == []
    found = findings({**own, "src/doctor/readers/x.c": '#include "doctor/checks/fix.h"\n',
                      "src/doctor/x.c": '\n#include "doctor/readers/log.h"\n'}, rule=rule)
    assert found == ["src/doctor/readers/x.c:1: doctor/readers must not include src/doctor/checks/fix.h",
                     "src/doctor/x.c:2: doctor must not include src/doctor/readers/log.h"], found


@test
def few_include_the_public_header():
    own = {"include/gpulse/gpulse.h": "", "src/lib/x.c": '#include "gpulse/gpulse.h"\n'}
    assert findings(own, rule="layers") == []
    found = findings({**own, "src/base/x.c": '#include "gpulse/gpulse.h"\n'}, rule="layers")
    assert found == ["src/base/x.c:1: base must not include include/gpulse/gpulse.h"], found


@test
def a_tag_is_one_struct():
    rule, used = "struct-tags-are-unique", "struct gp_cell *cell;\nstruct gp_cell;\n/*\nstruct gp_cell {\n*/\n"
    files = {"src/tape/scene.h": "struct gp_cell {\n", "src/tui/cells.c": used}
    assert findings({**files, "src/a.c": "struct cell {\n", "src/b.c": "struct cell {\n"}, rule=rule) == []
    found = findings({**files, "src/tui/cells.h": "\nenum gp_cell {\n", "sim/x.c": "struct sim_y {\n",
                      "sim/y.h": "union sim_y {\n"}, rule=rule)
    assert found == ["sim/y.h:1: sim_y is also in sim/x.c", "src/tui/cells.h:2: gp_cell is also in src/tape/scene.h"], found


@test
def readers_quote_and_do_not_judge():
    rule = "readers-do-not-judge"
    text = 'gp_exam_evidence(exam, path, "%s", line);\n'
    advice = text + 'gp_exam_advice(exam, "log in again");\n'
    assert findings({"src/doctor/readers/x.c": text, "src/doctor/checks/x.c": advice}, rule=rule) == []
    found = findings({"src/doctor/readers/x.c": advice + "gp_exam_unreadable(exam, path, error);\n"}, rule=rule)
    assert found == ["src/doctor/readers/x.c:2: gp_exam_advice() is not used here",
                     "src/doctor/readers/x.c:3: gp_exam_unreadable() is not used here"], found


@test
def headers_name_the_file():
    rule, folder = "headers-name-the-file", "src/doctor/checks/"
    files = {folder + "a.c": "void gp_a(void)\n{\n}\n", folder + "b.c": "void gp_b(void)\n{\n}\n"}
    text = "/* a.c */\nvoid gp_a(void);\n/* b.c: more */\nvoid gp_b(void);\n"
    assert findings({**files, folder + "x.h": text}, rule=rule) == []
    found = findings({**files, folder + "x.h": text.replace("/* b.c: more */\n", "")}, rule=rule)
    assert found == [folder + "x.h:3: gp_b() is in b.c"], found


@test
def every_file_is_built():
    rule, build = "everything-is-built", "'src/doctor/readers/docker.c',\n"
    files = {"src/doctor/readers/docker.c": "", "meson.build": build}
    assert findings(files, rule=rule) == []
    found = findings({**files, "src/doctor/checks/docker.c": ""}, rule=rule)
    assert found == ["src/doctor/checks/docker.c:1: no meson.build lists it"], found


@test
def every_file_is_on_the_map():
    rule, page = "files-are-on-the-map", "docs/design/folders.md"
    files = {"src/tui/cells.c": "", "src/tui/screen_gpu.c": "", "src/tui/keys.def": "", "src/tui/x_internal.h": ""}
    text = "## src/tui\n\n* `cells`, `keys.def`, `screen_…`\n"
    assert findings({**files, page: text}, rule=rule) == []
    assert findings({**files, "src/out/x.c": "", page: text}, rule=rule) == [f"{page}:1: src/out has no section"]
    assert findings({**files, page: text + "* `paint`\n"}, rule=rule) == [f"{page}:1: there is no paint in src/tui"]
    assert findings({**files, "src/tui/menu.c": "", page: text}, rule=rule) == [f"{page}:1: src/tui/menu is missing"]


@test
def in_literals_of_several_lines_and_in_any_case():
    found = findings({"sim/x.def": 'X(A,\n  "reserved; Main "\n  "memory is full")\n'})
    assert found == ['sim/x.def:2: "main memory": write host memory'], found
    assert findings({"src/cmd/x.c": '"ends here\\nnobody"\n'}), "after an escape"


@test
def in_data():
    found = findings({"data/tables/x.csv": "id,words\n1,the job goes on\n"})
    assert found == ['data/tables/x.csv:2: "goes on": write continues'], found


@test
def not_in_comments_names_or_parts_of_words():
    assert not findings({"src/cmd/x.c": '/* "main memory" */\n// "main memory"\nint so_long;\n'
                                        '#include "main memory.h"\nputs("besides");\n'})
    assert not findings({"tests/x.txt": "main memory\n"})


@test
def exceptions_cover_a_folder():
    files = {"src/cmd/x.c": '"main memory"\n', "src/jobs/x.c": '"main memory"\n'}
    assert len(findings(files)) == 2
    found = findings(files, "phrases src/cmd/*  for this test\n")
    assert len(found) == 1 and found[0].startswith("src/jobs/x.c"), found


main()
