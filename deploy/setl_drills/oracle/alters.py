"""Random schema changes: one clause or several, and online changes as the usual tools make them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from setl_drills.oracle.definitions import NAMES, Definitions, Grammar
from setl_drills.oracle.rows import Rows
from setl_drills.oracle.sessions import Session
from setl_drills.oracle.shapes import Column, Shape

TABLES = ("t1", "t2", "t3", "t4")
_IDENTIFYING = ("PRIMARY", "u")
"""Without it, rows could not be distinguished."""


class Alters:
    """Writes the statements of a schema change, as a session would send them."""

    def __init__(
        self,
        chance: random.Random,
        grammar: Grammar,
        session: Session,
        shapes: Mapping[str, Shape],
        schema: str,
    ) -> None:
        self._chance = chance
        self._grammar = grammar
        self._session = session
        self._shapes = shapes
        self._schema = schema
        self._definitions = Definitions(chance, grammar, session)

    def create(self) -> list[str]:
        """CREATE TABLE of a table that is not there, in one way or another."""
        free = [name for name in TABLES if name not in self._shapes]
        if not free:
            return self.change()
        name, quoted = self._chance.choice(free), self._session.name
        others = [s for s in self._shapes.values() if any(c.name.isascii() for c in s.columns)]
        sort = self._chance.random()
        if others and sort < 0.1:
            return [f"CREATE TABLE {quoted(name)} LIKE {quoted(self._chance.choice(others).name)}"]
        if others and sort < 0.2:
            return [self._created_from(name, self._chance.choice(others))]
        parent = self._chance.choice(others) if others else None
        text = self._definitions.table(name, parent)
        if self._chance.random() < 0.1:
            text = text.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS", 1)
        return [text]

    def change(self) -> list[str]:
        """A schema change of a table that is there."""
        if not self._shapes:
            return self.create()
        shape = self._chance.choice(list(self._shapes.values()))
        kinds: dict[Callable[[Shape], list[str]], int] = {
            self._alter: 14,
            self._rename: 1,
            self._truncate: 1,
            self._drop: 1,
            self._exchange: 1,
            self._create_or_replace: int(self._grammar.mariadb and self._grammar.has("or-replace")),
            self._index: 2,
            self._database: 2 if self._grammar.has("database") else 0,
            self._online: 3 if self._grammar.has("online") else 0,
        }
        return self._chance.choices(list(kinds), list(kinds.values()))[0](shape)

    def _alter(self, shape: Shape) -> list[str]:
        clauses = [self._clause(shape) for _ in range(self._chance.choice([1, 1, 1, 2, 3]))]
        # What a later one of these says would be about what an earlier one has not yet made so.
        converts = [clause for clause in clauses if "CHARACTER SET" in clause[:30]]
        clauses = [clause for clause in clauses if clause not in converts[1:]]
        how = self._chance.choice(["", "", "", "", ", ALGORITHM=COPY", ", ALGORITHM=INPLACE"])
        return [f"ALTER TABLE {self._session.name(shape.name)} {', '.join(clauses)}{how}"]

    def _clause(self, shape: Shape) -> str:
        kinds: dict[Callable[[Shape], str], int] = {
            self._add: 5,
            self._add_computed: 2 if self._grammar.has("generated") else 0,
            self._drop_column: 2,
            self._modify: 4,
            self._change: 2,
            self._rename_column: 2,
            self._set_default: 2,
            self._add_index: 3,
            self._drop_index: 2,
            self._new_key: 1,
            self._convert: 2,
            self._other: 2,
        }
        return self._chance.choices(list(kinds), list(kinds.values()))[0](shape)

    def _add(self, shape: Shape) -> str:
        name = self._chance.choice(NAMES)
        text = f"{self._session.name(name)} {self._definitions.column(name)}"
        return f"ADD COLUMN {text}{self._column_position(shape)}"

    def _add_computed(self, shape: Shape) -> str:
        name = f"v{self._chance.randrange(9)}"
        text = self._definitions.computed(list(shape.plain))
        return f"ADD COLUMN {name} {text}{self._column_position(shape)}"

    def _drop_column(self, shape: Shape) -> str:
        keys = [column.name for column in shape.keys]
        others = [c for c in shape.columns if c.name not in keys or self._chance.random() < 0.02]
        column = self._chance.choice(others or list(shape.columns))
        return f"DROP COLUMN {self._session.name(column.name)}"

    def _modify(self, shape: Shape) -> str:
        column = self._chance.choice(shape.plain)
        text = self._definitions.column(column.name)
        return (
            f"MODIFY COLUMN {self._session.name(column.name)} {text}{self._column_position(shape)}"
        )

    def _widened(self, shape: Shape) -> str:
        """A MODIFY that keeps every value."""
        wider = {"int": "BIGINT", "tinyint": "INT", "smallint": "INT", "date": "DATETIME(6)"}
        columns = [c for c in shape.plain if c.kind in wider and "unsigned" not in c.type]
        if not columns:
            return self._add(shape)
        column = self._chance.choice(columns)
        null = " NOT NULL" if not column.nullable else " NULL"
        return f"MODIFY COLUMN {self._session.name(column.name)} {wider[column.kind]}{null}"

    def _change(self, shape: Shape) -> str:
        old, new = self._chance.choice(shape.plain).name, self._chance.choice(NAMES)
        quoted = self._session.name
        return f"CHANGE COLUMN {quoted(old)} {quoted(new)} {self._definitions.column(new)}"

    def _rename_column(self, shape: Shape) -> str:
        return (
            f"RENAME COLUMN {self._any(shape)} TO {self._session.name(self._chance.choice(NAMES))}"
        )

    def _set_default(self, shape: Shape) -> str:
        column = self._chance.choice(shape.plain)
        if self._chance.random() < 0.4:
            return f"ALTER COLUMN {self._session.name(column.name)} DROP DEFAULT"
        rows = Rows(self._chance, self._session, shape)
        return f"ALTER COLUMN {self._session.name(column.name)} SET DEFAULT {rows.value(column)}"

    def _add_index(self, shape: Shape) -> str:
        return f"ADD {self._definitions.index(list(shape.columns))}"

    def _plain_index(self, shape: Shape) -> str:
        return f"ADD {self._definitions.index(list(shape.columns), unique=False)}"

    def _drop_index(self, shape: Shape) -> str:
        names = [name for name in shape.indexes if name not in _IDENTIFYING]
        if not names:
            return self._add_index(shape)
        name = self._session.name(self._chance.choice(names))
        if self._chance.random() < 0.3:
            return f"RENAME INDEX {name} TO i{self._chance.randrange(1000)}"
        return f"DROP INDEX {name}"

    def _new_key(self, shape: Shape) -> str:
        column = self._session.name(self._chance.choice(shape.plain).name)
        if "PRIMARY" not in shape.indexes:
            return f"ADD PRIMARY KEY ({column})"
        return f"DROP PRIMARY KEY, ADD PRIMARY KEY ({column})"

    def _convert(self, _: Shape) -> str:
        charset, collation = self._grammar.collation(self._chance)
        collate = f" COLLATE {collation}" if self._chance.random() < 0.6 else ""
        if self._chance.random() < 0.5:
            return f"CONVERT TO CHARACTER SET {charset}{collate}"
        return f"DEFAULT CHARACTER SET {charset}{collate}"

    def _other(self, shape: Shape) -> str:
        plain = list(shape.plain)
        return self._chance.choice(
            [
                "FORCE",
                "ENGINE=InnoDB",
                "COMMENT = 'changed'",
                "AUTO_INCREMENT = 50",
                f"ADD {self._definitions.check(plain)}",
                f"ORDER BY {self._any(shape)}",
                "ROW_FORMAT=DYNAMIC",
                f"PARTITION BY KEY ({self._any(shape)}) PARTITIONS 3",
                "REMOVE PARTITIONING",
            ]
        )

    def _rename(self, shape: Shape) -> list[str]:
        others = [name for name in TABLES if name != shape.name]
        new, quoted = self._chance.choice(others), self._session.name
        if self._chance.random() < 0.5:
            return [f"ALTER TABLE {quoted(shape.name)} RENAME TO {quoted(new)}"]
        return [f"RENAME TABLE {quoted(shape.name)} TO {self._schema}.{quoted(new)}"]

    def _truncate(self, shape: Shape) -> list[str]:
        return [f"TRUNCATE TABLE {self._session.name(shape.name)}"]

    def _drop(self, shape: Shape) -> list[str]:
        gone = f"DROP TABLE {self._session.name(shape.name)}"
        return [gone, self._definitions.table(shape.name)]

    def _exchange(self, shape: Shape) -> list[str]:
        """Two tables swap their names."""
        others = [name for name in self._shapes if name != shape.name]
        if not others:
            return self._rename(shape)
        quoted = self._session.name
        first, second = quoted(shape.name), quoted(self._chance.choice(others))
        return [f"RENAME TABLE {first} TO tmp, {second} TO {first}, tmp TO {second}"]

    def _create_or_replace(self, shape: Shape) -> list[str]:
        # With partitions that do not fit the key it fails when the old table is gone.
        text = self._definitions.table(shape.name).partition(" PARTITION BY ")[0]
        return [text.replace("CREATE TABLE", "CREATE OR REPLACE TABLE", 1)]

    def _created_from(self, name: str, other: Shape) -> str:
        quoted = self._session.name
        # Servers log the names in UTF-8, and say that they are in the client's character set.
        known = [c for c in other.columns if c.name.isascii() or self._session.charset == "utf8mb4"]
        chosen = self._chance.sample(known, self._chance.randint(1, len(known)))
        named = [f"{quoted(column.name)}" for column in chosen]
        if self._chance.random() < 0.4:
            named.append("'lit' AS lit")
        if self._chance.random() < 0.3:
            named.append(f"CONCAT({named[0]}, 'x') AS joined")
        source = f"SELECT {', '.join(named)} FROM {quoted(other.name)}"
        key = self._chance.choice(other.keys or other.columns)
        if key in chosen:
            return f"CREATE TABLE {quoted(name)} (PRIMARY KEY ({quoted(key.name)})) {source}"
        own = f"{quoted('own')} INT NOT NULL AUTO_INCREMENT PRIMARY KEY"
        return f"CREATE TABLE {quoted(name)} ({own}) {source}"

    def _index(self, shape: Shape) -> list[str]:
        table = self._session.name(shape.name)
        names = [name for name in shape.indexes if name not in _IDENTIFYING]
        if names and self._chance.random() < 0.4:
            return [f"DROP INDEX {self._session.name(self._chance.choice(names))} ON {table}"]
        columns = self._chance.sample(list(shape.columns), 1)
        unique = self._chance.choice(["", "UNIQUE "])
        part = self._definitions.part(columns[0])
        return [f"CREATE {unique}INDEX i{self._chance.randrange(1000)} ON {table} ({part})"]

    def _database(self, _: Shape) -> list[str]:
        charset, collation = self._grammar.collation(self._chance)
        return [f"ALTER DATABASE {self._schema} CHARACTER SET {charset} COLLATE {collation}"]

    def _online(self, shape: Shape) -> list[str]:
        """What gh-ost and pt-online-schema-change send, without what keeps the shadow in step.

        Both copy rows in a session that takes a 0 in an AUTO_INCREMENT column as it is. In another
        one the copy would number such rows anew, and IGNORE could lose them at the source.
        """
        ghost = self._chance.random() < 0.5
        name, quoted = shape.name, self._session.name
        shadow, old = (
            (f"_{name}_gho", f"_{name}_del") if ghost else (f"_{name}_new", f"_{name}_old")
        )
        clause = self._chance.choice(
            [self._add, self._widened, self._drop_column, self._plain_index, self._add_computed]
        )(shape)
        names = ", ".join(
            quoted(c.name)
            for c in shape.plain
            if not clause.startswith(f"DROP COLUMN {quoted(c.name)}")
        )
        verb = "INSERT IGNORE" if ghost else "INSERT LOW_PRIORITY IGNORE"
        return [
            f"CREATE TABLE {quoted(shadow)} LIKE {quoted(name)}",
            f"ALTER TABLE {quoted(shadow)} {clause}",
            "SET SESSION sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')",
            f"{verb} INTO {quoted(shadow)} ({names}) SELECT {names} FROM {quoted(name)}",
            f"SET SESSION sql_mode = '{self._session.mode}'",
            f"RENAME TABLE {quoted(name)} TO {quoted(old)}, {quoted(shadow)} TO {quoted(name)}",
            f"DROP TABLE IF EXISTS {quoted(old)}",
            f"DROP TABLE IF EXISTS {quoted(shadow)}",
        ]

    def _any(self, shape: Shape) -> str:
        return self._session.name(self._chance.choice(shape.columns).name)

    def _column_position(self, shape: Shape) -> str:
        if self._chance.random() < 0.8:
            return ""
        after: Column = self._chance.choice(shape.columns)
        return self._chance.choice([" FIRST", f" AFTER {self._session.name(after.name)}"])
