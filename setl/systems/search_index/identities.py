"""Tells an index from another one of its name.

An index that is deleted comes back with the next document: the cluster makes it, unless
``action.auto_create_index`` says otherwise. Each index has a UUID of its own, which also an index
gets that is restored from a snapshot. One that is restored over a closed index keeps its UUID, and
has another history.

API: https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-indices-get
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from setl.load.identities import Identity
from setl.systems.search_index.answers import part
from setl.systems.search_index.client import SearchClient, make_client
from setl.systems.search_index.errors import NOT_FOUND, AnswerError, translating
from setl.systems.search_index.port import ClusterEndpoint

_WANTED: Final = "*.aliases,*.settings.index.uuid,*.settings.index.history.uuid"
_NAMES_AT_ONCE: Final = 2_000  # characters; a request's first line may have 4,096 bytes


def index_identities(endpoint: ClusterEndpoint, names: Collection[str]) -> Mapping[str, Identity]:
    """See `setl.load.identities.IdentifiedTarget.identities`."""
    found: dict[str, Identity] = {}
    with translating(endpoint), make_client(endpoint) as client:
        for some in _in_pieces(sorted(names)):
            found.update(_identities(client, some))
    return found


def _in_pieces(names: list[str]) -> Iterator[list[str]]:
    piece: list[str] = []
    size = 0
    for name in names:
        length = len(quote(name)) + 1  # as it stands in an address, with a comma
        if piece and size + length > _NAMES_AT_ONCE:
            yield piece
            piece, size = [], 0
        piece.append(name)
        size += length
    if piece:
        yield piece


def _identities(client: SearchClient, names: list[str]) -> dict[str, Identity]:
    try:
        # Without `ignore_unavailable`: an index that the account may not see would be left out.
        there: dict[str, dict[str, Any]] = client.describe(",".join(names), _WANTED)
    except AnswerError as error:
        if error.status != NOT_FOUND:
            raise
        if len(names) == 1:
            return {}
        return {name: id_ for one in names for name, id_ in _identities(client, [one]).items()}
    found = {name: _identity(name, there) for name in names}
    return {name: identity for name, identity in found.items() if identity is not None}


def _identity(name: str, there: Mapping[str, dict[str, Any]]) -> Identity | None:
    """What a name stands for; None for a data stream, which takes no such documents."""
    if name in there:
        return Identity(_id(there[name]), name)
    named = {own: part(index, "aliases").get(name) for own, index in there.items()}
    behind = sorted(own for own, alias in named.items() if alias is not None)
    written = [own for own in behind if part(named, own).get("is_write_index")]
    indexes = written or behind
    if not indexes:
        return None
    id_, name_ = "+".join(_id(there[own]) for own in indexes), "+".join(indexes)
    return Identity(id_, name_, alias=True, several=tuple(behind) if len(behind) > 1 else ())


def _id(index: dict[str, Any]) -> str:
    settings = part(part(index, "settings"), "index")
    uuids = settings.get("uuid"), part(settings, "history").get("uuid")
    return "/".join(str(uuid) for uuid in uuids if uuid)
