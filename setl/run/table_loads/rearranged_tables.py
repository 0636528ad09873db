"""Which tables of a load have to be read again after a schema change.

A load goes by the names of tables and by the order of their keys, and it may read a table that is
ahead of the stream. An added column or index changes nothing of that. But another key or collation
puts rows behind the position that was reached; another name puts a whole table there; and columns
that are named or typed again change once more in rows that were read as they are afterwards. Where
a unique key is dropped, a row may have been removed for another one that the source has beside it
by then (`LoadTicket.catching_up`). Reading the table from its beginning makes all of that good,
since it is read behind the change then.

Of a table without a key, the stream's changes are left out up to where it was read. So they do not
make good what a schema change before that does to its rows, such as one that empties the table, or
drops a column that is added again. After each of them the table is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from setl.codec.sql.statement import table_ddl_of
from setl.codec.sql.table_ddl import Action, Clause, Role, TableDdl, TableName
from setl.model.entry import Entry
from setl.model.table_load import TableLoad

_RELOAD: Final = frozenset({"CHANGE", "CONVERT", "EXCHANGE", "MODIFY"})
_KEYS: Final = frozenset({"INDEX", "KEY"})


class Rearranged(NamedTuple):
    """What a schema change does to tables that are being loaded.

    Attributes:
        again: those to read from their beginning, as ``schema.table``.
        moves: names from which rows went, each with the one to which they did.
    """

    again: tuple[str, ...] = ()
    moves: tuple[tuple[str, str], ...] = ()


def read_whole_again(load: TableLoad, entry: Entry) -> TableLoad:
    """A load that was ended before it was done, after a schema change that came before its end.

    Nothing more is read but tables without a key, see the module's text.
    """
    again = _whole(load, entry)
    return load.with_again(again, load.origins).next_round if again and not load.ended else load


def _whole(load: TableLoad, entry: Entry) -> tuple[str, ...]:
    """The tables without a key that a schema change is about and that were read before it."""
    if not load.whole:
        return ()
    ddl = table_ddl_of(entry)
    changed = [] if ddl is None else [".".join(name) for name in ddl.tables]
    return tuple(name for name in load.whole if name in changed)


def rearranged(entry: Entry) -> Rearranged:
    """What a schema change of the stream does to tables."""
    ddl = table_ddl_of(entry)
    if ddl is None:
        return Rearranged()
    moves = tuple(_moves(ddl)) if ddl.action in (Action.ALTER, Action.RENAME) else ()
    altered = ddl.action is Action.ALTER and any(map(_rearranges, ddl.clauses()))
    drops_key = ddl.action is Action.INDEX and ddl.tokens[0].word == "DROP"
    if not (moves or altered or drops_key):
        return Rearranged()
    return Rearranged(tuple(dict.fromkeys(".".join(name) for name in ddl.tables)), moves)


def _moves(ddl: TableDdl) -> Iterator[tuple[str, str]]:
    subject = ddl.names[0]
    for name in ddl.names:
        if name.role is Role.SUBJECT:
            subject = name
        elif name.role is Role.NEW_NAME:
            yield _text(subject), _text(name)
        elif name.role is Role.OTHER:  # they exchange rows
            yield _text(subject), ""
            yield _text(name), _text(subject)
            yield "", _text(name)


def _text(name: TableName) -> str:
    return f"{name.schema}.{name.table}"


def _rearranges(clause: Clause) -> bool:
    words = clause.words
    if words[0] == "RENAME":
        return words[1] not in _KEYS
    if words[0] == "DROP" and words[1] in (*_KEYS, "CONSTRAINT"):
        return True
    return words[0] in _RELOAD or "PRIMARY" in words


def read_again(load: TableLoad, entry: Entry, wants: Callable[[str], bool]) -> TableLoad:
    """A load after a schema change of the stream that came before its end.

    Args:
        load: how far it has come.
        entry: the schema change.
        wants: whether the load is about a table, by ``schema.table``.
    """
    change = rearranged(entry)
    if not change.again:
        change = Rearranged(_whole(load, entry))
    if load.ended or not any(wants(name) for name in change.again):
        return load
    origins = dict(load.origins)
    # Names that another table has had at some time; where none has it now, it is its own again.
    taken = dict.fromkeys(origins)
    for before, now in change.moves:
        origins[now] = origin = origins.pop(before, before)
        if origin != now:
            taken[now] = None
    return load.with_again(change.again, tuple((name, origins.get(name, name)) for name in taken))


def mixed(load: TableLoad, exists: Callable[[str], bool]) -> tuple[str, ...]:
    """Tables that may have kept rows of another one in the target.

    A table that took the name of another one may have been read before the stream came there, so
    that its rows went to the one that had the name till then. Nothing removes those again, also
    where that one gets its name back, or the first one is dropped.

    Args:
        load: a load of which all rows are read.
        exists: whether it is about a table, and the source has it, by ``schema.table``.
    """
    taken = dict(load.origins)
    return tuple(
        now for now, before in load.origins if exists(now) and (exists(before) or before in taken)
    )


def reason_to_reload(load: TableLoad, exists: Callable[[str], bool]) -> str:
    """What to say of `mixed` tables, "" if there are none."""
    names = mixed(load, exists)
    if not names:
        return ""
    tables = " ".join(f"--table {name}" for name in names)
    return (
        "all rows are in the target, but tables took each other's names while they were loaded,"
        f" and rows of another one may be left: `setl load {tables} --replace` removes them"
    )


def doubt_of_actions(load: TableLoad) -> str:
    """What to say of rows that actions of foreign keys met ahead of the stream, "" for none."""
    if not load.acted:
        return ""
    tables = " ".join(f"--table {name}" for name in load.acted)
    return (
        "all rows are in the target, but foreign keys with CASCADE or SET NULL changed rows while"
        " they were loaded, and others that depend on these may be missing, or be left:"
        f" `setl load {tables} --replace` makes them right"
    )
