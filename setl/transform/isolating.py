"""Removes faulty changes from a share, so that all others can be applied (I14).

Which row of the target a change concerns is known once compaction has taken it in. A row that is
faulty before that is kept without a key: the key may be what is wrong, the change may have two of
them, or a processor may decide about it. Nobody can tell then whether a later change has made up
for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from zlib import crc32

from setl.channel.routes.routing import Route
from setl.errors import DataError
from setl.model.change import DecodedRows, Op, Row
from setl.model.faulty import FaultyRow, RawRecord, SourceChange
from setl.model.schema import RowSchema
from setl.transform.columns import key_indexes
from setl.transform.survivors import Survivors

Refused = tuple[int, DataError]
"""Number of a survivor among `Survivors.upserts`, and why it cannot go on."""


def undecodable(route: Route, version: int, record: RawRecord, error: DataError) -> FaultyRow:
    """A record that cannot be decoded, for one of its routes."""
    table = ".".join(record.table)
    return FaultyRow(route.target, table, version, record, error, mapped_by=route.mapped_by)


def faults_one_by_one(
    route: Route,
    decoded: DecodedRows,
    version: int,
    take: Callable[[DecodedRows], None],
    *,
    first: int = 0,
) -> Iterator[FaultyRow]:
    """Take the changes of an entry in one by one, after taking them together has failed.

    Some may have been taken in then; taking them in again, from the first on, changes nothing.

    Args:
        route: the route.
        decoded: the changes.
        version: the entry's place in the source.
        take: takes changes in.
        first: number of the first of them in its record.

    Yields:
        Those that fail.
    """
    schema, op, images = decoded
    for number, (before, after) in enumerate(images, first):
        try:
            take(DecodedRows(schema, op, [(before, after)]))
        except DataError as error:
            change = SourceChange(schema, op, before, after, number=_number(route, number))
            yield FaultyRow(
                route.target, schema.name, version, change, error, mapped_by=route.mapped_by
            )


def null_keys(
    route: Route, found: Iterable[tuple[RowSchema, Row | None, int, DataError]]
) -> Iterator[FaultyRow]:
    """What compaction has taken out because its key is null; see `Compactor.take_null_keys`."""
    for schema, row, version, error in found:
        # A delete keeps only its key, which is null.
        op = Op.DELETE if row is None else Op.INSERT
        number = _number(route, crc32(repr(row).encode()))
        change = SourceChange(schema, op, None, row, number=number)
        yield FaultyRow(
            route.target, schema.name, version, change, error, mapped_by=route.mapped_by
        )


def take_out(
    route: Route, schema: RowSchema, part: Survivors, refused: Iterable[Refused]
) -> list[FaultyRow]:
    """Remove survivors that cannot be transformed; returns them as faulty rows."""
    errors = dict(refused)
    if not errors:
        return []
    names = [schema.names[i] for i in key_indexes(schema, route.key)]
    document, columns = route.document(names), tuple(schema.columns[i] for i in part.key)
    faulty: list[FaultyRow] = []
    remaining = [i for i in range(len(part.upserts)) if i not in errors]
    for number, error in errors.items():
        row, version = part.upserts[number], part.upsert_versions[number]
        change = SourceChange(schema, Op.INSERT, None, row, part.partial, _number(route, 0))
        key = tuple(row[i] for i in part.key)
        faulty.append(
            FaultyRow(
                route.target,
                schema.name,
                version,
                change,
                error,
                key,
                columns,
                document,
                route.mapped_by,
            )
        )
    part.own_upserts[:] = [part.upserts[i] for i in remaining]
    part.upsert_versions[:] = [part.upsert_versions[i] for i in remaining]
    return faulty


def _number(route: Route, number: int) -> int:
    # One table may go to one target by two routes.
    return route.index << 32 | number


def number_in_record(change: SourceChange) -> int:
    """The number of a change in its record, of one that `faults_one_by_one` has made."""
    return change.number & (1 << 32) - 1
