"""Work items arrive in tasks as they were packed, whether or not that made them smaller."""

import pickle
from random import Random

import pytest

from setl.transform.packing import packed, unpacked
from setl.transform.work import WorkItem

_SIZE = 300_000


def items(payload, count=3):
    return [WorkItem((0,), number, (), payload, ("shop", "orders")) for number in range(count)]


@pytest.mark.parametrize("payload", [b"", b"alike" * 100_000, Random(1).randbytes(_SIZE)])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_what_was_packed_arrives(payload, count):
    assert unpacked(packed(items(payload, count))) == items(payload, count)


def test_what_repeats_itself_becomes_smaller():
    record = Random(1).randbytes(400)
    payload = b"".join(record + number.to_bytes(4) for number in range(1000))
    assert len(packed(items(payload, 1))) < len(payload) / 4


@pytest.mark.parametrize("payload", [Random(1).randbytes(_SIZE), b"alike" * 100])
def test_what_would_not_become_much_smaller_is_only_pickled(payload):
    plain = pickle.dumps(items(payload, 1), protocol=5)
    assert packed(items(payload, 1)) == plain
    assert unpacked(plain) == items(payload, 1)


def test_damage_is_an_error():
    content = packed(items(b"alike" * 100_000))
    for broken in (content[:-100], content[:20] + b"\xff" * 20 + content[40:]):
        with pytest.raises((OSError, pickle.UnpicklingError, ValueError, EOFError)):
            unpacked(broken)
