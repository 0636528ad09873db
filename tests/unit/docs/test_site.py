"""The site builds without a warning, and a reader's browser fetches nothing from elsewhere."""

import os
import re
import subprocess
import sys

import pytest

from .pages import PAGES, ROOT, pages

# What a browser loads by itself, not what a reader may click on.
_LOADED = re.compile(
    r"""<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//[^>]*>""", re.I
)
_OF_STYLES = re.compile(r"(?:@import\s+|url\()\s*[\"']?(?:https?:)?//", re.I)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    # Not --quiet: what it does not print, it does not count as a warning either.
    build = [sys.executable, "-m", "mkdocs", "build", "--strict"]
    where = ["-f", str(ROOT / "docs" / "mkdocs.yml"), "-d", str(folder)]
    said = subprocess.run(
        [*build, *where],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout + said.stderr
    return folder


def test_every_page_is_in_it(site):
    assert len(pages()) > 20
    for page in PAGES.glob("*.md"):
        assert (site / page.with_suffix(".html").name).is_file(), page.name


def test_nothing_is_loaded_from_elsewhere(site):
    found = list(site.rglob("*.html"))
    assert found
    for page in found:
        text = page.read_text(encoding="utf-8")
        loaded = _LOADED.findall(text)
        assert not [tag for tag in loaded if 'rel="canonical"' not in tag], page.name
        # The theme's own script would fetch what draws these.
        assert 'class="mermaid"' not in text, page.name
    for sheet in site.rglob("*.css"):
        assert not _OF_STYLES.search(sheet.read_text(encoding="utf-8")), sheet.name


def test_search_works_when_the_files_are_opened_without_a_server(site):
    """A browser starts no worker and fetches nothing there: all of it comes from scripts."""
    assert (site / "search" / "search_index.js").stat().st_size > 100_000
    loaded = re.findall(r'<script\b[^>]*\bsrc="([^"]+)"', (site / "index.html").read_text("utf-8"))
    assert any("iframe-worker" in script for script in loaded)
    assert all((site / script).is_file() for script in loaded)
