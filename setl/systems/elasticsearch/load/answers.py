"""Answers of ``_bulk``, read only as far as it takes to know that all is well.

An answer has an item for each action, thousands of them that all say the same. Asked for no more
than `FILTER`, a server answers ``{"errors":false,"items":[{"index":{"result":"created",
"status":201}},…]}``. ``errors`` is true if an item failed. An older version that is refused counts
as failed. A document that is to be deleted and was not there does not, nor does one that an ingest
pipeline has dropped (``"result":"noop"``), nor one that was diverted to the failure store.

Source: https://www.elastic.co/guide/en/elasticsearch/reference/8.15/docs-bulk.html
"""

from __future__ import annotations

from typing import Any

from elasticsearch.serializer import JsonSerializer

FILTER = "errors,items.*.status,items.*.error,items.*.result,items.*.failure_store"
"""The ``filter_path`` of bulk requests; most of an answer is what it leaves out."""

ALL_DONE = "all_done"
"""Member of an answer in which nothing failed: the number of its items, which are left out."""

# Only a filtered answer begins like this: others say in between how long they took.
_ALL_WELL = b'{"errors":false,"items":['
_ITEM = b'"status":'
_NOT_WRITTEN = (b'"noop"', b'"failure_store"')


class BulkAnswers(JsonSerializer):
    """Reads JSON as the client does, except for answers to filtered bulk requests that went well.

    Of these only the items are counted. A server that words them otherwise has them read in full.
    """

    def loads(self, data: bytes) -> Any:
        """What the server sent; ``{ALL_DONE: count}`` for a bulk in which nothing failed."""
        whole = data.startswith(_ALL_WELL) and data.endswith(b"]}")
        if whole and not any(sign in data for sign in _NOT_WRITTEN):
            return {ALL_DONE: data.count(_ITEM)}
        return super().loads(data)
