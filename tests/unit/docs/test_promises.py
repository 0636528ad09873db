"""Each promise of the page about security names a test that is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
TESTS = ROOT / "tests"
NAMED = set(
    re.findall(
        r"`([a-z_/]+\.py)`",
        (ROOT / "docs/pages/security.md").read_text().partition("{ #promises }")[2],
    )
)


def test_every_test_that_is_named_is_there():
    assert len(NAMED) > 20
    assert [name for name in sorted(NAMED) if not (TESTS / name).exists()] == []


def test_every_test_about_security_is_named():
    there = {str(file.relative_to(TESTS)) for file in (TESTS / "security").glob("test_*.py")}
    assert there <= NAMED
