"""Notices that rows come whose documents would have other ids than those that are there.

An id is made of a key's text. With another primary key, another type of a key column, or another
`id` in the channel file, the same row gets another id. It would be a second document, and the first
one would stay for ever. No record says so, and an index takes any id. So what ids are made of
stands in the index itself, in the ``_meta`` of its mapping. The cluster keeps that and does not
look at it. There it is right whatever becomes of the documents: another index has none, or, as a
copy, the same.

API: https://www.elastic.co/guide/en/elasticsearch/reference/8.15/mapping-meta-field.html
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from setl.errors import ConfigurationError
from setl.log import fields
from setl.model.document import DocumentOrigin
from setl.systems.search_index.answers import part
from setl.systems.search_index.client import SearchClient
from setl.systems.search_index.errors import NO_ACCESS_STATUSES, AnswerError

_log = logging.getLogger(__name__)

_MEMBER: Final = "setl_ids"
# Tables and entries of channel files that are kept in one index; the oldest goes first.
_MOST: Final = 1_000
_ANY: Final = ", any length"
_BYTES: Final = re.compile(rf"(\((?:float|binary))(?P<width>, \d+ bytes|{_ANY})?\)")


def check_ids(
    client: SearchClient,
    index: str,
    existing: Mapping[str, Any],
    pipeline: str,
    ids: DocumentOrigin,
) -> None:
    """Refuse rows whose ids are made of something else than those of documents that are there.

    What is not known of an index is noted. An index without documents takes any. Idempotent; of
    two tasks that note something at once one may be forgotten, and is noted by the next leader.
    The client's errors pass through.

    Args:
        client: of the cluster.
        index: the index, or an alias.
        existing: its mappings, as the cluster has told them.
        pipeline: whose rows they are.
        ids: what their ids are made of.

    Raises:
        ConfigurationError: the documents that are there have other ids.
    """
    owner = f"{pipeline} {ids.entry}"
    if all(_is_noted(_noted(described).get(owner), ids.parts) for described in existing.values()):
        return
    # Another task of the same load may have noted it meanwhile, and written documents.
    for name, described in client.mappings(index).items():
        noted = _noted(described)
        before = noted.pop(owner, None)
        if _is_noted(before, ids.parts):
            continue
        if before is not None and not _agree(before, ids.parts) and _has_documents(client, name):
            raise _others(name, before, ids.parts)
        _note(client, name, described, {**noted, owner: ids.parts})


def other_ids(
    client: SearchClient,
    index: str,
    described: Mapping[str, Any],
    pipeline: str,
    ids: DocumentOrigin,
) -> ConfigurationError | None:
    """What `check_ids` would raise, as far as it is known before rows come; notes nothing."""
    before = _noted(described).get(f"{pipeline} {ids.entry}")
    if before is None or _agree(before, ids.parts):
        return None
    try:
        empty = int(client.count(index)["count"]) == 0
    except AnswerError as error:
        if error.status not in NO_ACCESS_STATUSES:
            raise
        empty = False  # an account that may only write finds out by the same refusal
    return None if empty else _others(index, before, ids.parts)


def _is_noted(before: str | None, now: str) -> bool:
    """Whether there is nothing to be noted."""
    if before is None or not _agree(before, now):
        return False
    return all(not said or said == noted for noted, said in _widths(before, now))


def _agree(before: str, now: str) -> bool:
    """Whether ids may be made of the same.

    Earlier releases did not note how many bytes a value has, and not all rows tell it. A BINARY
    that may have any length from now on keeps the bytes that it has.
    """
    return _BYTES.sub(r"\1", before) == _BYTES.sub(r"\1", now) and all(
        not noted or not said or said in (noted, _ANY) for noted, said in _widths(before, now)
    )


def _widths(before: str, now: str) -> Iterator[tuple[str, str]]:
    """Of each column of bytes or approximate numbers, how many bytes a value has; "" if unsaid."""
    one, other = _BYTES.finditer(before), _BYTES.finditer(now)
    pairs = zip(one, other, strict=True)
    return ((noted["width"] or "", said["width"] or "") for noted, said in pairs)


def other_pipelines(existing: Mapping[str, Any], pipeline: str) -> list[str]:
    """The other pipelines that have noted something in an index: they have written there, too.

    Args:
        existing: the mappings of the index, as the cluster has told them.
        pipeline: the one that asks.
    """
    owners = {owner.partition(" ")[0] for each in existing.values() for owner in _noted(each)}
    return sorted(owners - {pipeline})


def _noted(described: Mapping[str, Any]) -> dict[str, Any]:
    return dict(part(part(part(described, "mappings"), "_meta"), _MEMBER))


def _note(
    client: SearchClient, index: str, described: Mapping[str, Any], noted: dict[str, Any]
) -> None:
    stored = dict(list(noted.items())[-_MOST:])
    meta = {**part(part(described, "mappings"), "_meta"), _MEMBER: stored}
    try:
        client.put_mapping(index, _meta=meta)
    except AnswerError as error:
        # An account that may only write documents goes on doing so.
        if error.status not in NO_ACCESS_STATUSES:
            raise
        _log.warning(
            "an index does not let setl note what ids are made of: another key is not noticed",
            extra=fields(index=index, error=str(error)),
        )


def _has_documents(client: SearchClient, index: str) -> bool:
    client.refresh(index)
    return int(client.count(index)["count"]) > 0


def _others(index: str, before: str, now: str) -> ConfigurationError:
    return ConfigurationError(
        f"the ids of the documents of {index} are made of {before}, and rows come whose ids would"
        f" be made of {now}: the documents that are there would stay as they are for ever",
        hint="A key column that was only renamed: give its field the former name under `columns`."
        " Otherwise delete the index, or name a new one under `to`; `setl load` all tables that go"
        " there, and `setl start`",
        index=index,
    )
