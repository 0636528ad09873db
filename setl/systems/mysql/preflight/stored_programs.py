"""What triggers and events of a server write, with all that runs because of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from setl.codec.sql.stored_program import Name, Writes, tables_of_view, writes_of
from setl.systems.mysql.server import Server


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger.

    Attributes:
        name: its name.
        schema: the schema of its table.
        table: its table.
        before: whether it runs before a row is written, and may change it.
        writes: what its own body writes.
    """

    name: str
    schema: str
    table: str
    before: bool
    writes: Writes


@dataclass(frozen=True, slots=True)
class Written:
    """What is written when something runs.

    Attributes:
        tables: the tables, as they are spelled there.
        unread: routines and views whose text the account does not see.
    """

    tables: frozenset[Name]
    unread: tuple[str, ...]


@dataclass(slots=True)
class StoredPrograms:
    """The stored programs of a server, each read once.

    Attributes:
        server: the server.
    """

    server: Server
    _triggers: dict[str, list[Trigger]] = field(default_factory=dict[str, list[Trigger]])
    _routines: dict[Name, Writes | None] = field(default_factory=dict[Name, Writes | None])
    _views: dict[Name, frozenset[Name] | None] = field(
        default_factory=dict[Name, frozenset[Name] | None]
    )

    def triggers(self, schema: str, table: str) -> list[Trigger]:
        """The triggers of a table, as far as the account has the privilege TRIGGER.

        Raises:
            SetlError: the server does not answer.
        """
        if schema not in self._triggers:
            self._triggers[schema] = [
                Trigger(
                    str(name),
                    schema,
                    str(of),
                    timing == "BEFORE",
                    # MariaDB shows it without its body to who lacks the privilege.
                    writes_of(str(body or ""), schema, str(mode)),
                )
                for name, of, timing, body, mode in self.server.rows(
                    "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_TIMING, ACTION_STATEMENT,"
                    " SQL_MODE FROM information_schema.TRIGGERS"
                    " WHERE EVENT_OBJECT_SCHEMA = %s ORDER BY 1",
                    (schema,),
                )
            ]
        named = table.lower()
        # One that MariaDB runs for several kinds of statements is listed once for each.
        return list(
            {t.name: t for t in self._triggers[schema] if t.table.lower() == named}.values()
        )

    def events(self) -> dict[str, Writes]:
        """The events that the server runs, as far as the account has the privilege EVENT.

        Raises:
            SetlError: the server does not answer.
        """
        if self.server.variables.get("event_scheduler", "").upper() != "ON":
            return {}
        return {
            f"{schema}.{name}": writes_of(str(body), str(schema), str(mode))
            for schema, name, body, mode in self.server.rows(
                "SELECT EVENT_SCHEMA, EVENT_NAME, EVENT_DEFINITION, SQL_MODE"
                " FROM information_schema.EVENTS WHERE STATUS = 'ENABLED' ORDER BY 1, 2"
            )
        }

    def written(self, first: Writes) -> Written:
        """What is written if a body runs, by what it calls and by triggers of what it writes, too.

        Raises:
            SetlError: the server does not answer.
        """
        tables: set[Name] = set()
        unread: dict[str, None] = {}
        called: set[Name] = set()
        left = [first]
        while left:
            writes = left.pop()
            for name in sorted(writes.calls - called):
                called.add(name)
                routine = self._routine(name)
                if routine is not None:
                    left.append(routine)
                elif name in writes.stored or name in self._routines:
                    unread[".".join(name)] = None
            for name in sorted(writes.tables - tables):
                tables.add(name)
                behind = self._behind(name)
                if behind is None:
                    unread[".".join(name)] = None
                elif behind:
                    left.append(Writes(tables=behind))
                left += [trigger.writes for trigger in self.triggers(*name)]
        return Written(frozenset(tables), tuple(unread))

    def _routine(self, name: Name) -> Writes | None:
        """What a procedure or function writes; None if there is none, or its text is not seen.

        Of the latter `_routines` knows.
        """
        if name not in self._routines:
            found = self.server.rows(
                "SELECT ROUTINE_DEFINITION, SQL_MODE FROM information_schema.ROUTINES"
                " WHERE ROUTINE_SCHEMA = %s AND ROUTINE_NAME = %s",
                name,
            )
            if not found:
                return None
            readable = all(body is not None for body, _ in found)
            both = [writes_of(str(body), name[0], str(mode)) for body, mode in found]
            self._routines[name] = _together(both) if readable else None
        return self._routines[name]

    def _behind(self, name: Name) -> frozenset[Name] | None:
        """The tables of a view, none of what is no view; None of one whose text is not seen."""
        if name not in self._views:
            found = self.server.rows(
                "SELECT VIEW_DEFINITION FROM information_schema.VIEWS"
                " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
                name,
            )
            definition = str(found[0][0] or "") if found else ""
            behind = tables_of_view(definition)
            self._views[name] = None if found and not definition else behind
        return self._views[name]


def _together(both: Iterable[Writes]) -> Writes:
    """What a procedure and a function of one name write."""
    several: Iterator[Writes] = iter(both)
    result = next(several)
    for other in several:
        result = Writes(
            tables=result.tables | other.tables,
            calls=result.calls | other.calls,
            stored=result.stored | other.stored,
        )
    return result
