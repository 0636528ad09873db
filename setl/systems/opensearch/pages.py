"""Reads all documents of an index with scrolls.

OpenSearch has points in time, too, but before version 3.3 nothing to sort their documents by that
is unique, so that a page could begin behind the one before. A scroll needs no order. Each slice
opens its own when it is read: which slice a document is in depends on its id alone, so each is in
one of them, in whatever state it has then. What differs from its row is looked at again anyway.

API: https://docs.opensearch.org/latest/api-reference/search-apis/scroll/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from setl.systems.search_index.client import SearchClient
from setl.systems.search_index.port import Hit

_PAGE: Final = 2_000


class Scrolls:
    """The `DocumentPages` of OpenSearch: what is opened is the name of the index."""

    def open(self, client: SearchClient, index: str) -> str:  # noqa: ARG002
        """See `DocumentPages.open`; nothing is kept at the cluster yet."""
        return index

    def read(
        self,
        client: SearchClient,
        opened: str,
        *,
        query: dict[str, Any] | None = None,
        slice_: tuple[int, int] | None = None,
    ) -> Iterator[list[Hit]]:
        """See `DocumentPages.read`."""
        what: dict[str, Any] = {} if query is None else {"query": query}
        if slice_ is not None:
            what["slice"] = {"id": slice_[0], "max": slice_[1]}
        complete = {"allow_partial_search_results": "false"}
        yield from client.scroll(opened, what, _PAGE, **complete)

    def close(self, client: SearchClient, opened: str) -> None:
        """See `DocumentPages.close`; each scroll ends where it is read to its end."""
