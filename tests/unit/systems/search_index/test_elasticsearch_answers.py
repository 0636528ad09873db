import json

import pytest

from setl.systems.search_index.load.bulk_load import ALL_DONE, read_bulk


def answer(*statuses, **members):
    items = [{"index": {"status": status}} for status in statuses]
    return {"errors": any(status >= 300 for status in statuses), **members, "items": items}


def read(content, separators=(",", ":")):
    return read_bulk(json.dumps(content, separators=separators).encode())


def test_items_of_an_answer_without_failures_are_only_counted():
    assert read(answer(200, 201, 200)) == {ALL_DONE: 3}
    assert read(answer()) == {ALL_DONE: 0}


@pytest.mark.parametrize(
    "content",
    [
        answer(200, 409),
        {"errors": False, "items": [{"index": {"result": "noop", "status": 200}}]},
        {"errors": False, "items": [{"index": {"status": 201, "failure_store": "used"}}]},
        answer(200, took=3),
        {"took": 3, **answer(200)},
        {"items": [{"index": {"status": 200}}]},
        {"errors": False},
        [],
    ],
)
def test_everything_else_is_read_in_full(content):
    assert read(content) == content


def test_an_answer_in_other_words_is_read_in_full():
    assert read(answer(200), (", ", ": ")) == answer(200)
