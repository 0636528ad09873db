"""Finds out by trying what an account may do with a table.

SHOW GRANTS would have to be understood with its roles, wildcards and partial revokes. A
statement that is tried is judged by the server itself; EXPLAIN needs the privileges of what
it explains and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from setl.codec.sql.grants import read_grant
from setl.systems.finding import Report
from setl.systems.mysql.identifiers import qualified, quote
from setl.systems.mysql.server import Outcome, Server
from setl.systems.mysql.server_kind import SHOWS_REPLICAS

_TRIALS = {
    "SELECT": "SELECT 1 FROM {table} LIMIT 0",
    "INSERT": "EXPLAIN INSERT INTO {table} () VALUES ()",
    "UPDATE": "EXPLAIN UPDATE {table} SET {column} = NULL WHERE 1 = 0",
    "DELETE": "EXPLAIN DELETE FROM {table} WHERE 1 = 0",
}
_NAMED = 3  # tables that a finding names; of more it gives the number


def denied(
    server: Server, schema: str, table: str, privileges: Iterable[str], column: str = "id"
) -> list[str]:
    """Those of the privileges on an existing table that the account lacks.

    Args:
        server: where.
        schema: the table's schema.
        table: the table.
        privileges: some of SELECT, INSERT, UPDATE, DELETE.
        column: any column of the table.

    Raises:
        SetlError: the server does not answer.
    """
    names = {"table": qualified(schema, table), "column": quote(column)}
    return [
        privilege
        for privilege in privileges
        if server.attempt(_TRIALS[privilege].format(**names)) is Outcome.DENIED
    ]


def may_read_binlog(server: Server) -> bool:
    """Whether the account has REPLICATION SLAVE. Raises SetlError."""
    if not server.mariadb:
        new_name = server.version >= SHOWS_REPLICAS
        question = "SHOW REPLICAS" if new_name else "SHOW SLAVE HOSTS"
        return server.attempt(question) is not Outcome.DENIED
    # MariaDB has no harmless statement that needs just this privilege. Its SHOW GRANTS lists
    # the privileges of active roles as well.
    for (grant,) in server.rows("SHOW GRANTS"):
        found = read_grant(str(grant))
        held = found.privileges if found and not found.schema else frozenset[str]()
        if held & {"ALL PRIVILEGES", "REPLICATION SLAVE"}:
            return True
    return False


@dataclass(slots=True)
class MissingPrivileges:
    """Privileges on tables that an account lacks, reported for each schema at once."""

    server: Server
    _lacking: dict[str, dict[str, list[str]]] = field(
        default_factory=dict[str, dict[str, list[str]]]
    )

    def add(self, schema: str, table: str, privileges: Sequence[str]) -> None:
        """Note what is lacking on one table, perhaps nothing."""
        for privilege in privileges:
            self._lacking.setdefault(schema, {}).setdefault(privilege, []).append(table)

    def report(self, report: Report) -> None:
        """Add one finding for each schema."""
        for schema, by_privilege in self._lacking.items():
            tables = list(dict.fromkeys(t for ts in by_privilege.values() for t in ts))
            names = ", ".join(f"{schema}.{t}" for t in tables[:_NAMED])
            more = f" and {len(tables) - _NAMED} more" if len(tables) > _NAMED else ""
            privileges = list(by_privilege)
            report.error(
                f"the account {self.server.account} lacks {', '.join(privileges)} on {names}{more}",
                self.server.grant(privileges, self.server.scope_of(schema)),
                code="missing-privilege",
            )
