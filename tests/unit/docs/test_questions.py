"""The list of questions to a source: nothing in it is gone, and no module that asks is missing."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
SYSTEM, TESTS = ROOT / "setl/systems/mysql", ROOT / "tests"
PAGE = (ROOT / "docs/pages/architecture.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.partition("{ #questions }")[2].partition("\n## ")[0].splitlines()
    if line.startswith("| ")
][1:]
ASKED = re.compile(r"(connect|opened)\((self\._)?source\b")


def in_backticks(text):
    return re.findall(r"`([^`]+)`", text)


def test_everything_named_is_there():
    tests = "\n".join(file.read_text() for file in TESTS.rglob("test_*.py"))
    for _, asked_by, _, held_by in ROWS:
        assert all((SYSTEM / name).exists() for name in in_backticks(asked_by)), asked_by
        for name in in_backticks(held_by):
            assert (TESTS / name).exists() or f"def {name}(" in tests, name


def test_every_module_that_asks_the_source_is_in_it():
    named = {name for _, asked_by, *_ in ROWS for name in in_backticks(asked_by)}
    asking = {
        str(file.relative_to(SYSTEM))
        for file in SYSTEM.rglob("*.py")
        if ASKED.search(file.read_text())
    }
    assert asking
    assert asking <= named
