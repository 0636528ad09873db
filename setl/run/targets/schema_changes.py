"""What a run does with schema changes of its source, as the channel file says (I16)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, Literal

from setl.codec.binlog.refused import past
from setl.codec.sql.redaction import outline, without_texts
from setl.codec.sql.statement import quoting_of, tables_of, tables_without_schema
from setl.codec.sql.tokens import Quoting
from setl.errors import FatalError, FencedError, SetlError, TransientError
from setl.extract.extractor import RoutedRows
from setl.load.sink import LoadTicket, SchemaChange, SchemaChanges
from setl.log import fields
from setl.model.entry import Entry
from setl.model.leadership import Leadership
from setl.model.position import BinlogPosition, Position
from setl.model.session import StatementSession
from setl.run.measured.progress import Progress

_log = logging.getLogger(__name__)

_ID: Final = 180  # characters of the column; of a position the end tells most
_SHOWN: Final = 300  # characters of a statement in messages


class SchemaChangePolicy:
    """Ignores schema changes, stops at them, or passes them on.

    When it is called for one, everything before is applied and acknowledged, and the checkpoint
    before it is stored; nothing behind it is applied.
    """

    def __init__(
        self,
        choice: Literal["ignore", "stop", "pass"],
        target: SchemaChanges | None,
        leadership: Leadership,
        progress: Progress,
        maps: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """Act as `choice` says.

        Args:
            choice: what to do.
            target: where ``pass`` passes them to.
            leadership: on whose behalf.
            progress: told of them.
            maps: whether a mapping names tables of a schema.
        """
        self._maps = maps
        self._choice = choice
        self._target = target
        self._leadership = leadership
        self._progress = progress

    @property
    def replicates(self) -> bool:
        """Whether they are replicated."""
        return self._choice == "pass"

    def act_on(
        self,
        entries: Sequence[Entry],
        ticket: LoadTicket,
        generation: int,
        unread: Callable[[tuple[str, str]], bool] = lambda _: False,
    ) -> bool:
        """Act on what Extract has left; returns whether anything was done to the target.

        Args:
            entries: DDL, in source order.
            ticket: whose `through` is the end of the last of them.
            generation: of the checkpoint.
            unread: see `SchemaChange`.

        Raises:
            SetlError: as `SchemaChanges.apply`; FatalError for ``stop``.
        """
        done = False
        for entry in entries:
            if self._choice == "stop":
                raise FatalError(
                    f"schema change at the source: {self._shown(entry)}",
                    hint="Apply it to the target (in a channel of two directions after SET SESSION"
                    f" sql_log_bin = 0). {_past(entry.position)}",
                    pipeline=self._leadership.key,
                    position=entry.position,
                )
            done = self._act_on(entry, ticket, generation, unread) or done
        return done

    def _act_on(
        self,
        entry: Entry,
        ticket: LoadTicket,
        generation: int,
        unread: Callable[[tuple[str, str]], bool],
    ) -> bool:
        ran: Sequence[str] = ()
        if self._target is not None:
            unknown = tables_without_schema(entry)
            if unknown:
                raise FatalError(
                    "a schema change at the source names schemas for some of its tables, and its"
                    " record does not tell which one its session had for"
                    f" {', '.join(unknown)}: {self._shown(entry)}",
                    hint=f"Apply it to the target. {_past(entry.position)}",
                    pipeline=self._leadership.key,
                    position=entry.position,
                )
            change = SchemaChange(
                (entry.transaction or str(entry.position))[-_ID:],
                entry.statement,
                entry.session or StatementSession(entry.schema),
                generation,
                ticket.through,
                unread,
                entry.position,
            )
            ran = self._target.apply(ticket, change)
        for statement in ran:
            self._report(
                logging.INFO, "schema change replicated", entry, ran=_cut(without_texts(statement))
            )
        if ran:
            self._progress.changed_schema(self._shown(entry))
        else:
            self._report(logging.WARNING, "schema change at the source is not replicated", entry)
            names = [f"{schema}.{table}" for schema, table in tables_of(entry)]
            self._progress.ignored_schema_change(self._shown(entry), _log_fields(entry), names)
        return bool(ran)

    def explain(self, error: SetlError, rows: Iterable[RoutedRows]) -> None:
        """Add to an error of a load what may have caused it: a schema change that was ignored.

        Args:
            error: the load's; one that may be transient, or is about leadership, says it all.
            rows: what was loaded.
        """
        if isinstance(error, TransientError | FencedError):
            return
        meant = error.where.get("table", "")
        names = {
            f"{row.entry.schema}.{row.entry.table}"
            for row in rows
            if meant in {"", f"{row.entry.schema}.{row.entry.table}"}
            or any(".".join(route.target) == meant for route in row.routes)
        }
        ignored = self._progress.ignored_of(names)
        if ignored and ignored not in error.hint:
            error.hint = (
                f"A schema change was ignored before: {ignored}. Do it to the target (in a channel"
                " of two directions after SET SESSION sql_log_bin = 0, or it comes back), and then"
                " `setl start` the channel; `ddl: pass` does it for you"
                + (f". {error.hint}" if error.hint else "")
            )

    def _shown(self, entry: Entry) -> str:
        """What of a statement is shown and logged: no text of it, and of other objects the name."""
        quoting = quoting_of(entry.session) if entry.session else Quoting()
        if any(table for _, table in tables_of(entry)):
            return _cut(without_texts(entry.statement, quoting))
        words, schema = outline(entry.statement, quoting)
        if self._maps(schema or entry.default_schema or entry.schema):
            return _cut(words)
        return "DDL in a schema of which no table is mapped"

    def _report(self, level: int, message: str, entry: Entry, **more: str) -> None:
        log_fields = fields(
            **self._leadership.fields,
            position=str(entry.position),
            statement=self._shown(entry),
            **more,
        )
        _log.log(level, message, extra=log_fields)


def _past(position: Position) -> str:
    if isinstance(position, BinlogPosition):
        return f"Then {past(position)}"
    return (
        "Then `setl apply` the file with `ddl: ignore`, and `setl start` the channel. Write"
        " `ddl: stop` again when the pipeline is past it"
    )


def _cut(text: str) -> str:
    return text[:_SHOWN]


def _log_fields(entry: Entry) -> str:
    at = datetime.fromtimestamp(entry.timestamp, UTC).strftime(", %Y-%m-%d %H:%M:%S UTC")
    return f"at {entry.position}{at if entry.timestamp else ''}"
