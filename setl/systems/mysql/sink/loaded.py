"""Stores in the target how far each table of `setl.systems.mysql.load.exact` is loaded.

What is delivered again is told by its version, and not applied again: for a while the table
would hold rows of two positions of the stream at once, of which some conflict with others.
All functions run inside the load's transaction; pymysql's errors pass through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from pymysql.connections import Connection

from setl.errors import ConfigurationError, DataError, FatalError
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
_STATE: Final = (
    "INSERT INTO retl.setl_loaded (pipeline, schema_name, table_name, through)"
    " VALUES (%s, %s, %s, %s) ON DUPLICATE KEY UPDATE through = VALUES(through)"
)
_OTHERS: Final = (
    "SELECT pipeline FROM retl.setl_loaded"
    " WHERE schema_name = %s AND table_name = %s AND pipeline <> %s LIMIT 1"
)
_UNFINISHED: Final = 1
"""In place of a version, of a table that lacks changes until it is loaded. No version is as low."""
_MOVED_WHAT: Final = (
    "the table has no key at the source, and the stream has gone to another position since rows "
    "were"
    " last written to it: what comes again cannot be distinguished from what is new"
)
_UNFINISHED_WHAT: Final = (
    "the table has no key at the source, and a load of it has not come to its end: its rows lack"
    " changes that were left to that load"
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

    None are left of a table that is about to be loaded (`LoadTicket.unread`), where that is not
    sure or where nothing is known of its rows. That is noted until it is loaded.

    Raises:
        FatalError: changes lie behind the load's end, or have no place.
        DataError: the stream has gone to another position, so nobody can tell what comes again; or
            changes were left out for a load that did not come to its end.
    """
    versions = [v for c in changes for v in (*c.upsert_versions, *c.delete_versions)]
    name = ".".join(changes[0].target)
    if not all(map(_is_versioned, changes)) or max(versions, default=0) > ticket.through:
        raise FatalError("rows of a table without a key lie behind the load's end", table=name)
    table = changes[0].target
    through = _through(connection, ticket, table)
    known = through >= first_version(ticket.generation)
    if not known and table in ticket.unread:
        leave_to_load(connection, ticket, table)
        return [_beyond(change, ticket.through) for change in changes]
    if through and not known:
        raise DataError(
            _UNFINISHED_WHAT if through == _UNFINISHED else _MOVED_WHAT,
            hint=load_it(ticket, changes[0]),
            table=name,
        )
    if ticket.through > through:
        loaded_all(connection, ticket, [table])
    return [_beyond(change, through) for change in changes]


def unsure_of(
    connection: Connection[Any], ticket: LoadTicket, tables: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Those tables that lack changes, or that the stream has left for another position since."""
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


def leave_to_load(connection: Connection[Any], ticket: LoadTicket, target: tuple[str, str]) -> None:
    """Note that a table has not all changes of the stream, since a load is to replace its rows."""
    with connection.cursor() as cursor:
        cursor.execute(_STATE, (ticket.pipeline_key, *target, _UNFINISHED))


def is_loaded_as_of(
    connection: Connection[Any], ticket: LoadTicket, target: tuple[str, str], through: int
) -> None:
    """Note that a table has all rows as of a version, and no change behind it.

    Raises:
        ConfigurationError: another pipeline has written to the table.
    """
    with connection.cursor() as cursor:
        cursor.execute(_OTHERS, (*target, ticket.pipeline_key))
        other = cursor.fetchone()
        if other is not None:
            raise ConfigurationError(
                f"the pipeline {other[0]} writes the table, too, and a load of a table without a"
                " key removes all of its rows first",
                hint="Give each pipeline a table of its own. If that pipeline is gone, at the"
                f" target: DELETE FROM retl.setl_loaded WHERE pipeline = '{other[0]}'",
                table=".".join(target),
            )
        cursor.execute(_STATE, (ticket.pipeline_key, *target, through))


def load_it(ticket: LoadTicket, change: TargetChanges) -> str:
    """How to get a table right whose source has no key, where it is not."""
    pipeline, table = ticket.pipeline_key, change.source or ".".join(change.target)
    channel = pipeline.partition("/")[0]
    return (
        f"`setl load {pipeline} --table {table} --no-wait`, then `setl start {channel}`: that"
        " replaces the target's rows by the source's. Or leave the table out with `except`"
    )


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
