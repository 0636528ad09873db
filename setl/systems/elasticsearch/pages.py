"""Reads all documents of an index as of a point in time.

API: https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-open-point-in-time
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from setl.systems.search_index.client import SearchClient, quoted
from setl.systems.search_index.port import Hit

_PAGE: Final = 2_000
_KEEP_ALIVE: Final = "10m"


class PointsInTime:
    """The `DocumentPages` of Elasticsearch: what is opened is the id of a point in time."""

    def open(self, client: SearchClient, index: str) -> str:
        """See `DocumentPages.open`."""
        found = client.request("POST", f"/{quoted(index)}/_pit", None, {"keep_alive": _KEEP_ALIVE})
        return str(found["id"])

    def read(
        self,
        client: SearchClient,
        opened: str,
        *,
        query: dict[str, Any] | None = None,
        slice_: tuple[int, int] | None = None,
    ) -> Iterator[list[Hit]]:
        """See `DocumentPages.read`; in the order in which they are stored."""
        what: dict[str, Any] = {} if query is None else {"query": query}
        if slice_ is not None:
            what["slice"] = {"id": slice_[0], "max": slice_[1]}
        pit = opened
        while True:
            body = {
                **what,
                "pit": {"id": pit, "keep_alive": _KEEP_ALIVE},
                "size": _PAGE,
                "sort": [{"_shard_doc": "asc"}],
                "track_total_hits": False,
            }
            answer = client.search("", body, allow_partial_search_results="false")
            pit = str(answer.get("pit_id", pit))  # it may be another one from now on
            hits: list[Hit] = answer["hits"]["hits"]
            if not hits:
                return
            yield hits
            what["search_after"] = hits[-1]["sort"]

    def close(self, client: SearchClient, opened: str) -> None:
        """See `DocumentPages.close`; it is gone with the nodes that restarted since."""
        client.request("DELETE", "/_pit", {"id": opened}, ignore=404)
