"""A MySQL or MariaDB server that is being checked: its settings, and what the account may do."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from setl.codec.sql.grants import Grant, read_grant
from setl.systems.mysql.binlog.unanswered import refuse_unanswered
from setl.systems.mysql.connection import MysqlEndpoint, connect, translate, translating
from setl.systems.mysql.created_text import read_created_text
from setl.systems.mysql.identifiers import quote
from setl.systems.mysql.process_list import Process, processes, undecoded
from setl.systems.mysql.replicas import replication_statement
from setl.systems.mysql.server_kind import ServerKind, Service

_ANSWER_TIMEOUT = 30.0  # seconds; a check should not wait longer for a server in trouble

# https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html
_DENIED = {1044, 1142, 1143, 1227, 1370}
_MISSING = {1049, 1146}
_SYNTAX = 1064
_CLIENT_ERRORS = range(2000, 3000)


class Outcome(Enum):
    """The outcome of a statement that was only tried."""

    DONE = "done"
    DENIED = "denied"  # the account may not do this
    MISSING = "missing"  # there is no such table or schema


class Server:
    """A connection, and the facts about its server that checks need.

    Attributes:
        endpoint: where it is.
        connection: the open connection.
        kind: what kind of server it is.
        mariadb: whether the server is MariaDB.
        version: its version as numbers.
        product: its name and version, for people.
        variables: its global variables, by name.
        account: the account as the server knows it, ready for a GRANT.
    """

    def __init__(self, endpoint: MysqlEndpoint, connection: Connection[Any]) -> None:
        """Ask for version, variables and account. Raises SetlError."""
        self.endpoint = endpoint
        self.connection = connection
        # Names of files among them may be of any bytes.
        with undecoded(connection):
            reported = self.rows("SHOW GLOBAL VARIABLES")
        self.variables = {_decoded(name).lower(): _decoded(value) for name, value in reported}
        self.kind = ServerKind.of(self.variables.get("version", ""), self.variables)
        self.mariadb, self.version = self.kind.mariadb, self.kind.version
        self.product = self.kind.product
        user, _, host = str(self.rows("SELECT CURRENT_USER()")[0][0]).rpartition("@")
        self.account = f"{_text(user)}@{_text(host)}"

    @classmethod
    @contextmanager
    def opened(cls, endpoint: MysqlEndpoint) -> Generator[Server]:
        """Connect for the time of a block.

        Raises:
            SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
        """
        timeout = min(endpoint.read_timeout, _ANSWER_TIMEOUT)
        connection = connect(replace(endpoint, read_timeout=timeout))
        try:
            yield cls(endpoint, connection)
        finally:
            connection.close()

    def rows(self, sql: str, args: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a question. Raises SetlError."""
        with translating(self.endpoint), self.connection.cursor(Cursor) as cursor:
            cursor.execute(sql, args or None)
            return list(cursor.fetchall())

    def raw_rows(self, sql: str) -> list[tuple[Any, ...]]:
        """As `rows`, with errors as they come."""
        with self.connection.cursor(Cursor) as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def records(self, sql: str, args: Sequence[object] = ()) -> list[dict[str, Any]]:
        """All rows by column name in lower case, for answers that differ between versions."""
        with translating(self.endpoint), self.connection.cursor(Cursor) as cursor:
            cursor.execute(sql, args or None)
            names = [str(d[0]).lower() for d in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def processes(self) -> list[Process]:
        """All connections that the account may see. Raises SetlError."""
        with translating(self.endpoint):
            return processes(self.connection)

    def reconnect(self) -> None:
        """Restart after an answer that was not read to its end. Raises SetlError."""
        with translating(self.endpoint):
            self.connection.ping(reconnect=True)

    def refuse_unanswered(self) -> None:
        """See that a question about the binlog would be answered. Raises SetlError."""
        with translating(self.endpoint):
            refuse_unanswered(self.connection, self.endpoint)

    def created_text(self, schema: str, table: str) -> str:
        """The text of SHOW CREATE TABLE. Raises SetlError."""
        with translating(self.endpoint):
            return read_created_text(self.connection, schema, table)

    def attempt(self, sql: str) -> Outcome:
        """Whether the account could run a statement, which must change nothing.

        An error that has nothing to do with privileges or names counts as done: the server
        looks at privileges first. Raises SetlError if the server does not answer.
        """
        try:
            with self.connection.cursor(Cursor) as cursor:
                cursor.execute(sql)
        except (pymysql.MySQLError, OSError) as error:
            number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
            if number in _DENIED:
                return Outcome.DENIED
            if number in _MISSING:
                return Outcome.MISSING
            if number < 1000 or number in _CLIENT_ERRORS or number == _SYNTAX:
                raise translate(error).at(server=self.endpoint) from error
        return Outcome.DONE

    def set_global(self, name: str, value: str) -> tuple[str, ...]:
        """How to change a global variable for good."""
        if self.kind.managed:
            plain = value.strip("'")
            return (f"Set {name} to {plain} in {self.kind.group}, and reboot if it is static",)
        if not self.mariadb:
            return (f"SET PERSIST {name} = {value};",)
        return (
            f"SET GLOBAL {name} = {value};",
            f"Set {name} in the server's configuration file too, so that it outlives a restart",
        )

    def enable_binlog(self) -> str:
        """How to have the server write a binlog."""
        if self.kind.service is Service.AURORA:
            return f"Set binlog_format to ROW in {self.kind.group}, and reboot its instances"
        if self.kind.managed:
            return "Turn the instance's automated backups on, with which RDS writes binlogs"
        return "Add log_bin to the server's configuration file, section [mysqld], and restart it"

    def grant(self, privileges: Sequence[str], scope: str) -> str:
        """The statement that gives the account privileges; see `scope_of`."""
        return f"GRANT {', '.join(privileges)} ON {scope} TO {self.account};"

    def grants(self) -> list[Grant]:
        """What the account holds on all schemas or on one, by its roles too. Raises SetlError."""
        asked = "SHOW GRANTS"
        # MySQL before 8.0 has no roles; MariaDB's SHOW GRANTS has those of active ones.
        if not self.mariadb and self.version >= (8, 0):
            roles = str(self.rows("SELECT CURRENT_ROLE()")[0][0])
            if roles not in {"NONE", ""}:
                asked = f"SHOW GRANTS FOR CURRENT_USER() USING {roles}"
        grants = (read_grant(str(text)) for (text,) in self.rows(asked))
        return [grant for grant in grants if grant is not None]

    def holds(self, privilege: str, schema: str) -> bool:
        """Whether the account has a privilege on all tables of a schema. Raises SetlError."""
        return any(
            bool(grant.privileges & {privilege, "ALL PRIVILEGES"})
            and (not grant.schema or bool(_grant_pattern(grant.schema).fullmatch(schema)))
            for grant in self.grants()
        )

    def scope_of(self, schema: str) -> str:
        """A schema as a GRANT to the account has to name it.

        ``_`` and ``%`` are wildcards there. Of several names that match a schema the server
        takes the privileges of one only, so a second name would hide those of the first: if
        the account has privileges under a name already, it is used again.
        """
        grants = (read_grant(str(grant)) for (grant,) in self.rows("SHOW GRANTS"))
        # Grants to roles are not the account's to extend.
        names = [grant.schema for grant in grants if grant and grant.schema and grant.to_account]
        matching = [name for name in names if _grant_pattern(name).fullmatch(schema)]
        # The server prefers the name that is literal for longest.
        matching.sort(key=_literal_length, reverse=True)
        return f"{quote(matching[0] if matching else schema)}.*"


def _decoded(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _literal_length(name: str) -> int:
    found = re.match(r"(?:\\.|[^_%\\])*", name)
    return found.end() if found else 0


def _grant_pattern(name: str) -> re.Pattern[str]:
    """What a schema's name in a GRANT stands for."""
    wildcards = {"_": ".", "%": ".*"}
    pieces = re.findall(r"\\.|.", name, re.DOTALL)
    return re.compile(
        "".join(wildcards.get(piece) or re.escape(piece.removeprefix("\\")) for piece in pieces),
        re.DOTALL,
    )


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def replicated_sources(server: Server) -> list[dict[str, Any]]:
    """A row for each server that it is a replica of, names in lower case.

    Empty, too, without the privilege to see the state of replication: nobody knows then.

    Raises:
        SetlError: the server stopped answering.
    """
    question = replication_statement(mariadb=server.mariadb, version=server.version)
    if server.attempt(question) is not Outcome.DONE:
        return []
    return server.records(question)
