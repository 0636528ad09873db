"""The README is short, and leads to everything else; links of its neighbours lead somewhere."""

import re

import pytest

from .pages import PAGES, README, ROOT, anchors, prose

_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
LONGEST = 120


def links(file=README):
    return _LINK.findall(prose(file))


def test_it_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.mark.parametrize("file", sorted(ROOT.glob("*.md")), ids=lambda file: file.name)
def test_links_lead_somewhere(file):
    for link in links(file):
        path, _, anchor = link.partition("#")
        position = file.parent / path if path else file
        assert position.exists(), link
        assert not anchor or anchor in anchors(position), link


def test_it_leads_to_every_page():
    assert len(links()) > 20
    named = {link.partition("#")[0] for link in links()}
    assert {f"docs/pages/{page.name}" for page in PAGES.glob("*.md")} <= named
