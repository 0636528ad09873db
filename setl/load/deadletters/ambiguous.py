"""Which dead letters nobody can match with a row any more.

A letter is superseded when the row with its key changes again. After some schema changes nobody can
tell: rows are gone that the binlog does not name, a key is written in another way (1.5 and 1.5000),
or the table is another one. Loaded again, such a letter could bring an old value back.

So it is under another mapping. A letter holds its row as the mapping made it, for the target and
under the key of that time. When the row changes again, that goes by the present mapping, and does
not supersede the letter.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Final

from setl.codec.sql.names import name_of
from setl.codec.sql.statement import table_ddl_of
from setl.codec.sql.table_ddl import Action, Clause, TableDdl
from setl.errors import SetlError
from setl.load.deadletters.dead_letter import DeadLetter, State
from setl.model.entry import Entry
from setl.model.faulty import SourceChange, TargetRow
from setl.model.target_name import target_name

if TYPE_CHECKING:
    from setl.channel.routes.routing import Router

_OTHER_ROWS: Final = frozenset({Action.DROP, Action.RENAME, Action.TRUNCATE})
_OTHER_ROWS_BY: Final = frozenset({"TRUNCATE", "EXCHANGE", "DISCARD", "IMPORT", "CONVERT"})
_INDEX: Final = frozenset({"INDEX", "KEY"})


def changed_targets(
    entries: Iterable[Entry], router: Router
) -> Iterable[tuple[str, TableDdl, frozenset[str]]]:
    """What schema changes change.

    Yields:
        A target, ``schema.table`` or index; the statement; and the columns of the source's table
        that go there under another name, in lower case.
    """
    for entry in entries:
        ddl = table_ddl_of(entry)
        if ddl is None:
            continue
        for table in ddl.tables:
            for route in router.route(*table):
                renamed = frozenset(source.lower() for source in route.renames.values())
                yield target_name(route.target), ddl, renamed


def in_doubt(letter: DeadLetter, ddl: TableDdl, renamed: Collection[str] = ()) -> bool:
    """Whether it is not known after a schema change what row a letter is about.

    Args:
        letter: from before the change, not superseded.
        ddl: the change, of a table whose rows go where the letter's does.
        renamed: columns of that table which go there under another name.
    """
    if not letter.key_hash and letter.state is not State.RETRY:
        return False  # nobody knows anyway
    if ddl.action is not Action.ALTER:
        return ddl.action in _OTHER_ROWS or ddl.replaces
    keys = {*_key_columns(letter), *renamed}
    return any(_changes_keys(clause, keys) for clause in ddl.clauses())


def _changes_keys(clause: Clause, keys: Collection[str]) -> bool:
    verb, words = clause.words[0], {token.word for token in clause.tokens}
    if "PRIMARY" in words or verb in _OTHER_ROWS_BY:
        return True
    if verb == "RENAME" and "COLUMN" not in clause.words[1:2]:
        return not _INDEX.intersection(clause.words[1:2])
    if clause.columns and verb == "ADD":
        return "KEY" in words
    if clause.columns:
        return "KEY" in words or any(name_of(c[0]).lower() in keys for c in clause.columns)
    return verb == "DROP" and "PARTITION" in clause.words[1:2]


def _key_columns(letter: DeadLetter) -> frozenset[str]:
    """The columns of a letter's key, and all that may be, in lower case."""
    try:
        content = letter.content
    except SetlError:
        return frozenset()
    if isinstance(content, TargetRow):
        return frozenset(content.columns[i].name.lower() for i in content.key)
    if isinstance(content, SourceChange):
        # What the mapping takes for the key is not in the letter.
        return frozenset(name.lower() for name in content.schema.names)
    return frozenset()


def is_remapped(letter: DeadLetter, router: Router) -> bool:
    """Whether the mapping of a letter's table is another one now.

    Args:
        letter: the letter; one of an earlier release says nothing but its target.
        router: the pipeline's routes as they are now.
    """
    mapped_by = letter.mapped_by
    schema, _, table = letter.source.partition(".")
    if not table or "." in table:  # which table it is is not known; a digest says enough
        return bool(mapped_by) and mapped_by not in {e.mapped_by for e in router.entries}
    try:
        routes = router.route(schema, table)
    except SetlError:
        return True
    if not routes:  # a processor may give its rows another table's name
        return mapped_by not in {e.mapped_by for e in router.entries if e.mapping.processor}
    return not any(
        target_name(route.target) == letter.target and mapped_by in ("", route.mapped_by)
        for route in routes
    )
