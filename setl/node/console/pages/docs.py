"""The documentation that came with this release, as pages of the console. Pure but for its files.

It is of the version that runs, and there where nothing of the internet can be reached. Of Markdown,
what the documentation uses is understood; HTML in it is text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup

from setl import resources
from setl.node.console.links import docs_link

_ANCHOR = re.compile(r"\s*\{\s*#([\w-]+)\s*\}\s*$")
_DEFINITION = re.compile(r"^(\S.*)\n:   ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DocsPage:
    """A page of the documentation.

    Attributes:
        title: its first heading.
        html: all of it.
        sections: the headings that can be linked, by anchor.
    """

    title: str
    html: Markup
    sections: Mapping[str, str]


def docs_page(name: str) -> DocsPage | None:
    """A page by its file's name, such as ``troubleshooting.md``; None if there is none."""
    return _page(name) if name in _names() else None


@cache
def section_title(docs: str) -> str:
    """The heading of a section, such as ``troubleshooting.md#stopped``; "" if it is not there."""
    name, _, anchor = docs.partition("#")
    page = docs_page(name)
    if page is None:
        return ""
    return page.sections.get(anchor, "") if anchor else page.title


@cache
def _names() -> frozenset[str]:
    return frozenset(name for name in resources.names(resources.DOCS) if name.endswith(".md"))


@cache
def _page(name: str) -> DocsPage:
    text = resources.read_text(resources.DOCS, name)
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(_DEFINITION.sub(r"**\1**\\\n", text))
    sections: dict[str, str] = {}
    title = name
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            heading = _name_heading(token, tokens[number + 1])
            sections[str(token.attrs["id"])] = heading
            title = heading if token.tag == "h1" else title
        for part in token.children or ():
            _adapt(part)
    renderer = RendererHTML()
    html = str(renderer.render(tokens, markdown.options, {}))
    return DocsPage(title, Markup(html), sections)  # noqa: S704 - HTML in the text was escaped


def _name_heading(opening: Token, inline: Token) -> str:
    """Give a heading its anchor; returns its text."""
    children: Sequence[Token] = inline.children or ()
    text = "".join(part.content for part in children)
    named = _ANCHOR.search(text)
    heading = _ANCHOR.sub("", text)
    if named and children:
        children[-1].content = _ANCHOR.sub("", children[-1].content)
    slug = re.sub(r"[^\w\s-]", "", heading).strip().lower()
    opening.attrSet("id", named.group(1) if named else re.sub(r"[-\s]+", "-", slug))
    return heading


def _adapt(part: Token) -> None:
    """Links between pages lead to pages of the console; a picture is named only."""
    if part.type == "image":
        part.type, part.tag, part.content = "text", "", f"({part.content})"
    if part.type == "link_open":
        address = urlsplit(str(part.attrs.get("href", "")))
        if address.path in _names() and not address.scheme:
            anchor = f"#{address.fragment}" if address.fragment else ""
            part.attrs["href"] = docs_link(address.path) + anchor
        elif address.path and not address.scheme:
            del part.attrs["href"]  # a page of the site that does not come with a release


def link_of(docs: str) -> dict[str, Any]:
    """Where a section of the documentation is, and what it is called; {} if it is not there."""
    title = section_title(docs) if docs else ""
    return {"href": docs_link(docs), "title": title} if title else {}
