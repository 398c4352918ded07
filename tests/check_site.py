#!/usr/bin/env python3
"""The site of "make site": every page has a title, and every link and picture resolves.

variants: release
"""
import os
import re
import shutil
import tempfile
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path

from tap import BUILD, Skip, good, main, run, system_module, test

markdown = system_module("markdown")

ROOT = Path(os.environ.get("GPULSE_SOURCE", Path(__file__).resolve().parent.parent))
scratch = tempfile.TemporaryDirectory()
SITE = Path(scratch.name, "site")


class Page(HTMLParser):
    """The links, anchors, headings and the title of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.anchors, self.title, self.headings, self.inside = [], set(), "", 0, None
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.inside = tag
        self.headings += tag == "h1"
        self.anchors |= {attrs["id"]} if "id" in attrs else set()
        self.links += [attrs[name] for name in ("href", "src") if name in attrs]

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside == "title":
            self.title += data


@lru_cache(maxsize=None)
def pages():
    if not markdown:
        raise Skip("no Markdown for Python: install python3-markdown")
    made = good(run(ROOT / "scripts/site.py", SITE, "--man", Path(BUILD, "docs")))
    assert f"pages in {SITE}" in made, made
    return {path: Page(path) for path in SITE.rglob("*.html")}


@test
def every_document_is_a_page_with_a_title():
    documents = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]
    wanted = {SITE / ("index.html" if path.name == "README.md" else path.relative_to(ROOT).with_suffix(".html"))
              for path in documents}
    assert wanted <= set(pages()), wanted - set(pages())
    titles = [page.title for page in pages().values()]
    assert all(titles) and len(set(titles)) == len(titles), titles
    assert all(page.headings >= 1 for page in pages().values())


@test
def manual_pages_are_included():
    built = list(Path(BUILD, "docs").glob("gpulse*.[137]"))
    if not built or not shutil.which("mandoc"):
        raise Skip("no manual pages, or no mandoc")
    missing = [path.name for path in built if SITE / f"man/{path.name}.html" not in pages()]
    assert not missing, missing
    assert "gpulse-top.1.html" in pages()[SITE / "man/gpulse-ps.1.html"].links


@test
def every_link_and_picture_resolves():
    wrong = []
    for path, page in pages().items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = link.partition("#")
            file = (path.parent / target).resolve() if target else path
            if not file.is_file() or not file.is_relative_to(SITE):
                wrong.append(f"{path.relative_to(SITE)}: {link}")
            elif anchor and file.suffix == ".html" and anchor not in pages()[file].anchors:
                wrong.append(f"{path.relative_to(SITE)}: {link}: no such anchor")
    assert not wrong, "\n".join(wrong)
    assert any(link.endswith(".svg") for link in pages()[SITE / "index.html"].links)


@test
def every_page_leads_to_every_other():
    for path, page in pages().items():
        linked = {(path.parent / link).resolve() for link in page.links if not re.match(r"[a-z]+:", link)}
        assert set(pages()) <= linked, (path, set(pages()) - linked)


@test
def tables_lists_and_code_are_not_left_as_text():
    for path, page in pages().items():
        if path.parent.name != "man":
            text = re.sub(r"<(pre|code)\b.*?</\1>", "", path.read_text(), flags=re.S)
            left = [line for line in text.splitlines() if re.match(r"\s*(<p>)?(\||```|- |\* )", line)]
            assert not left, (path, left)


main()
