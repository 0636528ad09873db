"""The target side of a comparison when it is an index."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import product
from math import inf, nextafter
from typing import Any, NamedTuple

from setl.bulk.chunks import Chunk
from setl.bulk.comparing import key_text, key_values
from setl.bulk.exact_json import parsed, shown
from setl.bulk.pairs import Pair
from setl.errors import DataError
from setl.model.change import Row, Value
from setl.model.document import DocumentForm
from setl.model.schema import Column, Kind
from setl.printable import printable
from setl.systems.search_index.client import make_client
from setl.systems.search_index.errors import NOT_FOUND, translating
from setl.systems.search_index.key_ranges import chunk_query, ordered_field
from setl.systems.search_index.load.documents import in_characters_outside, render_documents
from setl.systems.search_index.load.ids import document_id, document_routing
from setl.systems.search_index.mapping import field_of
from setl.systems.search_index.port import ClusterEndpoint, Hit

_IDS_PER_PART = 500
_MOST_SLICES = 1_024  # what a cluster takes, unless `index.max_slices_per_pit` says otherwise
_NUMBER = re.compile("0|-?[1-9][0-9]*")
_DIGITS = 13  # of floating-point numbers; see `rounded`

# Kinds of which a document alone can tell under which key its row would be found.
_NUMBERS = frozenset({Kind.INTEGER, Kind.YEAR, Kind.BIT})
_AS_IN_ROWS = frozenset({Kind.TEXT, Kind.DECIMAL, Kind.DATE, Kind.ENUM, Kind.TIME})
_MOMENTS = frozenset({Kind.DATETIME, Kind.TIMESTAMP})


class Slice(NamedTuple):
    """A part of an index; see `DocumentPages`."""

    opened: str
    number: int
    of: int


class Ids(NamedTuple):
    """The documents in these positions, see `DocumentShape.position`."""

    ids: tuple[str, ...]


class Found(NamedTuple):
    """The documents that a query finds."""

    query: dict[str, Any]


@dataclass(frozen=True, slots=True)
class DocumentShape:
    """How documents are compared; see `setl.bulk.pairs.Shape`.

    Attributes:
        columns: the fields that are compared, as the columns that fill them.
        key: indexes in `columns` of what identifies a document: the key, then the routing column.
        form: how rows become documents.
    """

    columns: tuple[Column, ...]
    key: tuple[int, ...]
    form: DocumentForm

    @property
    def names(self) -> tuple[str, ...]:
        """See `Shape.names`."""
        return tuple(column.name for column in self.columns)

    def pairs(self, rows: Sequence[Row]) -> list[Pair]:
        """See `Shape.pairs`."""
        if not rows:
            return []
        found: list[Pair] = []
        documents = render_documents(
            self.columns, in_characters_outside(self.key, self.columns, rows), self.form
        )
        for row, rendered in zip(rows, documents, strict=True):
            key = tuple(row[i] for i in self.key)
            document: dict[str, Any] = parsed(rendered)
            forms = [
                _forms(column, value)
                for column, value in zip(self.columns, document.values(), strict=True)
            ]
            compared, *others = map(list, product(*forms))
            id_, routing = document_id(key, self.form), document_routing(key, self.form)
            # No document has an id without a UTF-8 form: then the row is one that is missing.
            position = _in_utf8(self.position(id_, routing))
            found.append(Pair(position, self._lookup(key), compared, others))
        return found

    def of_source(self, columns: Sequence[Column]) -> DocumentShape:
        """See `Shape.of_source`; how a value is rendered says the column that it comes from."""
        own = {column.name.lower(): column for column in columns}
        return replace(self, columns=tuple(own[name.lower()] for name in self.names))

    def pair_of(self, hit: Hit) -> Pair:
        """A document that is in the index; a field that it lacks counts as null."""
        document: dict[str, Any] = hit["_source"]
        compared = [_compared(column, document.get(column.name)) for column in self.columns]
        position = self.position(hit["_id"], hit.get("_routing"))
        return Pair(position, self._lookup_of(hit["_id"], document), compared)

    def includes(self, id_: str) -> bool:
        """Whether a document may be one of these rows; others of the index are not looked at."""
        return id_.startswith(self.form.texts[0]) and id_.endswith(self.form.texts[-1])

    def position(self, id_: str, routing: str | None) -> str:
        """What identifies a document: its id; where documents are routed, with the routing."""
        return id_ if self.form.routing is None else json.dumps([id_, routing], ensure_ascii=False)

    def id_and_routing(self, position: str) -> tuple[str, str | None]:
        """Inverse of `position`."""
        if self.form.routing is None:
            return position, None
        id_, routing = json.loads(position)
        return id_, routing

    def source_key(self, key: str, lookup: str | None) -> Row | None:
        """See `Shape.source_key`."""
        if self._id_is_key:
            # Somebody else's document may have any id, such as 007, which is no row's.
            return (int(key),) if _NUMBER.fullmatch(key) else None
        return None if lookup is None else key_values(lookup)

    def routing(self, key: str) -> str | None:
        """See `Shape.routing`."""
        return self.id_and_routing(key)[1]

    @property
    def _id_is_key(self) -> bool:
        plain = self.form == DocumentForm.of_key(1)
        return plain and self.columns[self.key[0]].kind is Kind.INTEGER

    def _lookup(self, key: Row) -> str | None:
        """The key of a row, by which the source finds it; None if it does not."""
        columns = [self.columns[i] for i in self.key[: len(self.form.values)]]
        if self._id_is_key or any(column.kind is Kind.FLOAT for column in columns):
            return None
        return key_text(key[: len(columns)])

    def _lookup_of(self, id_: str, document: dict[str, Any]) -> str | None:
        """The key of the row that a document is made of; None if it does not say so."""
        if self._id_is_key:
            return None
        columns = [self.columns[i] for i in self.key[: len(self.form.values)]]
        key = tuple(_in_row(column.kind, document.get(column.name)) for column in columns)
        try:
            known = None not in key and document_id(key, self.form) == id_
        except DataError:
            known = False
        return self._lookup(key) if known else None


def _in_utf8(position: str) -> str:
    try:
        position.encode()
    except UnicodeEncodeError:
        return printable(position)
    return position


def _in_row(kind: Kind, value: Any) -> Value:
    """A field's value as a row has it; None for what nobody can tell."""
    if kind in _NUMBERS:
        return value if isinstance(value, int) and not isinstance(value, bool) else None
    if not isinstance(value, str):
        return None
    if kind in _AS_IN_ROWS:
        return value
    return value.replace("T", " ").removesuffix("Z") if kind in _MOMENTS else None


def _forms(column: Column, value: Any) -> tuple[Value, ...]:
    """The forms in which the value of a row may be found in the index."""
    if isinstance(value, float):
        return near(value)
    exact = _compared(column, value)
    if not isinstance(value, (dict, list)):
        return (exact,)
    # Servers and proxies that read and write the JSON on its way make doubles of all numbers.
    doubles = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return (exact,) if doubles == exact else (exact, doubles)


def _compared(column: Column, value: Any) -> Value:
    """A field's value in the form compared; in quotes if it is text where objects may be, too."""
    if column.kind is Kind.JSON and isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return field_value(value)


def field_value(value: Any) -> Value:
    """A field's JSON value in the form compared; objects and lists are text."""
    if isinstance(value, (dict, list)):
        return shown(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return rounded(value) if isinstance(value, float) else value


def rounded(value: float) -> Value:
    """A floating-point number as far as a document can be trusted to hold it.

    A cluster gives a document back as it was sent. Servers and proxies that read and write
    the JSON on its way may lose the last digits of a double: the embedded server does.
    """
    return f"{value + 0.0:.{_DIGITS - 1}e}"  # adding turns -0.0 into 0.0


def near(value: float) -> tuple[Value, ...]:
    """What `rounded` gives for a number that may have changed by two in its last binary digit.

    One text for nearly every number; two where it lies between two of them, and a few more for
    numbers so small that they have fewer digits themselves.
    """
    lower, higher = nextafter(value, -inf), nextafter(value, inf)
    lowest, highest = nextafter(lower, -inf), nextafter(higher, inf)
    below, above = rounded(lowest), rounded(highest)
    if below == above:
        return (below,)
    return tuple({below, rounded(lower), rounded(value), rounded(higher), above})


@dataclass(slots=True)
class IndexTarget:
    """An index as a target; see `setl.bulk.target_reader.TargetReader`.

    Attributes:
        endpoint: the cluster.
        index: the index, or an alias of one.
        shape: how its documents are compared.
    """

    endpoint: ClusterEndpoint
    index: str
    shape: DocumentShape
    _opened: list[str] = field(default_factory=list[str])

    @property
    def name(self) -> str:
        """See `TargetReader.name`."""
        return self.index

    def parts(self, rows_per_part: int) -> Sequence[Slice]:
        """See `TargetReader.parts`.

        The index is refreshed, so that what was written before is found. An index that does
        not exist has no documents: it comes into being with the first of them.
        """
        with closing(make_client(self.endpoint)) as client, translating(self.endpoint):
            if not client.exists(self.index):
                return []
            client.refresh(self.index)
            opened = self.endpoint.pages.open(client, self.index)
            self._opened.append(opened)
            count = int(client.count(self.index)["count"])
        slices = min(_MOST_SLICES, count // max(1, rows_per_part) + 1)
        return [Slice(opened, number, slices) for number in range(slices)]

    def parts_of_keys(self, keys: Sequence[str]) -> Sequence[Ids]:
        """See `TargetReader.parts_of_keys`."""
        return [
            Ids(tuple(keys[first : first + _IDS_PER_PART]))
            for first in range(0, len(keys), _IDS_PER_PART)
        ]

    def ordered(self, columns: Sequence[tuple[Column, str]]) -> Sequence[Column]:
        """See `OrderedTarget.ordered`.

        An index that does not exist has any order. An alias of several has one if all have it.
        """
        with closing(make_client(self.endpoint)) as client, translating(self.endpoint):
            found_mappings = client.mappings(self.index, ignore=NOT_FOUND)
        there = [one["mappings"] for one in found_mappings.values()]
        mappings = [one.get("properties", {}) for one in there]
        if not mappings:
            mappings = [{name: field_of(column) for column, name in columns}]
        found: list[Column] = []
        for column, name in columns:
            fields = {ordered_field(properties, name, column) for properties in mappings}
            if None in fields or len(fields) > 1:
                break
            found += [field for field in fields if field is not None]
        return found

    def part(self, columns: Sequence[Column], chunk: Chunk) -> Found:
        """See `RangedTarget.part`."""
        return Found(chunk_query(columns, chunk))

    def read(self, part: Slice | Ids | Found) -> Iterator[list[Pair]]:
        """See `TargetReader.read`; documents by id are read as they are now, not as refreshed.

        So are those of a range: the index is refreshed before.
        """
        for page in self._pages(part):
            yield [self.shape.pair_of(hit) for hit in page if self.shape.includes(hit["_id"])]

    def close(self) -> None:
        """See `TargetReader.close`."""
        if not self._opened:
            return
        with closing(make_client(self.endpoint)) as client, translating(self.endpoint):
            while self._opened:
                self.endpoint.pages.close(client, self._opened.pop())

    def _pages(self, part: Slice | Ids | Found) -> Iterator[list[Hit]]:
        if isinstance(part, Ids):
            return self._by_id(part)
        return self._slice(part) if isinstance(part, Slice) else self._found(part)

    def _slice(self, part: Slice) -> Iterator[list[Hit]]:
        sliced = (part.number, part.of) if part.of > 1 else None
        with (
            closing(make_client(self.endpoint, read=parsed)) as client,
            translating(self.endpoint),
        ):
            yield from self.endpoint.pages.read(client, part.opened, slice_=sliced)

    def _found(self, part: Found) -> Iterator[list[Hit]]:
        with (
            closing(make_client(self.endpoint, read=parsed)) as client,
            translating(self.endpoint),
        ):
            if not client.exists(self.index):
                return
            client.refresh(self.index)
            pages = self.endpoint.pages
            opened = pages.open(client, self.index)
            try:
                yield from pages.read(client, opened, query=part.query)
            finally:
                pages.close(client, opened)

    def _by_id(self, part: Ids) -> Iterator[list[Hit]]:
        with (
            closing(make_client(self.endpoint, read=parsed)) as client,
            translating(self.endpoint),
        ):
            if not client.exists(self.index):
                return
            wanted: list[dict[str, Any]] = []
            for id_, routing in map(self.shape.id_and_routing, part.ids):
                wanted.append({"_id": id_} | ({"routing": routing} if routing else {}))
            documents = client.many(self.index, wanted)
            yield [document for document in documents if document.get("found")]


def documents_in(endpoint: ClusterEndpoint, index: str) -> int:
    """How many documents an index has; 0 if it does not exist. Raises SetlError."""
    with closing(make_client(endpoint)) as client, translating(endpoint):
        client.refresh(index, ignore=NOT_FOUND)
        return int(client.count(index, ignore_unavailable="true")["count"])
