"""Finds triggers and events of a target that make rows other than those of the source.

A trigger of the target runs for each row that setl writes: the binlog has rows, and a server runs
its triggers for whoever writes them. What it changes in the row, the source does not have. What it
writes into another table of the pipeline comes beside what the source has there. At a site of a
two-way channel that is part of the transaction that carries the channel's mark, so the pipeline
back drops it, and the other site never gets it.

Foreign keys do nothing of the kind: a sink's session does not check them, and so runs no actions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from setl.channel.routes.routing import Router
from setl.codec.sql.stored_program import Name
from setl.systems.finding import Report
from setl.systems.mysql.preflight.stored_programs import StoredPrograms, Trigger
from setl.systems.mysql.server import Server

Among = Callable[[str, str], bool]
"""Whether a table, by schema and name, is one of some."""

_GUARD: Final = (
    "If it is for clients only, let it do nothing for setl: IF SUBSTRING_INDEX(USER(), '@', 1) <>"
    " '{login}' THEN ... END IF. Then name {code}@{table} under `accept` in the channel file"
)
CHANGES: Final = "trigger-changes-rows"
WRITES: Final = "trigger-writes-mapped"
"""What the findings are named by, see `setl.systems.finding.Finding.code`."""


def named(tables: Iterable[Name]) -> Among:
    """Whether a table is one of these; a trigger may spell its name in another case."""
    folded = {(schema.lower(), table.lower()) for schema, table in tables}
    return lambda schema, table: (schema.lower(), table.lower()) in folded


def reading(router: Router | None) -> Among:
    """Whether a table is one that a pipeline with these routes reads, see `named`."""
    if router is None:
        return lambda _, __: False
    known = router
    return lambda schema, table: bool(
        known.route(schema, table) or known.route(schema.lower(), table.lower())
    )


@dataclass(slots=True)
class TargetTriggers:
    """The triggers of a target.

    Attributes:
        server: the server.
        reads: tables of this server that the channel reads.
    """

    server: Server
    reads: Among
    _programs: StoredPrograms = field(init=False)

    def __post_init__(self) -> None:
        self._programs = StoredPrograms(self.server)

    def check(self, table: Name, filled: Collection[str], mapped: Among, report: Report) -> None:
        """Report what is wrong with the triggers of a target table.

        Args:
            table: schema and name.
            filled: its columns that the pipeline fills, in lower case.
            mapped: tables that the pipeline writes.
            report: where to put it.

        Raises:
            SetlError: the server does not answer.
        """
        others: list[str] = []
        for trigger in self._programs.triggers(*table):
            reported = [
                self._check_values(trigger, filled, report),
                self._check_tables(trigger, mapped, report),
            ]
            if not any(reported):
                others.append(trigger.name)
        if others:
            report.warning(
                f"the target table has triggers ({', '.join(others)}), which run for rows that setl"
                " writes, and again when it writes a row again",
                "Drop them, or be sure that running twice does no harm",
                code="target-triggers",
            )

    def check_tables(self, table: Name, mapped: Among, report: Report) -> None:
        """Report those triggers of a table that write tables of the channel; see `check`."""
        for trigger in self._programs.triggers(*table):
            self._check_tables(trigger, mapped, report)

    def check_events(self, mapped: Among, beside: Server | None, report: Report) -> None:
        """Report events that write tables of the pipeline, to which setl alone is to write.

        Args:
            mapped: tables that the pipeline writes.
            beside: the other site of a two-way channel, where clients of both may write; one that
                runs the same event writes the same rows, or others under the same keys.
            report: where to put it.

        Raises:
            SetlError: a server does not answer.
        """
        events = self._programs.events()
        if events and beside is not None:
            both = StoredPrograms(beside).events()
            events = {name: writes for name, writes in events.items() if name in both}
        for name, writes in events.items():
            for table in sorted(self._programs.written(writes).tables):
                if mapped(*table):
                    report.at(".".join(table)).warning(
                        f"the event {name} writes this table at both sites, and each passes it on:"
                        " what one of them wrote may replace what the other did"
                        if beside is not None
                        else f"the event {name} of the target writes this table: the target then"
                        " has rows that the source does not have",
                        "Let one server run it: what it writes at the source is replicated",
                        code="event-writes-mapped",
                    )

    def _check_values(self, trigger: Trigger, filled: Collection[str], report: Report) -> bool:
        changed = sorted(trigger.writes.values & set(filled)) if trigger.before else []
        if changed:
            report.error(
                f"the trigger {trigger.name} sets {', '.join(changed)}, also in rows that setl"
                " writes: the target has its values then, and not the source's",
                "Drop it at the target, and set the values where rows are written first",
                self._guard(trigger, CHANGES),
                code=CHANGES,
                risk=True,
            )
        return bool(changed)

    def _check_tables(self, trigger: Trigger, mapped: Among, report: Report) -> bool:
        written = self._programs.written(trigger.writes)
        here = {".".join(name) for name in written.tables if mapped(*name)}
        there = {".".join(name) for name in written.tables if self.reads(*name)}
        if here or there:
            said = (
                f"the trigger {trigger.name} writes {', '.join(sorted(here | there))}, also when"
                " setl writes a row"
            )
            if here:
                said += ": the target then has rows that the source does not have, or has as well"
            if there:
                said += (
                    ". What it writes carries the channel's mark then, so it never goes to the"
                    " other site, and the two sites differ for good"
                )
            report.error(
                said,
                "Drop it at the target: what such a trigger writes at the source is replicated",
                self._guard(trigger, WRITES),
                code=WRITES,
                risk=True,
            )
        elif written.unread:
            report.warning(
                f"the trigger {trigger.name} uses {', '.join(written.unread)}, of which the account"
                f" {self.server.account} does not see the text, so it is not known whether the"
                " trigger writes tables of the channel",
                "Look at it, or give the account the privilege to see it",
                code="triggers-unseen",
            )
        return bool(here or there or written.unread)

    def _guard(self, trigger: Trigger, code: str) -> str:
        login = str(self.server.account).partition("@")[0].strip("'`")
        return _GUARD.format(login=login, code=code, table=f"{trigger.schema}.{trigger.table}")


def check_triggers_seen(server: Server, schemas: Collection[str], report: Report) -> None:
    """Report schemas whose triggers the account does not see, since it lacks TRIGGER.

    Raises:
        SetlError: the server does not answer.
    """
    for schema in sorted(set(schemas)):
        if not server.holds("TRIGGER", schema):
            report.at(schema).warning(
                f"the account {server.account} does not see triggers of {schema}: those that change"
                " rows that setl writes, or write other tables of the channel, are not found",
                server.grant(["TRIGGER"], server.scope_of(schema)),
                code="triggers-unseen",
            )
