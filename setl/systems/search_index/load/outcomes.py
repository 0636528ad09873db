"""The outcome of each item of a bulk request."""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Any, Final

from setl.systems.search_index.errors import NO_ACCESS_STATUSES, RETRY_STATUSES, error_of


class Outcome(Enum):
    """How one action of a bulk request ended."""

    DONE = auto()
    STALE = auto()  # refused, since the server holds something newer: as good as done
    AGAIN = auto()  # the server is busy or a shard is away
    NO_INDEX = auto()
    FORBIDDEN = auto()
    REFUSED = auto()  # for good


def outcome_of(item: dict[str, Any]) -> Outcome:
    """The outcome of one item of a bulk answer, ``{"index": {"status": 201, …}}``.

    Source: https://www.elastic.co/guide/en/elasticsearch/reference/8.15/docs-bulk.html
    """
    ((operation, result),) = item.items()
    status = int(result["status"])
    if 200 <= status < 300:
        return Outcome.REFUSED if _not_written(result) else Outcome.DONE
    if status == 409:
        return Outcome.STALE
    if status == 404:
        if error_of(result).get("type") == "index_not_found_exception":
            return Outcome.NO_INDEX
        # There was nothing to delete; the server remembers the version all the same. Where
        # something else is missing it tells an error.
        absent = operation == "delete" and not result.get("error")
        return Outcome.DONE if absent else Outcome.REFUSED
    if status in RETRY_STATUSES:
        return Outcome.AGAIN
    return Outcome.FORBIDDEN if status in NO_ACCESS_STATUSES else Outcome.REFUSED


_DIVERTED: Final = frozenset({"used", "failed"})


def _not_written(result: dict[str, Any]) -> str:
    """Why an action that is said to have succeeded has left the index as it was; "" if it did not.

    Source: https://www.elastic.co/docs/manage-data/data-store/data-streams/failure-store
    """
    if result.get("result") == "noop":
        return "the document was dropped, as ingest pipelines do; the index does not hold it"
    if result.get("failure_store") in _DIVERTED:
        return "the document went to the failure store; the index does not hold it"
    return ""


_HELD: Final = re.compile(r"current version \[(\d+)\]")


def held_version(item: dict[str, Any]) -> int:
    """The version of the document that an older write has met; 0 if the server does not say it."""
    (result,) = item.values()
    found = _HELD.search(str(error_of(result).get("reason")))
    return int(found[1]) if found else 0


def reason_of(item: dict[str, Any]) -> str:
    """Why an item failed: status, type and reason, with the cause that says most."""
    (result,) = item.values()
    error = error_of(result)
    if not error:
        return f"[{result['status']}] {result.get('error') or _not_written(result)}".rstrip()
    texts = [f"[{result['status']}] {error.get('type')}: {error.get('reason')}"]
    while error := error_of(error, "caused_by"):
        texts.append(str(error.get("reason")))
    return ": ".join(texts)
