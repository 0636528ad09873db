"""Stops a pipeline whose target gets a trigger that writes tables of the channel."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from setl.channel.routes.routing import Router
from setl.clock import Clock
from setl.codec.sql.stored_program import Name
from setl.errors import ConfigurationError
from setl.systems.finding import Report, accepting
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.preflight.target_triggers import TargetTriggers, reading
from setl.systems.mysql.server import Server

SECONDS: Final = 60.0
"""How long a look counts, as long as one at the tables' columns and keys."""


class TriggerWatch:
    """The triggers of one pipeline's target. Used by one thread at a time."""

    def __init__(
        self,
        endpoint: MysqlEndpoint,
        router: Router,
        back: Router | None,
        accept: Sequence[str],
        clock: Clock,
    ) -> None:
        """Ask nobody yet.

        Args:
            endpoint: the target.
            router: the pipeline's routes.
            back: those of the pipeline that goes the other way, None if there is none.
            accept: as the pipeline has it, see `setl.operate.check.with_accepted`.
            clock: tells when to look again.
        """
        self._endpoint, self._accept, self._clock = endpoint, accept, clock
        self._router, self._back = router, back
        exact = (entry.pattern.exact for entry in router.entries)
        routes = (route for name in exact if name for route in router.route(*name))
        self._targets = {_folded(*route.target) for route in routes}
        self._seen: set[Name] = set()
        self._until = 0.0

    def refuse(self, targets: Collection[Name]) -> None:
        """Rows are about to be written to these tables.

        Raises:
            ConfigurationError: a trigger of one writes a table of the channel, and the pipeline
                does not accept that.
            SetlError: the target does not answer.
        """
        now = self._clock.monotonic()
        if now >= self._until:
            self._seen.clear()
            self._until = now + SECONDS
        unseen = set(targets) - self._seen
        if not unseen:
            return
        self._targets.update(_folded(*name) for name in unseen)
        report = Report("")
        with Server.opened(self._endpoint) as server:
            triggers = TargetTriggers(server, reading(self._back))
            for name in sorted(unseen):
                triggers.check_tables(name, self._maps, report.at(".".join(name)))
        for finding in report.findings:
            if finding.level == "error" and not accepting(self._accept, finding.id):
                raise ConfigurationError(
                    finding.what,
                    hint=". ".join((*finding.hint, "Compare the tables with `setl verify`")),
                    table=finding.location,
                    server=self._endpoint,
                )
        self._seen |= unseen

    def _maps(self, schema: str, table: str) -> bool:
        """Whether the pipeline writes a table, as far as that is known.

        Under which name a table of the source arrives is known of those that the channel file
        names exactly, of those that keep their names, and of those that have brought rows.
        """
        stored = any(route.target == (schema, table) for route in self._router.route(schema, table))
        return stored or _folded(schema, table) in self._targets


def _folded(schema: str, table: str) -> Name:
    return schema.lower(), table.lower()
