"""The README is short, and leads to everything else."""

import re

from .pages import PAGES, README, anchors, prose

_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
LONGEST = 120


def links():
    return _LINK.findall(prose(README))


def test_it_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= LONGEST


def test_its_links_lead_somewhere():
    assert len(links()) > 20
    for link in links():
        path, _, anchor = link.partition("#")
        position = README.parent / path if path else README
        assert position.exists(), link
        assert not anchor or anchor in anchors(position), link


def test_it_leads_to_every_page():
    named = {link.partition("#")[0] for link in links()}
    assert {f"docs/pages/{page.name}" for page in PAGES.glob("*.md")} <= named
