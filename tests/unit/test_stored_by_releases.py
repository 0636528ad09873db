"""What a release has stored is read by the next one, and the other way round, without loss.

The stored texts are those of releases themselves, as they wrote them. A node that reads them
without loss, and writes all that is in them, can run beside a node of that release.
"""

import json
from pathlib import Path

import pytest

from tests.stored_samples import reread, samples

FOLDER = Path(__file__).parent / "data" / "releases"
STORED = {file.stem: json.loads(file.read_text()) for file in FOLDER.glob("*.json")}
EACH = [(release, name) for release, texts in STORED.items() for name in texts]


def missing(wanted, found, position=""):
    """Where `found` lacks something of `wanted`, or has it otherwise; it may have more."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name, value in wanted.items():
            if name not in found:
                yield f"{position}.{name} is gone"
            else:
                yield from missing(value, found[name], f"{position}.{name}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from missing(one, other, f"{position}[{number}]")
    elif wanted != found or type(wanted) is not type(found):
        yield f"{position} is {found!r}, not {wanted!r}"


def test_there_are_releases():
    assert len(EACH) >= 16


@pytest.mark.parametrize(("release", "name"), EACH)
def test_nothing_of_what_a_release_stored_is_lost_by_reading_it(release, name):
    stored = STORED[release][name]
    assert list(missing(json.loads(stored), json.loads(reread(name, stored)))) == []


@pytest.mark.parametrize(("release", "name"), EACH)
def test_a_release_finds_in_what_is_stored_now_all_that_it_wrote(release, name):
    """So it can be gone back to, and both can run beside each other."""
    now = samples()
    assert list(missing(json.loads(STORED[release][name]), json.loads(now[name]))) == []


def test_a_release_that_has_not_stored_some_kind_yet_is_no_reason_to_leave_it_out():
    newest = max(FOLDER.glob("*.json"), key=lambda file: len(json.loads(file.read_text())))
    assert samples().keys() == STORED[newest.stem].keys(), "store what this release writes, too"


def test_what_is_lost_is_noticed():
    wanted = {"a": [1, {"b": None}], "c": True}
    assert list(missing(wanted, {"a": [1, {"b": None, "new": 1}], "c": True, "d": 1})) == []
    assert list(missing(wanted, {"a": [1, {}], "c": 1})) == [
        ".a[1].b is gone", ".c is 1, not True",
    ]  # fmt: skip
