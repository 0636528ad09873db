"""What a Spark task does to its share of a batch before anything is loaded.

Decode, compact by key, map columns: rows entries go in, changes of targets come out. No Spark
here and no connections, so all of it can be tested by calling it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from setl.codec.binlog.rows import BinlogRowCodec
from setl.codec.dts.rows import DtsRowCodec
from setl.codec.port import RowCodec
from setl.config.channel import DtsSource, Source
from setl.config.routing import Route, Router
from setl.errors import ConfigurationError, DataError
from setl.model.change import DecodedRows, Row, TargetChanges
from setl.model.document import DocumentForm
from setl.model.faulty import FaultyRow, RawRecord
from setl.model.schema import RowSchema
from setl.transform.columns import ColumnPlan, key_indexes
from setl.transform.compaction import Compactor, Survivors
from setl.transform.documents import DocumentKeys, DocumentSource
from setl.transform.isolating import Refused, faults_one_by_one, null_keys, take_out, undecodable
from setl.transform.placement import bucket_of, spreads
from setl.transform.processing import processed


class WorkItem(NamedTuple):
    """One rows entry on its way to a task.

    Attributes:
        routes: indexes of the routes its table goes by.
        version: order in the source, see `document_version`.
        context: see `Entry.context`.
        payload: see `Entry.payload`.
        table: schema and table, for messages.
        decoded: the rows, if they are decoded already, as those of a dead letter are.
        first: number of the first of them in its record.
    """

    routes: tuple[int, ...]
    version: int
    context: tuple[bytes, ...]
    payload: bytes
    table: tuple[str, str] = ("", "")
    decoded: DecodedRows | None = None
    first: int = 0


@dataclass(frozen=True, slots=True)
class TransformPlan:
    """What tasks need to know of a pipeline; picklable.

    Attributes:
        codec: see `codec_for`.
        router: the pipeline's routes, by table.
        applied_through: changes up to this version were applied by an earlier leadership.
        undivided: targets whose unique values can move between rows, see `spreads`.
        isolates: whether faulty rows are taken out; else the first one is an error.
        excluded: rows known to be faulty, by index of the route, key and version.
        documents: where documents of several tables' rows are looked up; None if there are none.
    """

    codec: str
    router: Router
    applied_through: int = 0
    undivided: frozenset[tuple[str, str]] = frozenset()
    isolates: bool = False
    excluded: Mapping[tuple[int, Row, int], DataError] = field(default_factory=dict[Any, Any])
    documents: DocumentSource | None = None


class Compacted(NamedTuple):
    """What is left of a share after compaction.

    Attributes:
        survivors: for each route and shape of its rows, one change for each key.
        rows: row changes decoded.
        redelivered: of these, changes that were applied before.
        faulty: what was taken out, each with its route.
    """

    survivors: list[tuple[Route, RowSchema, Survivors]]
    rows: int
    redelivered: int
    faulty: list[tuple[Route, FaultyRow]]


_PHYSICAL = "dts-physical"  # DTS rows under the names of the parts that their table is split into
_codecs: dict[str, RowCodec] = {}


def codec_for(source: Source) -> str:
    """The codec that a source's rows need, by the name that `codec_named` takes."""
    if isinstance(source, DtsSource):
        return "dts" if source.logical_names else _PHYSICAL
    return "binlog"


def codec_named(name: str) -> RowCodec:
    """The codec of this process; codecs keep caches, so there is one of each."""
    codec = _codecs.get(name)
    if codec is None:
        if name == "binlog":
            codec = BinlogRowCodec()
        else:
            codec = DtsRowCodec(logical_names=name != _PHYSICAL)
        _codecs[name] = codec
    return codec


def compact(plan: TransformPlan, items: Iterable[WorkItem]) -> Compacted:
    """Decode a share, given in stream order, and keep the last change of each key.

    Raises:
        DataError: an entry cannot be decoded or a row has no key, and nothing is isolated.
    """
    decode = codec_named(plan.codec).decode
    compactors: dict[tuple[int, str, str], tuple[Route, Compactor | DocumentKeys]] = {}
    rows = redelivered = 0
    faulty: list[tuple[Route, FaultyRow]] = []
    for routes, version, context, payload, table, ready, first in items:
        try:
            decoded = ready or decode(payload, context)
        except DataError as error:
            if not plan.isolates:
                raise
            record = RawRecord(plan.codec, payload, context, table)
            faulty += [
                (route, undecodable(route, version, record, error))
                for route in plan.router.route(*table)
                if route.index in routes
            ]
            rows += 1
            continue
        count = len(decoded.images)
        rows += count
        if version <= plan.applied_through:
            redelivered += count
        schema = decoded.schema
        for index in routes:
            place = (index, schema.schema, schema.table)
            found = compactors.get(place)
            if found is None:
                table_routes = plan.router.route(schema.schema, schema.table)
                route = next(route for route in table_routes if route.index == index)
                found = compactors[place] = (route, _compactor(plan, route, *place[1:]))
            take = partial(_take_in, *found, version)
            try:
                take(decoded)
            except DataError:
                if not plan.isolates:
                    raise
                one_by_one = faults_one_by_one(found[0], decoded, version, take, first=first)
                faulty += [(found[0], fault) for fault in one_by_one]
    survivors: list[tuple[Route, RowSchema, Survivors]] = []
    for route, compactor in compactors.values():
        if plan.isolates:
            faulty += [(route, fault) for fault in null_keys(route, compactor.take_null_keys())]
        for part in compactor.survivors():
            refused = _excluded(plan, route, part)
            faulty += [(route, fault) for fault in take_out(route, part.schema, part, refused)]
            survivors.append((route, part.schema, part))
    return Compacted(survivors, rows, redelivered, faulty)


def _compactor(
    plan: TransformPlan, route: Route, schema: str, table: str
) -> Compactor | DocumentKeys:
    """What takes the changes of a table in, for one of its routes."""
    if route.documents is None:
        return Compactor(route.key, route.routing)
    return DocumentKeys(route.documents, (schema, table), document_source(plan))


def document_source(plan: TransformPlan) -> DocumentSource:
    """Where the pipeline's documents are looked up.

    Raises:
        ConfigurationError: nowhere, which a checked channel file rules out.
    """
    if plan.documents is None:
        raise ConfigurationError("documents with nested rows need the source's database")
    return plan.documents


def _take_in(
    route: Route, compactor: Compactor | DocumentKeys, version: int, decoded: DecodedRows
) -> None:
    if route.processor is None:
        compactor.add_many(decoded, version)
        return
    for part in processed(route.processor, decoded, route.key):
        compactor.add_many(part, version)


def _excluded(plan: TransformPlan, route: Route, part: Survivors) -> list[Refused]:
    """The survivors that are known to be faulty."""
    if plan.isolates and part.partial and route.into_index:
        error = _half_a_document(part.schema, part)
        return [(number, error) for number in range(len(part.upserts))]
    if not plan.excluded:
        return []
    found = (
        (number, plan.excluded.get((route.index, tuple(row[i] for i in part.key), version)))
        for number, (row, version) in enumerate(
            zip(part.upserts, part.upsert_versions, strict=True)
        )
    )
    return [(number, error) for number, error in found if error is not None]


def project(survivors: Sequence[tuple[Route, RowSchema, Survivors]]) -> list[TargetChanges]:
    """Survivors as changes of their targets, columns mapped; for routes without expressions.

    Raises:
        ConfigurationError: a mapping names a column that the table does not have.
        DataError: a document would lack columns.
    """
    changes: list[TargetChanges] = []
    for route, schema, part in survivors:
        if part.partial and route.into_index and part.upserts:
            raise _half_a_document(schema, part)
        plan = ColumnPlan.build(schema, route, incomplete=part.partial)
        changes.append(
            TargetChanges(
                target=route.target,
                columns=plan.columns,
                key=plan.key,
                upserts=plan.rows(part.upserts),
                deletes=part.deletes,
                upsert_versions=part.upsert_versions,
                delete_versions=part.delete_versions,
                group=route.group,
                document=document_form(schema, route),
                source=schema.name,
            )
        )
    return changes


def document_form(schema: RowSchema, route: Route) -> DocumentForm | None:
    """How rows of a table become documents; None if they go to a table.

    Raises:
        ConfigurationError: the mapping does not fit the table's key.
    """
    return route.document([schema.names[i] for i in key_indexes(schema, route.key)])


def _half_a_document(schema: RowSchema, part: Survivors) -> DataError:
    row = part.upserts[0]
    return DataError(
        f"a record of {schema.name} mentions only the columns {', '.join(schema.names)}, and the"
        " document would lose the others",
        hint="Set binlog_row_image=FULL at the source, or subscribe to all columns",
        table=schema.name,
        key=", ".join(str(row[i]) for i in part.key)[:200],
    )


def split(
    changes: TargetChanges, group: str | None, buckets: int, *, undivided: bool = False
) -> dict[int, TargetChanges]:
    """Deal one target's changes out to `buckets` tasks, each key to one of them."""
    key_columns = [changes.columns[i] for i in changes.key]
    if buckets == 1 or not spreads(key_columns, group, undivided=undivided):
        home = bucket_of((group or ".".join(changes.target),), buckets)
        return {home: changes}
    parts: dict[int, TargetChanges] = {}

    def part(bucket: int) -> TargetChanges:
        found = parts.get(bucket)
        if found is None:
            found = parts[bucket] = changes.without_rows()
        return found

    key_of = changes.key
    for row, version in zip(changes.upserts, changes.upsert_versions, strict=True):
        into = part(bucket_of(tuple(row[i] for i in key_of), buckets))
        into.upserts.append(row)
        into.upsert_versions.append(version)
    for key, version in zip(changes.deletes, changes.delete_versions, strict=True):
        into = part(bucket_of(key, buckets))
        into.deletes.append(key)
        into.delete_versions.append(version)
    return parts
