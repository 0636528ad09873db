"""What tables a schema has now, as the server's own catalogue says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from setl_drills.oracle.replica import is_mariadb
from setl_embedded import DatabaseServer

_COMPUTED = re.compile(r"(STORED|VIRTUAL|PERSISTENT) GENERATED", re.IGNORECASE)
_JSON = re.compile(r"json_valid\(`((?:[^`]|``)+)`\)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Column:
    """A column.

    Attributes:
        name: its name.
        kind: the type's name, such as ``varchar``; ``json`` on both families.
        type: the type with everything, such as ``varchar(8)``.
        charset: of text, else "".
        nullable: whether it takes NULL.
        computed: whether the server computes it.
        has_default: whether an INSERT may leave it out.
        counted: whether it is AUTO_INCREMENT.
    """

    name: str
    kind: str
    type: str
    charset: str = ""
    nullable: bool = True
    computed: bool = False
    has_default: bool = True
    counted: bool = False

    @property
    def timed(self) -> bool:
        """Whether the value depends on a time zone, or the type on a clock."""
        return self.kind in {"timestamp", "datetime", "date", "time", "year"}

    @property
    def dated(self) -> bool:
        """Whether a value has a day in it."""
        return self.kind in {"timestamp", "datetime", "date"}

    @property
    def whole(self) -> bool:
        """Whether it holds integers."""
        return self.kind in {"tinyint", "smallint", "mediumint", "int", "bigint"}

    @property
    def text(self) -> bool:
        """Whether it holds characters."""
        return bool(self.charset) and self.kind not in {"enum", "set", "json"}

    @property
    def long(self) -> bool:
        """Whether an index needs a prefix of it."""
        return self.kind.endswith(("text", "blob"))


@dataclass(frozen=True, slots=True)
class Shape:
    """A table.

    Attributes:
        name: its name, without the schema.
        columns: its columns, in order.
        indexes: columns by index; ``PRIMARY`` is one of them.
        unique: the names of those that are unique.
        parents: the tables that its foreign keys name.
    """

    name: str
    columns: tuple[Column, ...]
    indexes: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    unique: frozenset[str] = frozenset()

    @property
    def plain(self) -> list[Column]:
        """The columns that clients write."""
        return [column for column in self.columns if not column.computed]

    @property
    def keys(self) -> list[Column]:
        """The plain columns of the primary key, or of all unique keys if there is none."""
        named = self.indexes.get("PRIMARY") or tuple(
            name for index in sorted(self.unique) for name in self.indexes[index]
        )
        return [column for column in self.plain if column.name in named]


def shapes_of(server: DatabaseServer, schema: str) -> dict[str, Shape]:
    """The tables of a schema by name."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name, data_type, column_type, character_set_name,"
            " is_nullable, extra, column_default FROM information_schema.columns"
            " JOIN information_schema.tables USING (table_schema, table_name)"
            " WHERE table_schema = %s AND table_type = 'BASE TABLE'"
            " ORDER BY table_name, ordinal_position",
            (schema,),
        )
        found = [tuple(map(_text, row)) for row in cursor.fetchall()]
        cursor.execute(
            "SELECT table_name, index_name, column_name, non_unique"
            " FROM information_schema.statistics WHERE table_schema = %s"
            " ORDER BY table_name, index_name, seq_in_index",
            (schema,),
        )
        keys = [tuple(map(_text, row)) for row in cursor.fetchall()]
        json: set[tuple[str, str]] = set()
        if is_mariadb(server):
            cursor.execute(
                "SELECT table_name, check_clause FROM information_schema.check_constraints"
                " WHERE constraint_schema = %s",
                (schema,),
            )
            json = {(t, name) for t, clause in cursor.fetchall() for name in _JSON.findall(clause)}
    columns: dict[str, list[Column]] = {}
    for table, name, kind, spelling, charset, nullable, extra, default in found:
        computed = bool(_COMPUTED.search(extra))
        columns.setdefault(table, []).append(
            Column(
                name,
                "json" if (table, name) in json else kind.lower(),
                spelling,
                charset,
                nullable == "YES",
                computed,
                bool(default) or nullable == "YES" or "auto_increment" in extra.lower(),
                "auto_increment" in extra.lower(),
            )
        )
    indexes: dict[str, dict[str, list[str]]] = {}
    unique: dict[str, set[str]] = {}
    for table, index, name, other in keys:
        indexes.setdefault(table, {}).setdefault(index, []).append(name)
        if other == "0":
            unique.setdefault(table, set()).add(index)
    return {
        table: Shape(
            table,
            tuple(of_table),
            {index: tuple(names) for index, names in indexes.get(table, {}).items()},
            frozenset(unique.get(table, ())),
        )
        for table, of_table in columns.items()
    }


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
