"""What a Spark task does to its share of a batch before anything is loaded.

Decode, compact by key, map columns: rows entries go in, changes of targets come out. No Spark
here and no connections, so all of it can be tested by calling it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from setl.codec.binlog.rows import BinlogRowCodec
from setl.codec.dts.rows import DtsRowCodec
from setl.codec.port import RowCodec
from setl.config.routing import Route, Router
from setl.model.change import TargetChanges
from setl.model.schema import RowSchema
from setl.transform.columns import ColumnPlan
from setl.transform.compaction import Compactor, Survivors
from setl.transform.placement import bucket_of, spreads


class WorkItem(NamedTuple):
    """One rows entry on its way to a task.

    Attributes:
        routes: indexes of the routes its table goes by.
        version: order in the source, see `document_version`.
        context: see `Entry.context`.
        payload: see `Entry.payload`.
    """

    routes: tuple[int, ...]
    version: int
    context: tuple[bytes, ...]
    payload: bytes


@dataclass(frozen=True, slots=True)
class TransformPlan:
    """What tasks need to know of a pipeline; picklable.

    Attributes:
        codec: ``binlog`` or ``dts``.
        router: the pipeline's routes, by table.
        applied_through: changes up to this version were applied by an earlier leadership.
    """

    codec: str
    router: Router
    applied_through: int = 0


class Compacted(NamedTuple):
    """What is left of a share after compaction.

    Attributes:
        survivors: for each route and shape of its rows, one change for each key.
        rows: row changes decoded.
        redelivered: of these, changes that were applied before.
    """

    survivors: list[tuple[Route, RowSchema, Survivors]]
    rows: int
    redelivered: int


_codecs: dict[str, RowCodec] = {}


def codec_named(name: str) -> RowCodec:
    """The codec of this process; codecs keep caches, so there is one of each."""
    codec = _codecs.get(name)
    if codec is None:
        codec = BinlogRowCodec() if name == "binlog" else DtsRowCodec()
        _codecs[name] = codec
    return codec


def compact(plan: TransformPlan, items: Iterable[WorkItem]) -> Compacted:
    """Decode a share, given in stream order, and keep the last change of each key.

    Raises:
        DataError: an entry cannot be decoded or a row has no key.
    """
    decode = codec_named(plan.codec).decode
    compactors: dict[tuple[int, str, str], tuple[Route, Compactor]] = {}
    rows = redelivered = 0
    for routes, version, context, payload in items:
        decoded = decode(payload, context)
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
                found = compactors[place] = (route, Compactor(route.key))
            found[1].add_many(decoded, version)
    survivors = [
        (route, part.schema, part)
        for route, compactor in compactors.values()
        for part in compactor.survivors()
    ]
    return Compacted(survivors, rows, redelivered)


def project(survivors: Sequence[tuple[Route, RowSchema, Survivors]]) -> list[TargetChanges]:
    """Survivors as changes of their targets, columns mapped; for routes without expressions.

    Raises:
        ConfigurationError: a mapping names a column that the table does not have.
    """
    changes: list[TargetChanges] = []
    for route, schema, part in survivors:
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
            )
        )
    return changes


def split(changes: TargetChanges, group: str | None, buckets: int) -> dict[int, TargetChanges]:
    """Deal one target's changes out to `buckets` tasks, each key to one of them."""
    key_columns = [changes.columns[i] for i in changes.key]
    if buckets == 1 or not spreads(key_columns, group):
        home = bucket_of((group or ".".join(changes.target),), buckets)
        return {home: changes}
    parts: dict[int, TargetChanges] = {}

    def part(bucket: int) -> TargetChanges:
        found = parts.get(bucket)
        if found is None:
            found = parts[bucket] = TargetChanges(changes.target, changes.columns, changes.key)
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
