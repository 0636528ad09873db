"""Checks whether a target's unique keys would merge two rows of the source (I21).

A load never merges such rows; the first pair of them is an error that stops the pipeline. Here
it is told before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from setl.channel.routes.routing import Route, selected_columns
from setl.codec.binlog.tables.collation import OF_MARIADB, common_name
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.finding import Report
from setl.systems.mysql.catalog import KeyPart, read_key_parts, read_table
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.identifiers import qualified, quote
from setl.systems.mysql.preflight.source_tables import source_key
from setl.systems.mysql.server import Server
from setl.systems.mysql.table_facts import TableText

_COLLATIONS: Final = (
    "SELECT COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND COLLATION_NAME IS NOT NULL"
)


@dataclass(frozen=True, slots=True)
class UniqueKeys:
    """The unique keys of a table.

    Attributes:
        table: its columns.
        keys: the parts of each key, by its name.
        collations: of columns of text, by their names in lower case; see `common_name`.
    """

    table: RowSchema
    keys: Mapping[str, Sequence[KeyPart]]
    collations: Mapping[str, str]

    @classmethod
    def read(cls, server: Server, table: RowSchema) -> UniqueKeys:
        """Ask the server. Raises SetlError."""
        keys: dict[str, list[KeyPart]] = {}
        for part in read_key_parts(server.connection, table.schema, table.table):
            keys.setdefault(part.key, []).append(part)
        rows = server.rows(_COLLATIONS, (table.schema, table.table))
        collations = {
            str(name).lower(): common_name(str(text), mariadb=server.mariadb) for name, text in rows
        }
        return cls(table, keys, collations)

    def column(self, name: str) -> Column | None:
        """A column by its name, whatever its case."""
        index = self.table.folded.get(name.lower(), -1)
        return None if index < 0 else self.table.columns[index]


def check_unique_keys(
    source: UniqueKeys, target: UniqueKeys, route: Route, text: TableText | None, report: Report
) -> None:
    """Report the keys of the target that the source's do not imply.

    A key of the source implies one of the target if rows that are equal in the target's are equal
    in the source's: each part of it is a part of the target's, which compares no more coarsely.

    Args:
        source: the keys of the source's table.
        target: those of the target's.
        route: how rows go from one to the other.
        text: the source's table, for the hint; None if it is not known.
        report: where to report.
    """
    came = _came(source, route)
    computed = {name.lower() for name in route.expressions}
    own = _own_keys(source, target, route, came)
    reported = set[str]()
    for name in own:
        parts = target.keys[name]
        used = _columns(parts)
        if used & computed or route.processor or _is_numbered(used - came.keys(), used, target):
            continue  # nobody knows what an expression gives; numbers of its own are all different
        _report(name, parts, _Sides(source, target, came, text), report)
        reported.add(name)
    if not reported and (own or route.processor):
        _report_unknown(source, target, route, report)


def agreeing_tables(
    source: MysqlEndpoint,
    target: MysqlEndpoint,
    tables: Sequence[tuple[tuple[str, str], Route]],
) -> frozenset[str]:
    """The source tables whose keys imply all keys of the tables they go into, as `schema.table`.

    A table that goes into several has to agree with each of them.

    Raises:
        SetlError: a server does not answer.
    """
    agree: dict[str, bool] = {}
    with Server.opened(source) as origin, Server.opened(target) as goal:
        for name, route in tables:
            from_table = read_table(origin.connection, *name)
            into_table = read_table(goal.connection, *route.target)
            if from_table is None or into_table is None:
                continue
            own = UniqueKeys.read(goal, into_table)
            theirs = UniqueKeys.read(origin, from_table)
            alike = not (route.processor or _own_keys(theirs, own, route, _came(theirs, route)))
            agree[from_table.name] = alike and agree.get(from_table.name, True)
    return frozenset(name for name, alike in agree.items() if alike)


def _came(source: UniqueKeys, route: Route) -> dict[str, str]:
    names = source.table.names
    return {to.lower(): names[i] for i, to in selected_columns(route, names)}


def _own_keys(
    source: UniqueKeys, target: UniqueKeys, route: Route, came: Mapping[str, str]
) -> list[str]:
    """The keys of the target that none of the source implies."""
    candidates = list(source.keys.values())
    if route.key:
        candidates.append([KeyPart("", (name,)) for name in route.key])
    return [
        name
        for name, parts in target.keys.items()
        if not any(_implied(key, parts, source, target, came) for key in candidates)
    ]


def _implied(
    key: Sequence[KeyPart],
    parts: Sequence[KeyPart],
    source: UniqueKeys,
    target: UniqueKeys,
    came: Mapping[str, str],
) -> bool:
    return all(any(_is_as_fine(part, own, source, target, came) for own in parts) for part in key)


def _is_as_fine(
    part: KeyPart, own: KeyPart, source: UniqueKeys, target: UniqueKeys, came: Mapping[str, str]
) -> bool:
    """Whether values equal in the target's part `own` are equal in the source's `part`."""
    if part.expression or own.expression:
        return part.expression == own.expression
    (name,), (theirs,) = own.columns, part.columns
    if came.get(name.lower(), "").lower() != theirs.lower():
        return False
    if own.length and not 0 < part.length <= own.length:
        return False
    return _compares_alike(source, theirs, target, name)


def _compares_alike(source: UniqueKeys, theirs: str, target: UniqueKeys, name: str) -> bool:
    """Whether values of a column that are equal at the target are equal at the source."""
    here = target.collations.get(name.lower(), "")
    there = source.collations.get(theirs.lower(), "")
    column = source.column(theirs)
    if column is None:
        return False
    if not here:
        return not there  # also a UUID of MariaDB, which reads as text
    if here == there:
        return True
    # 'a' and 'a ' are one to a collation that pads, also to one that compares bytes.
    return here.endswith("_bin") and (_pads(there) or not _pads(here))


def _pads(collation: str) -> bool:
    return "nopad" not in collation and "_0900_" not in collation


def _is_numbered(own: set[str], used: set[str], target: UniqueKeys) -> bool:
    """Whether a key has a column that the target fills with numbers of its own."""
    columns = [c for c in map(target.column, own & used) if c is not None]
    return any(
        c.kind is Kind.INTEGER and c.capacity is not None and c.capacity.fills_null for c in columns
    )


def _report_unknown(source: UniqueKeys, target: UniqueKeys, route: Route, report: Report) -> None:
    """Report keys over which rows that are read may be in each other's way; see `agreeing_tables`.

    Such a row goes if both sides have the same keys. Here nobody knows, and it is an error.
    """
    came = _came(source, route)
    key = {source.table.names[i].lower() for i in source_key(source.table, route)}
    found_by = {to for to, name in came.items() if name.lower() in key}
    found = [
        parts
        for name, parts in target.keys.items()
        if name != "PRIMARY"
        and (used := _columns(parts)) != found_by
        and not _is_numbered(used - came.keys(), used, target)
    ]
    if not found:
        return
    shown = " and ".join(f"({', '.join(map(_shown, parts))})" for parts in found)
    why = "it is not known what they compute"
    if route.processor:
        why = f"it is not known what {route.processor} makes of rows"
    elif not route.expressions:
        why = "the target has a primary key of its own"
    columns = ", ".join(dict.fromkeys(c for parts in found for p in parts for c in p.columns))
    report.warning(
        f"the target has a unique key besides the primary key, {shown}, and {why}: a load, a repair"
        " or `setl resend` ends with CollisionError if a row that is read has a value that the"
        " stream gives to another row meanwhile",
        f"Let nobody move values of {columns} from row to row at the source meanwhile, or have the"
        " target without this key until the load is done",
        code="unique-key-unknown",
    )


def _columns(parts: Sequence[KeyPart]) -> set[str]:
    return {column.lower() for part in parts for column in part.columns}


@dataclass(frozen=True, slots=True)
class _Sides:
    source: UniqueKeys
    target: UniqueKeys
    came: Mapping[str, str]
    text: TableText | None


def _report(name: str, parts: Sequence[KeyPart], sides: _Sides, report: Report) -> None:
    table = qualified(sides.target.table.schema, sides.target.table.table)
    shown = ", ".join(_shown(part) for part in parts)
    alone = [p for part in parts for p in part.columns if p.lower() not in sides.came]
    own = [column for part in parts for column in part.columns if column not in alone]
    loose = [
        (column, came)
        for column, came in ((name, sides.came[name.lower()]) for name in own)
        if not _compares_alike(sides.source, came, sides.target, column)
    ]
    drop = f"ALTER TABLE {table} DROP KEY {quote(name)};"
    coarser = [
        column
        for column, came in loose
        if sides.source.collations.get(came.lower(), "_bin").endswith("_bin")
    ]
    if loose:
        columns = ", ".join(column for column, _ in loose)
        what = f"the target's unique key ({shown}) compares {columns} in another way"
        hint = [_modify(table, column, came, sides.text) for column, came in loose]
        # The source's definition has the same name for another collation, between the families.
        named_alike = any(
            sides.source.collations.get(came.lower(), "").removesuffix(OF_MARIADB)
            == sides.target.collations.get(column.lower(), "").removesuffix(OF_MARIADB)
            for column, came in loose
        )
        if named_alike or not all(hint):
            hint = ["Give both columns the same collation"]
    else:
        what = f"the target's unique key ({shown}) is not one of the source"
        if alone:
            what += f", which does not fill {', '.join(alone)}"
        hint = [drop if name != "PRIMARY" else "Give both tables the same primary key"]
    what += ": two rows of the source may be one to it, and the first such pair is an error"
    # Two collations of text that do not tell case apart agree about nearly all rows.
    if loose and not coarser:
        report.warning(what, *hint, code="unique-key")
    else:
        report.error(what, *hint, code="unique-key")


def _modify(table: str, column: str, came: str, text: TableText | None) -> str:
    definition = text.definition(came, column) if text is not None else ""
    return f"ALTER TABLE {table} MODIFY COLUMN {definition};" if definition else ""


def _shown(part: KeyPart) -> str:
    if part.expression:
        return f"({part.expression})"
    length = f"({part.length})" if part.length else ""
    return f"{part.columns[0]}{length}"
