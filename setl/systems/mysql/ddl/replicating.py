"""Passes schema changes on to MySQL and MariaDB.

DDL commits by itself, so neither the fence's row lock nor the checkpoint can be in one transaction
with it. Two things take their place. `setl.systems.mysql.locks.ddl_lock` keeps statements of a
former leader from running once there is a new one. And ``retl.setl_ddl`` says of each statement
that it has begun, together with a digest of how its tables looked, and later that it is done. A
statement that had begun when its node died was executed if its tables look different now, and was
not if they look the same: MySQL 8 and MariaDB 10.6 carry out a DDL statement whole or not at all.
(TRUNCATE, which leaves a table looking the same, is repeated; no later row can be there yet.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pymysql

from setl.errors import SetlError
from setl.load.sink import LoadTicket, SchemaChange
from setl.systems.mysql.connection import MysqlEndpoint, translate
from setl.systems.mysql.ddl.attempt import Attempt
from setl.systems.mysql.ddl.context import DdlTarget
from setl.systems.mysql.ddl.plan import Routing


class MysqlDdl:
    """The `setl.load.sink.SchemaChanges` of a MySQL target."""

    def __init__(
        self,
        endpoint: MysqlEndpoint,
        mark: int,
        routing: Routing,
        nonce: Callable[[], str],
        *,
        marked_drops: bool,
        source: MysqlEndpoint | None = None,
        accept: Sequence[str] = (),
    ) -> None:
        """Connect to nothing yet; see `DdlTarget`."""
        self._target = DdlTarget(endpoint, mark, routing, nonce, marked_drops, source, accept)

    def apply(self, ticket: LoadTicket, change: SchemaChange) -> Sequence[str]:
        """See `setl.load.sink.SchemaChanges.apply`."""
        attempt, server = Attempt(self._target, ticket, change), self._target.endpoint
        try:
            return attempt.run()
        except (pymysql.MySQLError, OSError) as error:
            raise translate(error).at(pipeline=ticket.pipeline_key, server=server) from error
        except SetlError as error:
            where = {"server": server, "position": change.position, "ddl": change.id}
            error.at(pipeline=ticket.pipeline_key, **where)
            raise
        finally:
            attempt.close()
