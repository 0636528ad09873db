"""Stores in the target how far each table of `setl.systems.mysql.load.exact` is loaded.

What is delivered again is told by its version, and not applied again: for a while the table
would hold rows of two places of the stream at once, of which some are in the way of others.
All functions run inside the load's transaction; pymysql's errors pass through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from pymysql.connections import Connection

from setl.errors import DataError, FatalError
from setl.load.sink import LoadTicket
from setl.model.change import TargetChanges
from setl.model.position import first_version

_THROUGH: Final = (
    "SELECT through FROM retl.setl_loaded"
    " WHERE pipeline = %s AND schema_name = %s AND table_name = %s FOR UPDATE"
)
_LOADED: Final = (
    "INSERT INTO retl.setl_loaded (pipeline, schema_name, table_name, through)"
    " VALUES (%s, %s, %s, %s) ON DUPLICATE KEY UPDATE through = GREATEST(through, VALUES(through))"
)
_MOVED: Final = (
    "Leave the table out with `except`; or give the target's table the rows that the source had at"
    " the place where the pipeline goes on (`setl position`), delete the table's row in"
    " retl.setl_loaded at the target, and start the pipeline again"
)
_FORGET: Final = "DELETE FROM retl.setl_loaded WHERE pipeline = %s"


def not_loaded_yet(
    connection: Connection[Any], ticket: LoadTicket, changes: Sequence[TargetChanges]
) -> list[TargetChanges]:
    """Changes of one table without those that it has, and how far it has come afterwards.

    Nothing is known of changes without versions, nor of a load that does not say where it ends;
    they are left as they are.
    """
    if not ticket.through or not all(map(_is_versioned, changes)):
        return list(changes)
    table = changes[0].target
    through = _through(connection, ticket, table)
    if ticket.through > through:
        loaded_all(connection, ticket, [table])
    return [_beyond(change, through) for change in changes]


def beyond_what_is_loaded(
    connection: Connection[Any], ticket: LoadTicket, changes: Sequence[TargetChanges]
) -> list[TargetChanges]:
    """As `not_loaded_yet`, where each change must be applied once: an error if that is not sure.

    Raises:
        FatalError: changes lie behind the load's end, or have no place.
        DataError: the stream has gone to another place, so nobody can tell what comes again.
    """
    versions = [v for c in changes for v in (*c.upsert_versions, *c.delete_versions)]
    name = ".".join(changes[0].target)
    if not all(map(_is_versioned, changes)) or max(versions, default=0) > ticket.through:
        raise FatalError("rows of a table without a key lie behind the load's end", table=name)
    table = changes[0].target
    through = _through(connection, ticket, table)
    if 0 < through < first_version(ticket.generation):
        raise DataError(
            "the table has no key at the source, and the stream has gone to another place since"
            " rows were last written to it: what comes again cannot be told from what is new",
            hint=_MOVED,
            table=name,
        )
    if ticket.through > through:
        loaded_all(connection, ticket, [table])
    return [_beyond(change, through) for change in changes]


def loaded_elsewhere(
    connection: Connection[Any], ticket: LoadTicket, tables: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Those tables that were last written to before the stream went to another place."""
    return [
        table
        for table in tables
        if 0 < _through(connection, ticket, table) < first_version(ticket.generation)
    ]


def loaded_all(
    connection: Connection[Any], ticket: LoadTicket, tables: Sequence[tuple[str, str]]
) -> None:
    """Note that tables have all changes up to the load's end, or up to a schema change."""
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(_LOADED, (ticket.pipeline_key, *table, ticket.through))


def _through(connection: Connection[Any], ticket: LoadTicket, table: tuple[str, str]) -> int:
    """How far a table has come; 0 if nobody knows."""
    with connection.cursor() as cursor:
        cursor.execute(_THROUGH, (ticket.pipeline_key, *table))
        row = cursor.fetchone()
        return 0 if row is None else int(row[0])


def forget_loaded(connection: Connection[Any], pipeline_key: str) -> None:
    """Forget how far tables have come; for a pipeline that begins as if it never ran."""
    with connection.cursor() as cursor:
        cursor.execute(_FORGET, (pipeline_key,))


def _is_versioned(change: TargetChanges) -> bool:
    return len(change.upserts) == len(change.upsert_versions) and len(change.deletes) == len(
        change.delete_versions
    )


def _beyond(change: TargetChanges, through: int) -> TargetChanges:
    if min([*change.upsert_versions, *change.delete_versions], default=through + 1) > through:
        return change
    upserts = [
        (row, version)
        for row, version in zip(change.upserts, change.upsert_versions, strict=True)
        if version > through
    ]
    deletes = [
        (key, version)
        for key, version in zip(change.deletes, change.delete_versions, strict=True)
        if version > through
    ]
    return replace(
        change,
        upserts=[row for row, _ in upserts],
        upsert_versions=[version for _, version in upserts],
        deletes=[key for key, _ in deletes],
        delete_versions=[version for _, version in deletes],
    )
