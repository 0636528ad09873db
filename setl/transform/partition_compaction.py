"""Decodes a task's partition of a batch, and keeps the last change of each key.

Rows entries go in, survivors of each route come out, before anything is loaded. No Spark here and
no connections, so all of it can be tested by calling it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from setl.channel.routes.routing import Route, selected_columns
from setl.codec.row_codec import RowCodec
from setl.errors import ConfigurationError, DataError
from setl.model.change import DecodedRows
from setl.model.faulty import FaultyRow, RawRecord
from setl.model.schema import RowSchema
from setl.model.unlogged_columns import unlogged_error
from setl.transform.column_compaction import ByColumn, TableRoute, compact_by_column
from setl.transform.columns import identity_indexes
from setl.transform.compaction import Compactor
from setl.transform.documents import DocumentKeys, DocumentSource
from setl.transform.isolating import Refused, faults_one_by_one, null_keys, take_out, undecodable
from setl.transform.keyless import KeylessRows, is_keyless
from setl.transform.processing import processed
from setl.transform.projection import half_a_document
from setl.transform.rereading import RereadRows
from setl.transform.survivors import Survivors
from setl.transform.unchanged import UnchangedRows
from setl.transform.unlogged_columns import needed_by_spark_sql
from setl.transform.work import TransformPlan, WorkItem, codec_named, single_items


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


def compact(plan: TransformPlan, items: Iterable[WorkItem]) -> Compacted:
    """Decode a share, given in stream order, and keep the last change of each key.

    Raises:
        DataError: an entry cannot be decoded or a row has no key, and nothing is isolated.
    """
    partition = list(items)
    codec = codec_named(plan.codec)
    taken = compact_by_column(plan, codec, partition, partial(partial, _row_key, plan.codec))
    rest = _compacted(plan, codec, taken.rest)
    return _together(partition, taken, rest) if taken.survivors else rest


def _together(partition: Sequence[WorkItem], taken: ByColumn, rest: Compacted) -> Compacted:
    """What is left of both, tables in the order in which they come first."""
    order: dict[TableRoute, int] = {}
    for item in partition:
        for index in item.routes:
            order.setdefault((index, item.table), len(order))
    survivors = [*taken.survivors.values(), *rest.survivors]
    survivors.sort(key=lambda part: order.get((part[0].index, (part[1].schema, part[1].table)), 0))
    return Compacted(
        survivors, taken.rows + rest.rows, taken.redelivered + rest.redelivered, rest.faulty
    )


def _compacted(plan: TransformPlan, codec: RowCodec, partition: list[WorkItem]) -> Compacted:
    # Rows of a table come alone, and as they were read.
    if any(item.table_rows is not None for item in partition):
        plan = replace(plan, lookup=None)
    compaction = _Compaction(plan, codec)
    for item in single_items(codec, partition):
        compaction.take(item)
    return compaction.compacted()


Taking = Compactor | DocumentKeys | RereadRows
"""What takes the changes of a table in."""


class _Table(NamedTuple):
    """What takes the changes of a table in, for one of its routes."""

    route: Route
    compactor: Taking
    keyless: KeylessRows
    unchanged: UnchangedRows | None = None


class _Compaction:
    """A share of a batch that is being compacted."""

    def __init__(self, plan: TransformPlan, codec: RowCodec) -> None:
        self._plan = plan
        self._codec = codec
        self._tables: dict[tuple[int, str, str], _Table] = {}
        self._rows = self._redelivered = 0
        self._faulty: list[tuple[Route, FaultyRow]] = []

    def take(self, item: WorkItem) -> None:
        """Take one record in."""
        routes, version, context, payload, name, ready, first, _ = item
        plan = self._plan
        try:
            keys_alone = plan.lookup is not None and self._all_reread(item)
            decoded = ready or self._codec.decode(payload, context, keys_alone=keys_alone)
        except DataError as error:
            if not plan.isolates:
                error.at(version=version)
                raise
            record = RawRecord(plan.codec, payload, context, name)
            self._faulty += [
                (route, undecodable(route, version, record, error))
                for route in plan.router.route(*name)
                if route.index in routes
            ]
            self._rows += 1
            return
        self._count([version] * len(decoded.images))
        schema = decoded.schema
        for index in routes:
            table = self._table((index, schema.schema, schema.table))
            route = table.route
            if is_keyless(plan.codec, route, schema):
                self._take_keyless(table.keyless, decoded, version)
                continue
            # What was put aside is written, whatever it changes.
            take = partial(_take_in, table, version, skipping=ready is None)
            try:
                take(decoded)
            except DataError as error:
                if not plan.isolates:
                    error.at(version=version)
                    raise
                one_by_one = faults_one_by_one(route, decoded, version, take, first=first)
                self._faulty += [(route, fault) for fault in one_by_one]

    def _take_keyless(self, rows: KeylessRows, decoded: DecodedRows, version: int) -> None:
        try:
            rows.add_many(decoded, version)
        except DataError as error:
            # Never put aside: later changes of such a row would not find it.
            error.at(version=version)
            raise

    def _all_reread(self, item: WorkItem) -> bool:
        routes = self._plan.router.route(*item.table)
        return all(route.rereads for route in routes if route.index in item.routes)

    def _count(self, versions: Sequence[int]) -> None:
        """Count changes of these versions, which do not fall."""
        self._rows += len(versions)
        through = self._plan.applied_through
        if versions and versions[0] <= through:
            self._redelivered += sum(version <= through for version in versions)

    def _table(self, key: tuple[int, str, str]) -> _Table:
        found = self._tables.get(key)
        if found is None:
            index, schema, table = key
            routes = self._plan.router.route(schema, table)
            route = next(route for route in routes if route.index == index)
            compactor = _compactor(self._plan, route, schema, table)
            compared = isinstance(compactor, Compactor) and route.processor is None
            unchanged = UnchangedRows(route) if compared and route.skips_unchanged else None
            found = _Table(route, compactor, KeylessRows(), unchanged)
            self._tables[key] = found
        return found

    def compacted(self) -> Compacted:
        """What is left."""
        plan, faulty = self._plan, self._faulty
        survivors: list[tuple[Route, RowSchema, Survivors]] = []
        for route, compactor, keyless, _ in self._tables.values():
            survivors += [(route, part.schema, part) for part in keyless.survivors()]
            if plan.isolates:
                taken = compactor.take_null_keys()
                faulty += [(route, fault) for fault in null_keys(route, taken)]
            for part in compactor.survivors():
                refused = _excluded(plan, route, part)
                faulty += [(route, f) for f in take_out(route, part.schema, part, refused)]
                survivors.append((route, part.schema, part))
        return Compacted(survivors, self._rows, self._redelivered, faulty)


class _NoKeyError(DataError):
    """A table has no key, so each of its changes is decoded."""


def _row_key(codec: str, route: Route, schema: RowSchema) -> tuple[int, ...]:
    if is_keyless(codec, route, schema):
        raise _NoKeyError("the table has no key", table=schema.name)
    return identity_indexes(schema, route.key, route.routing)


def _compactor(plan: TransformPlan, route: Route, schema: str, table: str) -> Taking:
    """What takes the changes of a table in, for one of its routes."""
    if route.rereads and plan.lookup is not None:
        return RereadRows(plan.lookup)
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


def _take_in(table: _Table, version: int, decoded: DecodedRows, *, skipping: bool) -> None:
    route, compactor, unchanged = table.route, table.compactor, table.unchanged
    schema = decoded.schema
    if schema.unlogged and isinstance(compactor, Compactor):
        needed = needed_by_spark_sql(route, schema.unlogged)
        if needed:
            raise unlogged_error(schema.name, needed)
    if unchanged is not None and skipping:
        decoded = unchanged.left_out(decoded)
    if route.processor is None:
        compactor.add_many(decoded, version)
        return
    for part in processed(route.processor, decoded, route.key, route.routing):
        compactor.add_many(part, version)


def _excluded(plan: TransformPlan, route: Route, part: Survivors) -> list[Refused]:
    """The survivors that are known to be faulty."""
    unlogged = tuple(name for _, name in selected_columns(route, part.schema.unlogged))
    if plan.isolates and route.into_index and part.upserts and (part.partial or unlogged):
        error = half_a_document(part.schema, part, unlogged)
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
