"""Dead letters beside indexes: documents of the index ``setl-deadletter``."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from typing import Any, Final

from setl.errors import TransientError
from setl.load.deadletters.dead_letter import DeadLetter, State
from setl.load.deadletters.store import Pending, Tally, tallied, too_large
from setl.systems.finding import Report
from setl.systems.search_index.client import SearchClient, make_client
from setl.systems.search_index.errors import NOT_FOUND, TOO_LARGE, AnswerError, translating
from setl.systems.search_index.port import ClusterEndpoint, Hit

DEAD_LETTERS: Final = "setl-deadletter"
"""The index, beside those that rows are written to."""

_MAX_CACHED = {
    "type": "keyword",
    "index": False,
    "doc_values": False,
}  # in _source, searched by nobody
_KEYWORD = {"type": "keyword"}
_LONG = {"type": "long"}
_PROPERTIES: dict[str, dict[str, Any]] = {
    **{field.name: _KEYWORD for field in fields(DeadLetter)},
    "version": _LONG, "batch": _LONG, "epoch": _LONG, "attempts": _LONG,
    "at": {"type": "double"},
    "error": {"type": "text"},
    "hint": _MAX_CACHED, "payload": _MAX_CACHED, "key_values": _MAX_CACHED,
}  # fmt: skip
_PAGE = 500
_MOST_TARGETS = 10_000
_OK = 200
_CONFLICT = 409
_ATTEMPTS = 5
_BLOCKS = ("write", "read_only", "read_only_allow_delete")
_WAITING = [State.OPEN.value, State.RETRY.value]


class IndexDeadLetters:
    """The `DeadLetterStore` over one client. What is changed is found by the next search."""

    def __init__(self, client: SearchClient) -> None:
        """Use a client; its errors pass through, so that its owner gives them a kind."""
        self._client = client

    def ensure(self) -> None:
        """Create the index if it is not there."""
        if self._client.exists(DEAD_LETTERS):
            return
        try:
            self._client.create(
                DEAD_LETTERS, mappings={"dynamic": False, "properties": _PROPERTIES}
            )
        except AnswerError as error:
            if error.type != "resource_already_exists_exception":
                raise

    def keep(self, letters: Sequence[DeadLetter], *, again: Collection[str] = ()) -> None:
        """See `DeadLetterStore.keep`."""
        if not letters:
            return
        self.ensure()
        left = list(letters)
        for _ in range(_ATTEMPTS):
            left = self._put_as_read(left, again)
            if not left:
                break
        else:
            raise _changing(letter.id for letter in left)
        self._refresh()

    def _put_as_read(
        self, letters: Sequence[DeadLetter], again: Collection[str]
    ) -> list[DeadLetter]:
        """Write letters; returns those that somebody else has written meanwhile.

        There is no fence here. A former leader that thaws leaves alone what a newer one has
        written, which may know that the row has changed since. Letters that are loaded again are
        those of earlier leaderships, whatever their epochs; what was superseded stays so.
        """
        asked = [{"_id": letter.id} for letter in letters]
        found = self._client.many(DEAD_LETTERS, asked, "attempts,epoch,state")
        there = {document["_id"]: document for document in found if document.get("found")}
        left: list[DeadLetter] = []
        for letter in letters:
            before = there.get(letter.id)
            known: Hit = {} if before is None else before["_source"]
            if letter.id in again:
                if known.get("state") not in _WAITING:
                    continue
            elif int(known.get("epoch", 0)) > letter.epoch:
                continue
            document = asdict(replace(letter, attempts=int(known.get("attempts", 0)) + 1))
            document["state"] = letter.state.value
            only = {"op_type": "create"} if before is None else _as_read(before)
            try:
                # One request each: payloads are of any size, and letters are few.
                self._client.put(DEAD_LETTERS, letter.id, document, **only)
            except AnswerError as error:
                if error.status == _CONFLICT:
                    left.append(letter)
                elif error.status == TOO_LARGE:
                    raise too_large(letter, "http.max_content_length of the cluster") from error
                else:
                    raise
        return left

    def mark(self, ids: Collection[str], state: State) -> None:
        """See `DeadLetterStore.mark`."""
        self._update(ids, {"state": state.value})

    def forget_keys(self, ids: Collection[str]) -> None:
        """See `DeadLetterStore.forget_keys`."""
        self._update(ids, {"state": State.OPEN.value, "key_hash": ""})

    def remove(self, ids: Collection[str]) -> int:
        """See `DeadLetterStore.remove`."""
        actions = [({"delete": {"_index": DEAD_LETTERS, "_id": i}}, None) for i in sorted(ids)]
        return sum(result["status"] == _OK for result in self._change(actions))

    def pending(self, pipeline: str, target: str) -> list[Pending]:
        """See `DeadLetterStore.pending`."""
        query = [{"term": {"target": target}}, {"terms": {"state": _WAITING}}]
        found = self._scan(pipeline, query, source=["key_hash", "version"])
        return [
            Pending(hit["_id"], hit["_source"]["key_hash"], int(hit["_source"]["version"]))
            for hit in found
            if hit["_source"]["key_hash"]
        ]

    def find(
        self,
        pipeline: str,
        *,
        ids: Collection[str] = (),
        target: str = "",
        states: Collection[State] = (),
        limit: int = 0,
        newest: bool = False,
    ) -> list[DeadLetter]:
        """See `DeadLetterStore.find`."""
        query: list[dict[str, Any]] = []
        if ids:
            query.append({"terms": {"id": list(ids)}})
        if target:
            either = [{"term": {name: target}} for name in ("target", "source")]
            query.append({"bool": {"should": either}})
        if states:
            query.append({"terms": {"state": [state.value for state in states]}})
        way = "desc" if newest else "asc"
        sort = [{"version": way}, {"id": way}]
        letters: list[DeadLetter] = []
        after: list[Any] | None = None
        while not limit or len(letters) < limit:
            size = min(_PAGE, limit - len(letters)) if limit else _PAGE
            hits = self._search(pipeline, query, size=size, sort=sort, search_after=after)
            letters += [_letter(hit["_source"]) for hit in hits]
            if len(hits) < size:
                break
            after = hits[-1]["sort"]
        return letters

    def states(self, pipeline: str, ids: Collection[str] = ()) -> dict[str, State]:
        """See `DeadLetterStore.states`."""
        wanted = sorted(ids)
        found: dict[str, State] = {}
        for first in range(0, len(wanted) or 1, _PAGE):
            some = wanted[first : first + _PAGE]
            query = [{"terms": {"id": some}}] if some else []
            hits = self._scan(pipeline, query, source=["state"])
            found.update((hit["_id"], State(hit["_source"]["state"])) for hit in hits)
        return found

    def tally(self, pipeline: str) -> Tally:
        """See `DeadLetterStore.tally`."""
        targets = {"terms": {"field": "target", "size": _MOST_TARGETS}}
        counted = {"states": {"terms": {"field": "state"}, "aggs": {"targets": targets}}}
        asked = {"query": _query(pipeline, ()), "size": 0, "aggregations": counted}
        answer = self._client.search(DEAD_LETTERS, asked, ignore_unavailable="true")
        states = answer.get("aggregations", {}).get("states", {}).get("buckets", [])
        return tallied(
            (State(state["key"]), str(target["key"]), int(target["doc_count"]))
            for state in states
            for target in state["targets"]["buckets"]
        )

    def trim(self, pipeline: str, most: int) -> None:
        """See `DeadLetterStore.trim`."""
        if self.tally(pipeline).superseded <= most:
            return
        found = self.find(pipeline, states=[State.SUPERSEDED], newest=True)
        self.remove([letter.id for letter in found[most:]])

    def _update(self, ids: Collection[str], values: dict[str, Any]) -> None:
        """Change letters that are not superseded, nor become so meanwhile."""
        left = sorted(ids)
        for _ in range(_ATTEMPTS):
            if not left or not self._client.exists(DEAD_LETTERS):
                return
            found = self._client.many(DEAD_LETTERS, [{"_id": i} for i in left], "state")
            results = self._change(
                (_update_of(document), {"doc": values})
                for document in found
                if document.get("found") and document["_source"]["state"] in _WAITING
            )
            left = [result["_id"] for result in results if result["status"] == _CONFLICT]
        if left:
            raise _changing(left)

    def _change(self, actions: Iterable[tuple[Hit, Hit | None]]) -> list[dict[str, Any]]:
        """Update or delete documents; returns what became of each, whatever is there or not."""
        items = self._client.act(actions, refresh="true")
        answers = [result for item in items for result in item.values()]
        for answer in answers:
            if answer["status"] not in {_OK, NOT_FOUND, _CONFLICT}:
                raise TransientError(f"the cluster has not changed a dead letter: {answer}")
        return answers

    def _refresh(self) -> None:
        self._client.refresh(DEAD_LETTERS)

    def _search(
        self, pipeline: str, query: Sequence[dict[str, Any]], **options: Any
    ) -> list[dict[str, Any]]:
        given = {name: value for name, value in options.items() if value is not None}
        asked = {"query": _query(pipeline, query), **given}
        answer = self._client.search(DEAD_LETTERS, asked, ignore_unavailable="true")
        return answer["hits"]["hits"]

    def _scan(
        self, pipeline: str, query: Sequence[dict[str, Any]], source: list[str]
    ) -> Iterable[dict[str, Any]]:
        body = {"query": _query(pipeline, query), "_source": source}
        pages = self._client.scroll(DEAD_LETTERS, body, ignore_unavailable="true")
        return (hit for page in pages for hit in page)


@contextmanager
def opened_index(endpoint: ClusterEndpoint) -> Generator[IndexDeadLetters]:
    """The store over a client of its own."""
    with translating(endpoint), make_client(endpoint) as client:
        yield IndexDeadLetters(client)


def _update_of(document: Hit) -> Hit:
    """The first line of an update that only happens to a document as it was read."""
    return {"update": {"_index": DEAD_LETTERS, "_id": document["_id"], **_as_read(document)}}


def _as_read(document: Hit) -> Hit:
    """What makes a write one of a document as it was read."""
    return {"if_seq_no": document["_seq_no"], "if_primary_term": document["_primary_term"]}


def _changing(ids: Iterable[str]) -> TransientError:
    return TransientError(f"dead letters keep being changed: {', '.join([*ids][:3])}")


def _query(pipeline: str, query: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"bool": {"filter": [{"term": {"pipeline": pipeline}}, *query]}}


def _letter(source: dict[str, Any]) -> DeadLetter:
    values: dict[str, Any] = dict(source)
    values["state"] = State(values["state"])
    return DeadLetter(**values)


def check_dead_letter_index(endpoint: ClusterEndpoint, report: Report) -> None:
    """Report whether the index of dead letters is there and can be written to.

    Raises:
        SetlError: the cluster does not answer, or does not let the account look.
    """
    table_report = report.at(f"index {DEAD_LETTERS}")
    with translating(endpoint), make_client(endpoint) as client:
        if not client.exists(DEAD_LETTERS):
            table_report.ok("setl will create it for the faulty rows of `faulty_rows: dead_letter`")
            return
        found: dict[str, Any] = client.settings(DEAD_LETTERS)
    for name, described in found.items():
        blocks: dict[str, Any] = described["settings"]["index"].get("blocks", {})
        held = [block for block in _BLOCKS if str(blocks.get(block)).lower() == "true"]
        if held:
            table_report.error(
                f"it is blocked for writing ({', '.join(held)}), and faulty rows go there",
                *(f'PUT /{name}/_settings {{"index.blocks.{block}": null}}' for block in held),
                code="index-blocked",
            )
