"""The documentation as the tests read it: pages, their fenced blocks, their headings."""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "pages"
README = ROOT / "README.md"
_FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<text>.*?)^(?P=indent)```$", re.M | re.S)
_HEADING = re.compile(r"^#+ (?P<text>.*?)(?: \{ #(?P<id>[\w-]+) \})?$", re.M)


@dataclass(frozen=True)
class Block:
    """A fenced block, with the page and the line where it begins."""

    page: str
    line: int
    kind: str
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}"


def pages():
    return [README, *sorted(PAGES.rglob("*.md"))]


def blocks(*kinds):
    return [block for page in pages() for block in blocks_of(page) if block.kind in kinds]


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page.name, line, found["kind"], textwrap.dedent(found["text"]))


def prose(page):
    """A page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page):
    """The ids of a page's headings, as MkDocs makes them."""
    found = _HEADING.finditer(prose(page))
    return {match["id"] or slug(match["text"]) for match in found}


def slug(heading):
    plain = re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower()
    return re.sub(r"[-\s]+", "-", plain)
