import json
from typing import Any

import pytest

from setl.bulk.comparison import What
from setl.bulk.verdict import KeyDifference, TableVerdict, for_people


def test_values_for_people_can_be_written_as_json():
    values = [None, 5, 1.5, "text", b"\x00\xff", "x" * 300]
    shown = [for_people(value) for value in values]
    assert shown[:5] == [None, 5, 1.5, "text", "0x00ff"]
    assert shown[5] == "x" * 200 + "… (300 characters)"
    json.dumps(shown)


@pytest.mark.parametrize("what", list(What))
def test_any_difference_is_no_equality(what):
    counts: Any = {w.value: int(w is what) for w in What}
    verdict = TableVerdict("s.t", "s.t", 1, 1, **counts, sample_keys=(KeyDifference("1", what),))
    assert verdict.differences == 1
    assert not verdict.equal
    assert TableVerdict("s.t", "s.t", 1, 1, 0, 0, 0).equal


def test_what_nobody_can_tell_is_no_equality():
    assert not TableVerdict("s.t", "s.t", 1, 1, 0, 0, 0, undecided=1).equal
