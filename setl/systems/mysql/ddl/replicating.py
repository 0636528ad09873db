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

from collections.abc import Sequence

import pymysql

from setl.errors import SetlError
from setl.load.sink import LoadTicket, SchemaChange
from setl.systems.mysql.connection import translate
from setl.systems.mysql.ddl.attempt import Attempt
from setl.systems.mysql.ddl.statements import parsed
from setl.systems.mysql.ddl.target import DdlTarget


class MysqlDdl(DdlTarget):
    """The `setl.load.sink.SchemaChanges` of a MySQL target."""

    def apply(self, ticket: LoadTicket, change: SchemaChange) -> Sequence[str]:
        """See `setl.load.sink.SchemaChanges.apply`."""
        ddl = parsed(change.statement, change.session)
        attempt = Attempt(self, ticket, change)
        try:
            if ddl is None:
                return attempt.look_at_other()
            return attempt.carry_out(ddl)
        except (pymysql.MySQLError, OSError) as error:
            raise translate(error).at(pipeline=ticket.pipeline_key, server=self.endpoint) from error
        except SetlError as error:
            where = {"server": self.endpoint, "position": change.position, "ddl": change.id}
            error.at(pipeline=ticket.pipeline_key, **where)
            raise
        finally:
            attempt.close()
