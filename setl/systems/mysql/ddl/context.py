"""One schema change at one target: what is known of both, and the connections that it uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from pymysql.connections import Connection

from setl.channel.routes.routing import Router
from setl.errors import FatalError, SetlError
from setl.load.sink import LoadTicket, SchemaChange
from setl.systems.finding import accepting, finding_id
from setl.systems.mysql.acting_keys import RelatedTables
from setl.systems.mysql.catalog import OWN_SCHEMA
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.creation.dialect import DialectOf
from setl.systems.mysql.ddl.ledger import FAILED, Ledger
from setl.systems.mysql.ddl.plan import Name, Routing, Step
from setl.systems.mysql.ddl.runner import DdlRunner
from setl.systems.mysql.load.writer import Writer

_LOCK_WAIT: Final = 10


@dataclass(frozen=True)
class DdlTarget:
    """A MySQL or MariaDB that schema changes are replicated to.

    Attributes:
        endpoint: the server.
        mark: the channel's number, which statements carry in a comment (I10).
        routing: the pipeline's tables.
        nonce: see `setl.systems.mysql.stored.marks.mark_info`.
        marked_drops: whether the target's clients write rows that go to the source, see `plan_ddl`.
        source: the source's server, None if it cannot be asked.
        accept: see `setl.systems.port.DdlReplicationContext`.
    """

    endpoint: MysqlEndpoint
    mark: int
    routing: Routing
    nonce: Callable[[], str]
    marked_drops: bool
    source: MysqlEndpoint | None = None
    accept: Sequence[str] = ()

    @cached_property
    def dialect(self) -> DialectOf:
        """Gives what the target knows."""
        return DialectOf(self.endpoint)

    @cached_property
    def related(self) -> RelatedTables | None:
        """Tells which tables' foreign keys setl carries out; None if it does for none."""
        return RelatedTables(self.routing) if isinstance(self.routing, Router) else None

    @property
    def by_hand(self) -> str:
        """How a person changes the target, so that nothing comes back from there."""
        return " by hand, after SET SESSION sql_log_bin = 0" if self.marked_drops else " by hand"

    def marked(self, statement: str) -> str:
        """The statement with the channel's mark."""
        return f"/*setl:{self.mark}*/ {statement}"

    def targets_of(self, table: Name) -> Sequence[tuple[Name, bool]]:
        """Where a table of the source goes, each with whether it has all of its columns there."""
        return [(route.target, route.plain) for route in self.routing.route(*table)]

    def accepts(self, code: str, location: str) -> bool:
        """Whether the channel file accepts a finding."""
        return bool(accepting(self.accept, finding_id(code, location)))

    def accepts_of(self, code: str, step: Step) -> bool:
        """Whether the channel file accepts a finding about a step's table."""
        return self.accepts(code, ".".join(step.source or step.tables[0]))


class ChangeContext:
    """An attempt at a change, on behalf of a leader."""

    def __init__(self, target: DdlTarget, ticket: LoadTicket, change: SchemaChange) -> None:
        """Connect to nothing yet."""
        self.target, self.ticket, self.change = target, ticket, change
        self.runner = DdlRunner(target.endpoint, OWN_SCHEMA if target.marked_drops else None)
        self._writer = Writer(target.endpoint, _LOCK_WAIT)

    @property
    def connection(self) -> Connection[Any]:
        """To the target, for the ledger and for questions."""
        return self._writer.open()

    @property
    def ledger(self) -> Ledger:
        """What is written down of the change."""
        return Ledger(self.connection, self.ticket, self.change)

    def begin(self) -> Connection[Any]:
        """Open a fenced and marked transaction for the ledger."""
        self.register()
        self._writer.begin(self.ticket, self.target.mark, self.target.nonce())
        return self._writer.open()

    def register(self) -> None:
        """Have a leader that is about to lose its session able to end what writes (I3)."""
        self._writer.register(self.ticket)

    def stopped(self, number: int, statement: str, error: FatalError) -> SetlError:
        """Write the failure of a step down, with the next action of whoever reads it."""
        connection = self.begin()
        self.ledger.write(number, FAILED, statement, error=error.message)
        connection.commit()
        where = f"pipeline = '{self.ticket.pipeline_key}' AND id = '{self.change.id}'"
        way = error.hint or "Make it possible, and `setl start` the channel; or make it{by_hand}"
        way = way.replace("{by_hand}", self.target.by_hand)
        error.hint = (
            f"{way}. When it is made by hand, mark it as done; that is enough. To do so, run there:"
            f" UPDATE retl.setl_ddl SET state = 'done' WHERE {where} AND step = {number}; and `setl"
            " start` the channel, which then skips it"
        )
        return error

    def close(self) -> None:
        """Give the connections up."""
        self.runner.close()
        self._writer.close()
