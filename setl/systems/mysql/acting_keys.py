"""Finds the foreign keys whose actions a pipeline carries out, and says why it cannot.

See `setl.run.targets.acting_keys` for what is done with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pymysql.connections import Connection
from pymysql.cursors import Cursor

from setl.channel.routes.routing import Route, Router
from setl.codec.sql.created_table import ForeignKey, definitions_of, foreign_key_of
from setl.errors import ConfigurationError
from setl.load.key_actions import ActingKey, KeysFound
from setl.model.key_action import KeyAction, Name
from setl.systems.mysql.catalog import list_tables, read_table
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating
from setl.systems.mysql.foreign_keys import (
    FOREIGN_KEY_ACTION,
    accepts_actions,
    logs_actions,
)
from setl.systems.mysql.server import Server
from setl.systems.mysql.table_facts import TableText

_CHILDREN: Final = (
    "SELECT DISTINCT CONSTRAINT_SCHEMA, TABLE_NAME FROM information_schema.REFERENTIAL_CONSTRAINTS"
    " WHERE (DELETE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT')"
    " OR UPDATE_RULE IN ('CASCADE', 'SET NULL', 'SET DEFAULT'))"
)
_MOST_SCHEMAS: Final = 16  # that are asked one by one
_NO_OTHERS: Final = (
    "At the target, ALTER TABLE … DROP FOREIGN KEY, or give the source's table the same foreign key"
)


class RelatedTable(NamedTuple):
    """A table of the target, and where its rows come from.

    Attributes:
        target: it.
        source: the source's table, ("", "") for none.
        route: by which they go; None if there is none, or `why_not`.
        why_not: why setl cannot carry out actions on it, half a sentence; "" if it can.
    """

    target: Name
    source: Name
    route: Route | None = None
    why_not: str = ""

    @property
    def name(self) -> str:
        """For people: the source's table, or the target's if there is none."""
        return ".".join(self.source if self.source[1] else self.target)


class RelatedTables:
    """Tables of a target by the mapping of a pipeline."""

    def __init__(self, router: Router, there: Collection[Name] = ()) -> None:
        """Go by a mapping.

        Args:
            router: the pipeline's.
            there: tables of the source, as far as somebody has looked.
        """
        self._router = router
        self._there = list(there)

    def of_target(self, target: Name) -> RelatedTable:
        """What there is to say of a table of the target."""
        sources = [name for name in self._candidates(target) if self._goes_to(name, target)]
        if len(sources) > 1:
            named = " and ".join(".".join(name) for name in sources[:2])
            return RelatedTable(target, sources[0], None, f"it takes rows of {named}")
        if not sources:
            return RelatedTable(target, ("", ""), None, "no table is mapped to it")
        return self.of_source(sources[0])._replace(target=target)

    def of_source(self, name: Name) -> RelatedTable:
        """What there is to say of a table of the source."""
        routes = self._router.route(*name)
        if not routes:
            return RelatedTable(("", ""), name, None, "it is not mapped: map it, too")
        route = routes[0]
        why_not = ""
        if len(routes) > 1:
            why_not = "its rows go to several targets"
        elif route.into_index:
            why_not = "its rows go to an index"
        elif not route.plain:
            why_not = "its mapping has where, columns, include, exclude or a processor"
        elif route.conflict is not None:
            why_not = "both sites write it, under a conflict policy"
        elif route.rereads:
            why_not = "its rows are read at the source (read: source)"
        elif self._router.gathers(route):
            why_not = "rows of other tables may go to the same target"
        return RelatedTable(route.target, name, None if why_not else route, why_not)

    def _candidates(self, target: Name) -> list[Name]:
        """Tables of the source that may go to a target; they need not be there any more."""
        found = dict.fromkeys(self._there)
        for entry in self._router.entries:
            exact, schema = entry.pattern.exact, entry.pattern.schema.literal
            found[exact or (target[0] if schema is None else schema, target[1])] = None
        return list(found)

    def _goes_to(self, name: Name, target: Name) -> bool:
        return any(route.target == target for route in self._router.route(*name))


def why_not_key(key: ForeignKey, others: Sequence[ForeignKey], parent_key: Sequence[str]) -> str:
    """Why the actions of a foreign key cannot be carried out, by its columns; "" if they can.

    Args:
        key: it.
        others: all of its table's with actions.
        parent_key: the columns that tell rows of the parent apart.
    """
    if any("SET DEFAULT" in action for action in key.actions):
        return "SET DEFAULT means something else to each server"
    if sorted(map(str.lower, key.parent_columns)) != sorted(map(str.lower, parent_key)):
        reported = ", ".join(parent_key) or "nothing"
        return (
            f"it refers to {', '.join(key.parent_columns)}, and rows of {key.parent} are "
            f"distinguished"
            f" by {reported}"
        )
    own = {name.lower() for name in key.columns}
    for other in others:
        if other.name == key.name or not own & {name.lower() for name in other.columns}:
            continue
        if any("SET NULL" in action for action in (*key.actions, *other.actions)):
            return f"it shares a column with {other.name}, and one of them has SET NULL"
    return ""


def same_key(key: ForeignKey, parent: Name, other: ForeignKey, other_parent: Name) -> bool:
    """Whether two foreign keys do the same, whatever they are called."""
    return (
        parent == other_parent
        and _folded(key.columns) == _folded(other.columns)
        and _folded(key.parent_columns) == _folded(other.parent_columns)
        and sorted(key.actions) == sorted(other.actions)
    )


def keys_of(server: Server, name: Name) -> list[ForeignKey]:
    """The foreign keys of a table that have actions. Raises SetlError."""
    found = map(foreign_key_of, definitions_of(TableText.read(server, *name).text))
    return [key for key in found if key is not None and key.actions]


def parent_of(key: ForeignKey, child: Name) -> Name:
    """The table that a foreign key of a table refers to."""
    return key.schema or child[0], key.parent


@dataclass(frozen=True, slots=True)
class MysqlKeyActions:
    """The `setl.load.key_actions.KeyActions` of a MySQL target whose source's binlog is read.

    Attributes:
        source: the source's server.
        target: the target's.
        router: the pipeline's routes.
        accept: the findings that the pipeline is to live with.
        keeps_letters: whether it puts rows aside that the target refuses.
    """

    source: MysqlEndpoint
    target: MysqlEndpoint
    router: Router
    accept: Sequence[str]
    keeps_letters: bool

    def find(
        self,
        known: Collection[tuple[str, str]],
        before: Collection[tuple[str, str]] | None = None,
    ) -> KeysFound:
        """See `KeyActions.find`."""
        with closing(connect(self.target)) as connection, translating(self.target):
            children = self._children(connection)
        if not children:
            return KeysFound()  # as for most pipelines
        with Server.opened(self.source) as source, Server.opened(self.target) as target:
            if logs_actions(source):
                return KeysFound()
            there = list_tables(source.connection)
            look = _Look(self, source, target, frozenset(there))

            def is_known(key: tuple[str, str]) -> bool:
                return key in known or (before is not None and key not in before)

            for child in children:
                look.at(child, is_known)
            return look.found()

    def _children(self, connection: Connection[Any]) -> list[Name]:
        """The target's tables with such keys that may be those of the pipeline."""
        found: set[Name] = set()
        with connection.cursor(Cursor) as cursor:
            # MariaDB opens all tables that a question does not exclude by their schema.
            for schema in self._schemas:
                own = "" if schema is None else " AND CONSTRAINT_SCHEMA = %s"
                cursor.execute(_CHILDREN + own, None if schema is None else (schema,))
                found |= {(str(of), str(table)) for of, table in cursor.fetchall()}
        # Where names are made of others, the source's have to be looked at.
        made = any(entry.target is not None for entry in self.router.entries)
        related = RelatedTables(self.router)
        return [name for name in sorted(found) if made or related.of_target(name).source[1]]

    @property
    def _schemas(self) -> Sequence[str | None]:
        """Where the target's tables are; (None,) if they may be anywhere."""
        patterns = [
            e.pattern.schema if e.target is None or e.target.schema is None else e.target.schema
            for e in self.router.entries
        ]
        names = list(dict.fromkeys(pattern.literal for pattern in patterns))
        return (None,) if None in names or len(names) > _MOST_SCHEMAS else names


class _Look:
    """One look at both servers."""

    def __init__(
        self,
        keys: MysqlKeyActions,
        source: Server,
        target: Server,
        there: frozenset[Name],
    ) -> None:
        self._keys, self._source, self._target = keys, source, target
        self._there = there
        self._related = RelatedTables(keys.router, there)
        self._acting: list[ActingKey] = []
        self._all: set[tuple[str, str]] = set()
        self._lacking: dict[tuple[str, str], Name] = {}

    def at(self, child: Name, is_known: Callable[[tuple[str, str]], bool]) -> None:
        """Look at the keys of a table of the target."""
        table = self._related.of_target(child)
        if table.source == ("", ""):
            return  # nothing of ours
        there = keys_of(self._target, child)
        at_source: list[ForeignKey] | None = None
        for key in there:
            action = _action(key, child)
            self._all.add(action.id)
            if accepts_actions(self._keys.accept, ".".join(table.source)):
                continue
            parent = self._related.of_target(action.parent)
            if not is_known(action.id):
                if at_source is None:
                    gone = table.source not in self._there
                    at_source = [] if gone else keys_of(self._source, table.source)
                # Nobody knows what an unmapped parent is called at the source.
                named = [(parent_of(each, table.source), each) for each in at_source]
                if not any(
                    same_key(key, parent.source if parent.source[1] else of, each, of)
                    for of, each in named
                ):
                    self._lacking[action.id] = action.parent
                    continue
            self._refuse(table, parent, key, there)
            self._acting.append(ActingKey(action, table.source, parent.source))

    def _refuse(
        self, table: RelatedTable, parent: RelatedTable, key: ForeignKey, there: list[ForeignKey]
    ) -> None:
        name = ".".join(table.source)
        why_not = ""
        if table.why_not or parent.why_not:
            which = table if table.why_not else parent
            why_not = (
                f"{'.'.join(which.source if which.source[1] else which.target)}: {which.why_not}"
            )
        elif self._keys.keeps_letters:
            why_not = "rows that the target refuses are put aside, and would come back later"
        else:
            assert parent.route is not None
            why_not = why_not_key(key, there, self._key_of(parent))
        if why_not:
            raise ConfigurationError(
                f"the foreign key {key.name} has {', '.join(key.actions)}: the source does not log"
                f" the rows that it changes, and setl cannot carry it out ({why_not})",
                hint="`setl check` says what can be done. Where no such row ever goes, name"
                f" {FOREIGN_KEY_ACTION}@{name} under `accept` in the channel file",
                table=name,
            )

    def _key_of(self, parent: RelatedTable) -> Sequence[str]:
        if parent.route is not None and parent.route.key:
            return parent.route.key
        described = read_table(self._target.connection, *parent.target)
        return () if described is None else [described.names[i] for i in described.key]

    def found(self) -> KeysFound:
        """What there is.

        Raises:
            ConfigurationError: an action would start others that the source's tables do not have.
        """
        changed = {key.action.child for key in self._acting}
        for (child, name), parent in self._lacking.items():
            if parent in changed:
                raise ConfigurationError(
                    f"the foreign key {name} of the target's table {child} acts on rows of it when"
                    f" a foreign key changes rows of {'.'.join(parent)}, and the source's table has"
                    " no such key",
                    hint=_NO_OTHERS,
                    table=child,
                    server=self._keys.target,
                )
        return KeysFound(tuple(self._acting), frozenset(self._all), frozenset(self._lacking))


def _action(key: ForeignKey, child: Name) -> KeyAction:
    actions = dict(_split(key.actions))
    return KeyAction(
        key.name,
        child,
        key.columns,
        parent_of(key, child),
        key.parent_columns,
        actions.get("DELETE", ""),
        actions.get("UPDATE", ""),
    )


def _split(actions: Sequence[str]) -> Iterator[tuple[str, str]]:
    """``ON DELETE SET NULL`` as what it follows, and what is done."""
    for action in actions:
        _, event, done = action.split(" ", 2)
        yield event, done


def _folded(names: Sequence[str]) -> list[str]:
    return [name.lower() for name in names]
