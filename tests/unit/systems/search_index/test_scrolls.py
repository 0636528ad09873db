"""A scroll is read page by page, and ended, whatever becomes of its reader or of its server."""

import json
from typing import Any

import pytest

from setl.errors import TransientError
from setl.systems.search_index.client import SearchClient
from setl.systems.search_index.port import Answer

WHOLE = {"total": 1, "failed": 0}


class Pages:
    """A connection that answers a search with some pages, and notes what is asked."""

    def __init__(self, *pages, shards=None, ends_badly=False):
        self.pages, self.shards, self.ends_badly = list(pages), shards or WHOLE, ends_badly
        self.asked: list[str] = []

    def ask(self, method, path, params, body, kind):
        self.asked.append(f"{method} {path}")
        if method == "DELETE":
            if self.ends_badly:
                raise TransientError("no connection")
            return Answer(404, b"{}")
        hits = [{"_id": str(i)} for i in (self.pages.pop(0) if self.pages else [])]
        answer: dict[str, Any] = {"_scroll_id": "s", "_shards": self.shards, "hits": {"hits": hits}}
        return Answer(200, json.dumps(answer).encode())

    def close(self):
        pass


def ids(pages):
    return [[hit["_id"] for hit in page] for page in pages]


@pytest.mark.parametrize("ends_badly", [False, True])
def test_it_is_read_to_its_end(ends_badly):
    connection = Pages([1, 2], [3], ends_badly=ends_badly)
    assert ids(SearchClient(connection).scroll("i", {})) == [["1", "2"], ["3"]]
    assert connection.asked == [
        "POST /i/_search", "POST /_search/scroll", "POST /_search/scroll", "DELETE /_search/scroll"
    ]  # fmt: skip


def test_a_reader_may_stop_in_the_middle():
    connection = Pages([1], [2], ends_badly=True)
    pages = SearchClient(connection).scroll("i", {})
    next(pages)
    pages.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert connection.asked[-1] == "DELETE /_search/scroll"


def test_a_page_that_lacks_what_a_shard_has_is_an_error():
    connection = Pages([1], shards={"total": 2, "failed": 1, "failures": ["gone"]}, ends_badly=True)
    with pytest.raises(TransientError, match=r"has not read all documents: .*gone"):
        ids(SearchClient(connection).scroll("i", {}))
    assert connection.asked[-1] == "DELETE /_search/scroll"
