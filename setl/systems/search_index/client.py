"""The requests that setl makes of a search index, over a `Connection` of any product.

Source: https://www.elastic.co/guide/en/elasticsearch/reference/8.15/rest-apis.html and
https://docs.opensearch.org/latest/api-reference/, where both say the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Self
from urllib.parse import quote

from setl.errors import SetlError, TransientError
from setl.systems.search_index.errors import NOT_FOUND, AnswerError, refusal
from setl.systems.search_index.port import JSON, LINES, Answer, ClusterEndpoint, Connection, Hit

Body = dict[str, Any]
Read = Callable[[bytes], Any]
"""Makes values of the JSON in an answer."""

_SCROLLED: Final = "5m"
_SCROLL_PAGE: Final = 1_000
_ACTIONS: Final = 500


class SearchClient:
    """Makes requests, and reads their answers. Used by several threads at once.

    Every method raises `AnswerError` if the cluster refuses, and SetlError as `Connection.ask`.
    """

    def __init__(self, connection: Connection, read: Read = json.loads) -> None:
        """Use a connection, which is closed with this."""
        self._connection = connection
        self._read = read

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._connection.close()

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        params: Mapping[str, str] | None = None,
        *,
        ignore: int = 0,
    ) -> Body:
        """Send a request of which there is no method; returns the object that is answered.

        Args:
            method: of HTTP.
            path: behind the server's address, quoted.
            body: JSON, None for nothing.
            params: the query.
            ignore: a status whose answer is returned, too.
        """
        sent = None if body is None else _json(body)
        return self._checked(self._connection.ask(method, path, params or {}, sent, JSON), ignore)

    def _checked(self, answer: Answer, ignore: int = 0) -> Body:
        if not 200 <= answer.status < 300 and answer.status != ignore:
            raise refusal(answer)
        return self._read(answer.data) if answer.data else {}

    # The cluster

    def info(self) -> Body:
        """Which product and version it is."""
        return self.request("GET", "/")

    def health(self) -> str:
        """``green``, ``yellow`` or ``red``; "" if it is not said."""
        return str(self.request("GET", "/_cluster/health").get("status", ""))

    def node_stats(self, metric: str, wanted: str) -> Body:
        """Figures of its nodes."""
        return self.request("GET", f"/_nodes/stats/{metric}", None, {"filter_path": wanted})

    def cluster_settings(self, wanted: str) -> Body:
        """The settings that are in effect, under ``transient``, ``persistent`` and ``defaults``."""
        params = {"include_defaults": "true", "filter_path": wanted}
        return self.request("GET", "/_cluster/settings", None, params)

    def tasks(self, actions: str, wanted: str) -> Body:
        """What its nodes are doing."""
        return self.request("GET", "/_tasks", None, {"actions": actions, "filter_path": wanted})

    # Indexes

    def exists(self, index: str) -> bool:
        """Whether there is an index, or an alias, of a name."""
        answer = self._connection.ask("HEAD", _path(index), {}, None, JSON)
        if answer.status == NOT_FOUND:
            return False
        self._checked(Answer(answer.status, b""))
        return True

    def describe(self, index: str, wanted: str = "") -> Body:
        """Aliases, mappings and settings of indexes, by name."""
        return self.request("GET", _path(index), None, _given(filter_path=wanted))

    def create(self, index: str, **body: object) -> None:
        """Create an index, as templates say where `body` does not."""
        self.request("PUT", _path(index), body or None)

    def mappings(self, index: str, *, ignore: int = 0) -> Body:
        """Mappings, by the name of the index; an ignored refusal has none."""
        found = self.request("GET", _path(index, "_mapping"), ignore=ignore)
        return {} if "error" in found and "status" in found else found

    def put_mapping(self, index: str, **body: object) -> None:
        """Add fields, or replace ``_meta``."""
        self.request("PUT", _path(index, "_mapping"), body)

    def settings(self, index: str) -> Body:
        """Settings, by the name of the index."""
        return self.request("GET", _path(index, "_settings"))

    def put_settings(self, index: str, settings: Body) -> None:
        """Change settings."""
        self.request("PUT", _path(index, "_settings"), settings)

    def template_of(self, index: str) -> Body:
        """What index templates would give to an index that is not there."""
        found = self.request("POST", f"/_index_template/_simulate_index/{quoted(index)}")
        template: Body = found.get("template", {})
        return {part: content for part, content in template.items() if content}

    def refresh(self, index: str, *, ignore: int = 0) -> None:
        """Let searches see what was written."""
        self.request("POST", _path(index, "_refresh"), ignore=ignore)

    # Documents

    def count(self, index: str, **params: str) -> Body:
        """How many documents there are, under ``count``.

        Raises:
            TransientError: some shard has not answered.
        """
        return _whole(self.request("GET", _path(index, "_count"), None, params))

    def many(self, index: str, documents: Sequence[Body], source: str = "") -> list[Body]:
        """Documents by ``_id`` and ``routing``, found or not.

        Raises:
            TransientError: one cannot be read, which is not one that is gone.
        """
        asked = {"docs": list(documents)}
        found = self.request("POST", _path(index, "_mget"), asked, _given(_source=source))["docs"]
        for document in found:
            if "error" in document:
                raise _not_read(document["error"])
        return found

    def put(self, index: str, id_: str, document: Body, **only: object) -> None:
        """Write a document; refused as a conflict if it is not there as `only` says it."""
        params = {name: str(value) for name, value in only.items()}
        self.request("PUT", _path(index, "_doc", id_), document, params)

    def bulk(self, lines: bytes, **params: str) -> Body:
        """Send ready actions."""
        return self._checked(self._connection.ask("POST", "/_bulk", params, lines, LINES))

    def act(self, actions: Iterable[tuple[Body, Body | None]], **params: str) -> Iterator[Body]:
        """Send actions, each its first line and its second, if it has one; gives their items."""
        lines: list[bytes] = []
        for action, document in actions:
            lines.append(_line(action) + (b"" if document is None else _line(document)))
            if len(lines) == _ACTIONS:
                yield from self.bulk(b"".join(lines), **params).get("items", [])
                lines.clear()
        if lines:
            yield from self.bulk(b"".join(lines), **params).get("items", [])

    def search(self, index: str, body: Body, **params: str) -> Body:
        """Search an index; "" where `body` says what is searched.

        Raises:
            TransientError: some shard has not answered: a document that is not seen must not count
                as one that is not there.
        """
        return _whole(self._search(index, body, params))

    def _search(self, index: str, body: Body, params: Mapping[str, str]) -> Body:
        return self.request("POST", f"{_path(index) if index else ''}/_search", body, params)

    def scroll(
        self, index: str, body: Body, page: int = _SCROLL_PAGE, **params: str
    ) -> Iterator[list[Hit]]:
        """All documents that a search finds, page by page, in the order in which they are stored.

        Raises:
            TransientError: some shard has not answered.
        """
        asked = {"sort": ["_doc"], "size": page, **body}
        answer = self._search(index, asked, {"scroll": _SCROLLED, **params})
        scroll: Any = None
        try:
            while True:
                scroll = answer.get("_scroll_id", scroll)
                hits: list[Hit] = _whole(answer)["hits"]["hits"]
                if not hits or scroll is None:
                    return
                yield hits
                more = {"scroll": _SCROLLED, "scroll_id": scroll}
                answer = self.request("POST", "/_search/scroll", more)
        finally:
            if scroll is not None:
                with suppress(AnswerError, SetlError):  # it ends by itself
                    self.request("DELETE", "/_search/scroll", {"scroll_id": [scroll]}, ignore=404)


def make_client(endpoint: ClusterEndpoint, *, read: Read = json.loads) -> SearchClient:
    """A client; see `Connection` for when it connects.

    Args:
        endpoint: where the cluster is.
        read: reads answers.

    Raises:
        ConfigurationError: as `ClusterEndpoint.connect`.
    """
    return SearchClient(endpoint.connect(), read)


def _whole(answer: Body) -> Body:
    """An answer; TransientError if it lacks what some shard has."""
    shards: Body = answer.get("_shards", {})
    if answer.get("timed_out") or shards.get("failed"):
        raise _not_read(shards.get("failures"))
    return answer


def _not_read(why: object) -> TransientError:
    """The error for documents that were asked for, and not read."""
    return TransientError(
        f"the cluster has not read all documents: {json.dumps(why)[:300]}",
        hint="GET _cluster/health shows whether shards are missing",
    )


def _given(**params: str) -> Mapping[str, str]:
    return {name: value for name, value in params.items() if value}


def _json(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def _line(value: object) -> bytes:
    return _json(value) + b"\n"


def _path(*parts: str) -> str:
    return "".join(f"/{quoted(part)}" for part in parts)


def quoted(part: str) -> str:
    """A name, or several with commas, as a part of a path."""
    return quote(part, safe=",*")
