"""The documentation that comes with a release is there, and each problem leads into it."""

import re
from pathlib import Path

import pytest

from setl import resources
from setl.node.console.pages import problems
from setl.node.console.pages.docs import docs_page, link_of, section_title

PAGES = [name for name in resources.names(resources.DOCS) if name.endswith(".md")]
LINK = re.compile(r'href="/console/docs/([^"#]+)(?:#([^"]+))?"')


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_shown_and_its_links_lead_somewhere(name):
    page = docs_page(name)
    assert page is not None
    assert page.html.startswith("<h1")
    assert "{ #" not in page.html
    assert not re.search(r"<(?!/?(?:a|p|h\d|t\w+|ul|ol|li|pre|code|em|strong|br|blockquote|hr)\b)",
                         page.html)  # fmt: skip
    for other, anchor in LINK.findall(page.html):
        assert section_title(f"{other}#{anchor}" if anchor else other), (other, anchor)


def test_each_problem_leads_to_a_section_that_is_there():
    text = Path(problems.__file__).read_text(encoding="utf-8")
    named = {f"troubleshooting.md#{anchor}" for anchor in re.findall(r"_GUIDE}([\w-]+)\"", text)}
    named |= {"troubleshooting.md#stopped", "troubleshooting.md#stalls"}
    named |= set(re.findall(r'"((?!troubleshooting)[a-z-]+\.md(?:#[\w-]+)?)"', text))
    assert len(named) > 10
    assert [docs for docs in sorted(named) if not section_title(docs)] == []


def test_what_is_not_there_has_no_link():
    assert link_of("") == link_of("nothing.md") == link_of("../resources.py") == {}
    assert link_of("troubleshooting.md#no-leader") == {
        "href": "/console/docs/troubleshooting.md#no-leader",
        "title": "No leader",
    }


def test_a_page_of_the_docs_is_served_to_anybody(browser):
    answer = browser.get("/console/docs/troubleshooting.md")
    assert answer.code == 200
    assert b'<h2 id="stopped">A pipeline has stopped</h2>' in answer.body
    assert browser.get("/console/docs/nothing.md").code == 404
    assert browser.get("/console/docs/..%2Fconsole.py").code == 404
