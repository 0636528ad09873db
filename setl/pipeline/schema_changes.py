"""What a run does with schema changes of its source, as the channel file says (I16)."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, Literal

from setl.errors import FatalError
from setl.load.port import LoadTicket, SchemaChange, SchemaChanges
from setl.log import fields
from setl.model.entry import Entry
from setl.model.session import StatementSession
from setl.pipeline.leading import Leading
from setl.pipeline.progress import Progress

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
        leading: Leading,
        progress: Progress,
    ) -> None:
        """Act as `choice` says; `target` is where ``pass`` passes them to."""
        self._choice = choice
        self._target = target
        self._leading = leading
        self._progress = progress

    def act_on(self, entries: Sequence[Entry], ticket: LoadTicket, generation: int) -> bool:
        """Act on what Extract has left; returns whether anything was done to the target.

        Args:
            entries: DDL, in source order.
            ticket: whose `through` is the end of the last of them.
            generation: of the checkpoint.

        Raises:
            SetlError: as `SchemaChanges.apply`; FatalError for ``stop``.
        """
        done = False
        for entry in entries:
            if self._choice == "stop":
                raise FatalError(
                    f"schema change at the source: {entry.statement[:_SHOWN]}",
                    hint="Apply it to the target, then `setl start` the channel again with"
                    " `ddl: ignore`",
                    pipeline=self._leading.name,
                    position=entry.position,
                )
            done = self._act_on(entry, ticket, generation) or done
        return done

    def _act_on(self, entry: Entry, ticket: LoadTicket, generation: int) -> bool:
        ran: Sequence[str] = ()
        if self._target is not None:
            change = SchemaChange(
                (entry.transaction or str(entry.position))[-_ID:],
                entry.statement,
                entry.session or StatementSession(entry.schema),
                generation,
                ticket.through,
            )
            ran = self._target.apply(ticket, change)
        for statement in ran:
            self._report(logging.INFO, "schema change passed on", entry, ran=statement[:_SHOWN])
        if ran:
            self._progress.changed_schema(entry.statement[:_SHOWN])
        else:
            self._report(logging.WARNING, "schema change at the source is not passed on", entry)
            self._progress.add(ddl_ignored=1)
        return bool(ran)

    def _report(self, level: int, message: str, entry: Entry, **more: str) -> None:
        place = fields(
            **self._leading.fields,
            position=str(entry.position),
            statement=entry.statement[:_SHOWN],
            **more,
        )
        _log.log(level, message, extra=place)
