"""What a task is given to transform: entries with rows, and a plan of what to do with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from setl.channel.fields.kafka_formats import STANDALONE
from setl.channel.routes.routing import Router
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.dts.rows import DtsRowCodec
from setl.codec.row_codec import RowCodec
from setl.errors import DataError
from setl.lazy_imports import imported
from setl.model.change import DecodedRows, Row
from setl.model.checkpoint import ShownPosition
from setl.model.schema import RowSchema
from setl.transform.documents import DocumentSource
from setl.transform.rereading import Lookup

_PHYSICAL = "dts-physical"  # DTS rows under the names of the parts that their table is split into
_codecs: dict[str, RowCodec] = {}


class TableRows(Protocol):
    """Rows that a task reads from their table. Picklable."""

    @property
    def schema(self) -> RowSchema:
        """The table."""
        ...

    def read(self) -> Iterator[DecodedRows]:
        """The rows as inserts, some thousand at a time.

        Raises:
            SetlError: the source cannot be asked.
        """
        ...


class WorkItem(NamedTuple):
    """One rows entry on its way to a task: a record, or a run of them.

    Attributes:
        routes: indexes of the routes its table goes by.
        version: order in the source, see `document_version`; of a run, of its last record.
        context: see `Entry.context`.
        payload: see `Entry.payload`.
        table: schema and table, for messages.
        decoded: the rows, if they are decoded already, as those of a dead letter are.
        first: number of the first of them in its record.
        table_rows: what reads the rows, if they do not come from the stream.
    """

    routes: tuple[int, ...]
    version: int
    context: tuple[bytes, ...]
    payload: bytes
    table: tuple[str, str] = ("", "")
    decoded: DecodedRows | None = None
    first: int = 0
    table_rows: TableRows | None = None


@dataclass(frozen=True, slots=True)
class TransformPlan:
    """What tasks need to know of a pipeline; picklable.

    Attributes:
        codec: see `codec_named`.
        router: the pipeline's routes, by table.
        applied_through: changes up to this version were applied by an earlier leadership.
        single_writer: targets whose unique values can move between rows, see `spreads`.
        isolates: whether faulty rows are taken out; else the first one is an error.
        excluded: rows known to be faulty, by index of the route, key and version.
        documents: where documents of several tables' rows are looked up; None if there are none.
        lookup: how rows of routes with `Route.rereads` are looked up; None if there are none.
        column_rows: changes of one table in a task from which on they are taken by column, see
            `setl.transform.column_compaction`; None for never.
        takes_columns: whether the sink takes rows as columns.
    """

    codec: str
    router: Router
    applied_through: int = 0
    single_writer: frozenset[tuple[str, str]] = frozenset()
    isolates: bool = False
    excluded: Mapping[tuple[int, Row, int], DataError] = field(default_factory=dict[Any, Any])
    documents: DocumentSource | None = None
    lookup: Lookup | None = None
    column_rows: int | None = None
    takes_columns: bool = False

    def ending_at(self, position: ShownPosition | None) -> TransformPlan:
        """The plan for a load that ends at this position of the stream."""
        return (
            self
            if self.lookup is None
            else replace(self, lookup=self.lookup._replace(position=position))
        )


def codec_named(name: str) -> RowCodec:
    """The codec of this process; codecs keep caches, so there is one of each.

    Args:
        name: see `setl.channel.fields.endpoint.SourceConfig.codec`.

    Raises:
        NodeNotReadyError: this installation lacks it.
    """
    codec = _codecs.get(name)
    if codec is None:
        codec = _codecs[name] = _new_codec(name)
    return codec


def _new_codec(name: str) -> RowCodec:
    format_, *options = name.split(" ")
    if format_ == "binlog":
        return BinlogRowCodec()
    if format_ in STANDALONE:
        return imported(STANDALONE[format_].rows, f"the format {format_}")(*options)
    return DtsRowCodec(logical_names=name != _PHYSICAL)


def single_items(codec: RowCodec, items: Iterable[WorkItem]) -> Iterator[WorkItem]:
    """Work items of one record each, in order; see `RowCodec.records`."""
    records_of = codec.records
    for item in items:
        if item.table_rows is not None:
            for rows in item.table_rows.read():
                yield item._replace(decoded=rows, table_rows=None)
            continue
        records = () if item.decoded is not None else records_of(item.payload)
        # Also of what is left of a run, which is a run of one record then.
        for older, payload in records or ((0, item.payload),):
            yield item._replace(version=item.version - older, payload=payload)
