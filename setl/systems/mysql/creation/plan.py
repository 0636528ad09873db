"""Plans a target table that fits a table of the source and the mapping of its rows.

Nothing is asked here. What is not as at the source is said in the plan's notes; what would make
rows different, or two of them one, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from setl.channel.routes.routing import Route, selected_columns
from setl.codec.sql.column_definition import ColumnDefinition, column_definition
from setl.codec.sql.created_table import Definition, definitions_of
from setl.codec.sql.table_keys import KeyDefinition, table_options
from setl.codec.sql.tokens import tokens_of
from setl.errors import ConfigurationError
from setl.model.schema import Column, RowSchema
from setl.systems.mysql.creation.columns import (
    LARGE,
    ColumnWriter,
    computed_column,
    refuse_unsure_labels,
    takes_numbers,
)
from setl.systems.mysql.creation.dialect import Dialect
from setl.systems.mysql.creation.expression import renamed
from setl.systems.mysql.creation.keys import KeyWriter
from setl.systems.mysql.identifiers import qualified, quote


@dataclass(frozen=True, slots=True)
class DescribedTable:
    """A table of the source.

    Attributes:
        schema: its columns and keys.
        text: as SHOW CREATE TABLE writes it.
        collations: of its columns of text, by name in lower case.
        collation: its default collation.
    """

    schema: RowSchema
    text: str
    collations: Mapping[str, str]
    collation: str


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A table to be created.

    Attributes:
        target: schema and table.
        definitions: columns, keys and constraints.
        later: keys that nothing needs before the table's rows are loaded.
        options: what stands behind them.
        notes: what is not as at the source, as sentences.
    """

    target: tuple[str, str]
    definitions: tuple[str, ...]
    later: tuple[str, ...]
    options: str
    notes: tuple[str, ...] = ()

    def without_check_names(self) -> TablePlan:
        """The plan with CHECKs that the server names."""
        return replace(self, definitions=tuple(map(_without_check_name, self.definitions)))

    def statement(self, *, whole: bool = True, condition: str = "") -> str:
        """The CREATE TABLE; with the keys of `later` if it is to be whole."""
        inside = [*self.definitions, *(self.later if whole else ())]
        name = qualified(*self.target)
        return (
            f"CREATE TABLE {condition}{name} (\n  " + ",\n  ".join(inside) + f"\n) {self.options}"
        )


def _without_check_name(definition: str) -> str:
    tokens = list(islice(tokens_of(definition), 3))
    named = [tokens[0].word, tokens[-1].word] == ["CONSTRAINT", "CHECK"]
    return definition[tokens[-1].start :] if named else definition


def added_keys(table: tuple[str, str], keys: Sequence[str]) -> str:
    """The statement that adds keys to a table that is there."""
    return f"ALTER TABLE {qualified(*table)} " + ", ".join(f"ADD {key}" for key in keys)


def plan_table(
    source: DescribedTable,
    route: Route,
    computed: Sequence[Column],
    here: Dialect,
    there: Dialect,
) -> TablePlan:
    """The table that a route's rows fit into.

    Args:
        source: the source's table.
        route: how its rows go there.
        computed: columns that the route's expressions fill.
        here: the source.
        there: the target.

    Raises:
        ConfigurationError: the target cannot have such a table; says why, and the hint.
    """
    return _Planning(source, route, computed, here, there).plan()


class _Planning:
    def __init__(
        self,
        source: DescribedTable,
        route: Route,
        computed: Sequence[Column],
        here: Dialect,
        there: Dialect,
    ) -> None:
        self._source, self._route, self._computed = source, route, computed
        self._ddl_context = selected_columns(route, source.schema.names)
        names = source.schema.names
        # A column that goes to several positions is the first one to keys and expressions.
        self._names = {names[i].lower(): to for i, to in reversed(self._ddl_context)}
        same = (source.schema.schema, source.schema.table) == route.target
        self._unchanged = len(self._names) == len(names) and all(
            to == names[i] for i, to in self._ddl_context
        )
        self._alike = here.mariadb == there.mariadb and {
            *source.collations.values(),
            source.collation,
        } <= set(there.collations)
        self._notes: list[str] = []
        as_it_is = self._alike and self._unchanged
        self._keys = KeyWriter(
            here, there, self._names, as_it_is, same or there.mariadb, self._notes
        )
        self._here, self._there = here, there

    def plan(self) -> TablePlan:
        definitions = list(definitions_of(self._source.text))
        keys = [k for k in map(self._keys.key, definitions) if k is not None]
        if any(key.overlapless for key, _ in keys):
            raise ConfigurationError(
                "the table has a key WITHOUT OVERLAPS, and setl makes no periods",
                hint="Create the target's table by hand, with that key or a plain one over the same"
                " columns",
            )
        first, later, more = self._sort(keys)
        columns = self._columns(definitions, [key for key, _ in keys])
        for column in self._computed:
            columns.append(computed_column(column))
        constraints = [
            text
            for d in definitions
            if not d.column and not _is_key(d) and (text := self._keys.constraint(d))
        ]
        left = [d for d in definitions if d.is_foreign_key]
        if left:
            self._notes.append(
                f"it has no foreign keys; the source's table has {len(left)}, and its parents may"
                " come after it"
            )
        options = table_options(self._source.text)
        parts = [
            self._keys.options(options, self._source.collation),
            self._keys.partitions(options, unchanged=self._unchanged and not more),
        ]
        if self._route.processor:
            self._notes.append(
                f"columns that the processor {self._route.processor} adds are not known, and have"
                " to be added by hand"
            )
        return TablePlan(
            self._route.target,
            (*columns, *first, *constraints),
            later,
            "\n".join(filter(None, parts)),
            tuple(self._notes),
        )

    def _sort(
        self, keys: Sequence[tuple[KeyDefinition, str]]
    ) -> tuple[list[str], tuple[str, ...], bool]:
        """The keys that come with the table, those that can come later, and if one is new."""
        first: list[str] = []
        later: list[str] = []
        led: set[str] = set()
        counter = self._counter()
        for key, text in keys:
            if key.kind == "KEY" and (key.parts[0].column.lower() != counter or counter in led):
                later.append(text)
            else:
                first.append(text)
                led.add(key.parts[0].column.lower())
        own = self._own_key([key for key, _ in keys])
        return [*own, *first], tuple(later), bool(own)

    def _counter(self) -> str:
        for definition in definitions_of(self._source.text):
            if definition.column and column_definition(definition).counter:
                return definition.column.lower()
        return ""

    def _own_key(self, keys: Sequence[KeyDefinition]) -> list[str]:
        """The key over the columns that the mapping names, if the source has none."""
        if not self._route.key:
            return []
        wanted = {name.lower() for name in self._route.key}
        whole = [k for k in keys if k.unique and not any(p.length for p in k.parts)]
        if any({p.column.lower() for p in k.parts} == wanted for k in whole):
            return []
        named = {d.column.lower(): column_definition(d) for d in definitions_of(self._source.text)
                 if d.column}  # fmt: skip
        columns = [named[name.lower()] for name in self._route.key if name.lower() in named]
        shown = ", ".join(c.name for c in columns)
        if any(c.base_type in LARGE for c in columns):
            self._notes.append(f"it has no key over {shown}, which is too long for one")
            return []
        parts = ", ".join(quote(self._names[c.name.lower()]) for c in columns)
        if any(k.kind == "PRIMARY" for k in keys) or any(c.nullable for c in columns):
            return [f"UNIQUE KEY ({parts})"]
        return [f"PRIMARY KEY ({parts})"]

    def _columns(
        self, definitions: Sequence[Definition], keys: Sequence[KeyDefinition]
    ) -> list[str]:
        by_name = {d.column.lower(): d for d in definitions if d.column}
        keyed = {p.column.lower() for k in keys if k.unique for p in k.parts}
        keyed |= {name.lower() for name in self._route.key}
        counting = {k.parts[0].column.lower() for k in keys}
        writer = ColumnWriter(
            self._here, self._there, self._names, self._source.collations,
            frozenset(keyed), self._notes,
        )  # fmt: skip
        written: list[str] = []
        for i, name in self._ddl_context:
            definition = by_name[self._source.schema.names[i].lower()]
            column = column_definition(definition)
            refuse_unsure_labels(column)
            counts = definition.column.lower() in counting
            first = self._names[definition.column.lower()] == name
            sure = first and not writer.is_unsure(column)
            text = self._as_it_is(definition, column, name) if sure else ""
            written.append(text or writer.write(column, name, counts=counts and first))
        return written

    def _as_it_is(self, definition: Definition, column: ColumnDefinition, name: str) -> str:
        """A column's own text under its new name; "" if it has to be deleted and inserted."""
        lost = column.counter and not self._keys.as_it_is
        if (
            not self._alike
            or lost
            or takes_numbers(column)
            or (column.base_type == "vector" and not self._there.has_vectors)
        ):
            return ""
        behind = definition.text[len(definition.tokens[0].text) :]
        text = behind if self._unchanged else renamed(behind, self._names)
        return "" if text is None else quote(name) + text


def _is_key(definition: Definition) -> bool:
    return definition.tokens[0].word not in ("CONSTRAINT", "CHECK", "FOREIGN", "PERIOD")
