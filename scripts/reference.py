#!/usr/bin/env python3
"""Writes a manual page (scdoc source) about an interface, from its source.

usage: scripts/reference.py c|python [DEPFILE TARGET]

c: gpulse-c(3), from include/gpulse/gpulse.h. python: gpulse-python(3), from the docstrings of python/gpulse. DEPFILE: a
file that names what was read, as make needs it for TARGET.
"""
import ast
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = ROOT / "include/gpulse/gpulse.h"
PACKAGE = ROOT / "python/gpulse"


def escaped(text):
    """Words that scdoc would take for marks."""
    text = re.sub(r"([\\*_~<>])", r"\\\1", text)
    return re.sub(r"^([#.|!`\]\[&-])", r"\\\1", text, flags=re.M)


def prose(text):
    """Paragraphs; what is indented by four blanks is code."""
    parts = []
    for part in re.split(r"\n\s*\n", text.strip("\n")):
        is_code = all(line.startswith("    ") for line in part.splitlines())
        parts.append(code(textwrap.dedent(part)) if is_code else escaped(textwrap.dedent(part)))
    return "\n\n".join(parts) + "\n"


def code(text):
    return "```\n" + text.rstrip().replace("\\", "\\\\") + "\n```"


def head(name, about, *see):
    return (f'{name}(3) "" "gpulse manual"\n\n# NAME\n\n{name} - {about}\n\n',
            "\n# SEE ALSO\n\n" + ", ".join(f"*{page}*({section})" for page, section in see) + "\n")


# ---- C ----

def comment_text(comment):
    """Without its marks."""
    inner = re.sub(r"^/\*+ ?|\s*\*/$", "", comment)
    return re.sub(r"^ \* ?", "", inner, flags=re.M)


def c_blocks(text):
    """(comment, declaration) in their order; a heading is ("", its name)."""
    text = text[text.index("#define GPULSE_API"):text.rindex("#ifdef __cplusplus")]
    text = re.sub(r"#define GPULSE_API.*\n", "", text).replace("GPULSE_API ", "")
    comment, lines, depth = "", [], 0
    for line in re.findall(r"^/\*(?:.|\n)*?\*/\n|^.*\n", text, re.M):
        if line.startswith("/* ----"):
            yield "", line.strip("/*- \n")
        elif line.startswith("/*"):
            comment = line.strip()
        elif line.strip():
            lines.append(line)
            depth += line.count("{") - line.count("}")
            if depth == 0 and re.search(r";( */\*.*\*/)?\n$", line):
                yield comment, "".join(lines)
                comment, lines = "", []


def c_page():
    text = HEADER.read_text()
    about = comment_text(text[:text.index("*/") + 2]).split("\n\n", 1)
    before, after = head("gpulse-c", "GPU values in C: libgpulse", ("gpulse", 1), ("gpulse-metrics", 7), ("gpulse-python", 3))
    parts = [before, "# SYNOPSIS\n\n", code("#include <gpulse/gpulse.h>\n\ncc program.c $(pkg-config --cflags --libs gpulse)"),
             "\n\n# DESCRIPTION\n\n", prose(about[0].replace("libgpulse: what", "libgpulse shows what")), "\n", prose(about[1])]
    for comment, declaration in c_blocks(text):
        if "\n" not in declaration:
            parts.append(f"\n# {declaration.upper()}\n")
        else:
            parts.append("\n" + code(textwrap.dedent(declaration)) + "\n")
            if comment:
                parts.append("\n" + prose(comment_text(comment)))
    return "".join(parts) + after


# ---- Python ----

def is_public(node):
    return not node.name.startswith("_") and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))


def decorators(node):
    return {ast.unparse(d).split(".")[-1] for d in node.decorator_list}


def signature(node, is_method=False):
    """As it is written, without self."""
    for annotation in ast.walk(node):  # types in quotation marks, as Python 3.9 needs some
        for name in ("annotation", "returns"):
            kind = getattr(annotation, name, None)
            if isinstance(kind, ast.Constant) and isinstance(kind.value, str):
                setattr(annotation, name, ast.parse(kind.value, mode="eval").body)
    arguments = ast.unparse(node.args)
    if is_method:
        arguments = re.sub(r"^(self|cls)(, )?(/, )?", "", arguments)
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    if "property" in decorators(node):
        return node.name + result.replace(" ->", ":")
    words = f"{node.name}({arguments}){result}".replace(": ", ":\0").replace(" ->", "\0->")
    return textwrap.fill(words, 90, subsequent_indent="    ", break_on_hyphens=False).replace("\0", " ")


def documented(node):
    text = ast.get_docstring(node)
    return "\n" + prose(text) if text else ""


def members(node):
    """Of a class: what its instances have."""
    fields = [f"{item.target.id}: {ast.unparse(item.annotation)}" for item in node.body
              if isinstance(item, ast.AnnAssign) and not item.target.id.startswith("_")]
    fields += [f"{item.target.attr}: {ast.unparse(item.annotation)}" for method in node.body
               if getattr(method, "name", "") == "__init__" for item in method.body
               if isinstance(item, ast.AnnAssign) and not item.target.attr.startswith("_")]
    if fields:
        yield code("\n".join(fields)) + "\n"
    for item in node.body:
        if not isinstance(item, ast.ClassDef) and hasattr(item, "name") and is_public(item):
            yield code(f"{node.name}.{signature(item, True)}") + "\n" + documented(item)


def python_object(node):
    if not isinstance(node, ast.ClassDef):
        return code(signature(node)) + "\n" + documented(node)
    create = next((m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
    arguments = signature(create, True)[len("__init__"):].replace(" -> None", "") if create else ""
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    title = f"class {node.name}{f'({bases})' if bases else ''}"
    is_created = arguments not in ("", "()") and not re.search(r"\((pointer|sample)|_c\.", arguments) # by callers
    return code(title + (f"\n{node.name}{arguments}" if is_created else "")) + "\n" + documented(node) + "".join("\n" + member for member in members(node))


def definitions(path):
    return {node.name: node for node in ast.parse(path.read_text()).body if hasattr(node, "name")}


def python_page():
    before, after = head("gpulse-python", "GPU values in Python: import gpulse", ("gpulse", 1), ("gpulse-metrics", 7),
                         ("gpulse-c", 3))
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    found = {}
    for path in sorted(PACKAGE.glob("_*.py")):
        if path.name != "_library.py": # the structures of C
            found.update(definitions(path))
    exported = next(ast.literal_eval(node.value) for node in tree.body
                    if isinstance(node, ast.Assign) and node.targets[0].id == "__all__")
    exported += ["Point", "Row", "Term"] # of what those have
    parts = [before, "# DESCRIPTION\n\n", prose(ast.get_docstring(tree))]
    for heading, is_class in (("FUNCTIONS", False), ("CLASSES", True)):
        parts.append(f"\n# {heading}\n")
        parts += ["\n" + python_object(found[name]) for name in exported if isinstance(found[name], ast.ClassDef) == is_class]
    for module in ("compat", *(f"integrations/{path.stem}" for path in sorted((PACKAGE / "integrations").glob("[a-z]*.py")))):
        path = PACKAGE / f"{module}.py" if (PACKAGE / f"{module}.py").exists() else PACKAGE / module / "__init__.py"
        parts.append(f"\n# MODULE GPULSE.{module.replace('/', '.').upper()}\n\n")
        parts.append(prose(ast.get_docstring(ast.parse(path.read_text())) or ""))
        parts += ["\n" + python_object(node) for node in definitions(path).values() if is_public(node)]
    return "".join(parts) + after


PAGES = {"c": (c_page, [HEADER]), "python": (python_page, sorted(PACKAGE.rglob("*.py")))}

if len(sys.argv) not in (2, 4) or sys.argv[1] not in PAGES:
    sys.exit(__doc__)
page, sources = PAGES[sys.argv[1]]
if len(sys.argv) == 4:
    Path(sys.argv[2]).write_text(f"{sys.argv[3]}: {' '.join(map(str, sources))}\n", encoding="utf-8")
sys.stdout.write(page())
