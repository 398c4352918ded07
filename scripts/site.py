#!/usr/bin/env python3
"""Builds a static site from README.md, docs/*.md and the manual pages.

usage: scripts/site.py DIR [--man DIR]

The directory is replaced. --man: the directory with the built manual pages (build/docs), which are included if mandoc
is installed. Needs python3-markdown; a reader needs nothing but the files.
"""
import argparse
import html
import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

try:
    import markdown
except ImportError:
    SYSTEM = "/usr/bin/python3"  # its modules are those that the package manager installs
    if sys.executable != SYSTEM and os.path.exists(SYSTEM):
        os.execv(SYSTEM, [SYSTEM, *sys.argv])
    sys.exit("make site: needs Markdown for Python; install python3-markdown (Debian, Ubuntu, Fedora) or "
             "python-markdown (Arch), and mandoc for the manual pages")

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ["README", *(f"docs/{name}" for name in (
    "install", "migrate", "share", "diagnose", "script", "library", "simulate", "hardware", "faq"))]
LAST = ["CONTRIBUTING", "CHANGELOG"]
LABELS = {"README": "Overview", "CONTRIBUTING": "Contributing", "docs/architecture": "Architecture",
          "docs/smi": "nvidia-smi compatibility", "docs/pitfalls": "NVML pitfalls"}


def slug(text, _separator="-"):
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", html.unescape(re.sub(r"<[^>]+>", "", text)).strip().lower()).replace(" ", "-")


def page_of(name):
    """Where a Markdown file goes, without its ending: README is the first page."""
    return "index.html" if name == "README" else f"{name}.html"


def title_of(name):
    return re.search(r"^# (.+)$", (ROOT / f"{name}.md").read_text(), re.M)[1]


def label_of(name):
    """What links to a page are named."""
    return LABELS.get(name) or title_of(name)


def rewrite_link(match, here):
    """A link to a Markdown file in the directory `here`; its text, if that is the file's path, becomes the page's title."""
    target, hash_, anchor = match[1].partition("#")
    if re.match(r"[a-z]+:", target) or not target.endswith(".md"):
        return match[0]
    folder, name = posixpath.split(target.removesuffix(".md"))
    text = label_of(posixpath.normpath(posixpath.join(here, target.removesuffix(".md")))) if match[2] == target else match[2]
    return f'<a href="{posixpath.join(folder, page_of(name))}{hash_}{anchor}">{text}</a>'


def dim_comments(match):
    return match[1] + re.sub(r"(^|\s)(#.*)$", r'\1<span class="comment">\2</span>', match[2], flags=re.M) + match[3]


def body_of(name):
    """The title and the HTML of a Markdown file."""
    text = (ROOT / f"{name}.md").read_text()
    # A list may follow a paragraph without an empty line, as on GitHub.
    text = re.sub(r"^(?![-*|>#`]|\d+\. )(\S.*)\n(?=[-*] )", r"\1\n\n", text, flags=re.M)
    body = markdown.markdown(text, extensions=["tables", "fenced_code", "toc", "sane_lists"],
                             extension_configs={"toc": {"slugify": slug}})
    body = re.sub(r'<a href="([^"]+)">(.*?)</a>', lambda match: rewrite_link(match, posixpath.dirname(name)), body)
    body = re.sub(r'(<code class="language-(?:sh|ini)">)(.*?)(</code>)', dim_comments, body, flags=re.S)
    return title_of(name), body.replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")


def manual_pages(folder):
    """The name and the HTML of each manual page."""
    if not folder or not shutil.which("mandoc"):
        return []
    pages = sorted((path.name for path in Path(folder).glob("gpulse*.[137]")), key=lambda name: name.split("."))

    def link(match):
        name = f"{match[1]}.{match[2]}"
        return f'<a href="{name}.html"><b>{match[1]}</b>({match[2]})</a>' if name in pages else match[0]

    def body(page):
        made = subprocess.run(["mandoc", "-T", "html", "-O", "fragment", Path(folder) / page], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        return re.sub(r"<b>(gpulse[\w-]*)</b>\(([137])\)", link, made)

    return [(page, body(page)) for page in pages]


def navigation(groups, here):
    parts = []
    for heading, links in groups:
        parts.append(f"<h2>{heading}</h2>\n<ul>")
        for page, label in links:
            href = posixpath.relpath(page, posixpath.dirname(here) or ".")
            now = ' aria-current="page"' if page == here else ""
            parts.append(f'<li><a href="{href}"{now}>{html.escape(label)}</a></li>')
        parts.append("</ul>")
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--man", type=Path)
    options = parser.parse_args()
    others = sorted(str(path.relative_to(ROOT).with_suffix("")) for path in (ROOT / "docs").glob("**/*.md"))
    design = ["docs/architecture", *(name for name in others if name.startswith("docs/design/"))]
    names = {"Guide": GUIDE, "Reference": [name for name in others if name not in GUIDE + design] + LAST,
             "Design": design}
    bodies = {name: body_of(name) for group in names.values() for name in group}
    pages = {page_of(name): page for name, page in bodies.items()}
    groups = [(heading, [(page_of(name), label_of(name)) for name in group])
              for heading, group in names.items()]
    manual = manual_pages(options.man)
    if manual:
        groups.append(("Manual pages", [(f"man/{page}.html", page.rpartition(".")[0]) for page, _ in manual]))
        pages |= {f"man/{page}.html": ("{}({})".format(*page.rsplit(".", 1)), f'<div class="man">{body}</div>')
                  for page, body in manual}
    template = (ROOT / "scripts/site/page.html").read_text()
    shutil.rmtree(options.folder, ignore_errors=True)
    for page, (title, body) in pages.items():
        path = options.folder / page
        path.parent.mkdir(parents=True, exist_ok=True)
        full = title if title.startswith("gpulse") else f"{title} · gpulse"
        root = posixpath.relpath(".", posixpath.dirname(page) or ".")
        marks = {"TITLE": html.escape(full), "ROOT": root, "NAVIGATION": navigation(groups, page), "BODY": body}
        path.write_text(re.sub("@([A-Z]+)@", lambda match, marks=marks: marks[match[1]], template))
    shutil.copy(ROOT / "scripts/site/style.css", options.folder / "style.css")
    shutil.copytree(ROOT / "docs/pictures", options.folder / "docs/pictures")
    without = "" if manual else ", without manual pages (they need mandoc and a build with scdoc)"
    print(f"{len(pages)} pages in {options.folder}{without}: open {options.folder}/index.html")


main()
