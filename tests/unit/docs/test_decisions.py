"""Decision records have one form, and the page about them lists them all."""

import re

import pytest

from .pages import PAGES

FOLDER = PAGES / "decisions"
RECORDS = sorted(FOLDER.glob("0*.md"))
SECTIONS = ["Context", "Options", "Decision", "Consequences"]
LONGEST = 320


def test_they_are_numbered_without_gaps_and_listed():
    numbers = [record.name[:4] for record in RECORDS]
    assert len(numbers) >= 10
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]
    listed = re.findall(r"^\| \[\d{4}\]\((\S+)\) \|", (FOLDER / "index.md").read_text(), re.M)
    assert listed == [record.name for record in RECORDS]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_a_record_has_all_its_parts_and_is_short(record):
    text = record.read_text(encoding="utf-8")
    assert re.match(rf"# {record.name[:4]}: \S.*\n\nStatus: \w+", text)
    assert re.findall(r"^## (.*)$", text, re.M) == SECTIONS
    assert len(text.split()) <= LONGEST
