"""The default collations that databases of the source had when a statement ran there (I26).

CREATE TABLE takes it where it names no character set, and the statement does not tell which it is.
The source tells what it is now. CREATE and ALTER DATABASE are in the stream, so what they say is
kept in ``retl.setl_ddl`` of the target, under the name of the database. What the source says now is
taken as well if nothing in the stream that is still to come changes it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any, Final

from pymysql.connections import Connection

from setl.clock import SystemClock
from setl.codec.sql.database_ddl import DEFAULT, DatabaseDdl, parse_database_ddl
from setl.codec.sql.redaction import redacted
from setl.codec.sql.statement import quoting_of
from setl.codec.sql.tokens import Quoting
from setl.errors import FatalError
from setl.load.sink import LoadTicket, SchemaChange
from setl.model.position import BinlogPosition
from setl.model.session import StatementSession
from setl.systems.mysql.binlog.statements_ahead import finds_statement
from setl.systems.mysql.connection import MysqlEndpoint, connect
from setl.systems.mysql.ddl.collating import collated, names_default, with_named_default
from setl.systems.mysql.ddl.plan import Routing
from setl.systems.mysql.ddl.table_records import TableRecord, TableRecords
from setl.systems.mysql.ddl.table_state import default_collation, name_of_collation, value_of

_KIND: Final = "default"
_LIMIT: Final = 120.0  # seconds to read ahead; a gigabyte takes about 20
_ADVICE: Final = (
    "Make the change on the target{by_hand}, with the character set and collation that the table"
    " has at the source; in the future, name them in the statement"
)


class DatabaseDefaults:
    """Those of one pipeline's source, for one schema change."""

    def __init__(
        self,
        source: MysqlEndpoint,
        routing: Routing,
        ticket: LoadTicket,
        change: SchemaChange,
        *,
        connection: Callable[[], Connection[Any]],
        begin: Callable[[], Connection[Any]],
        by_hand: str,
    ) -> None:
        """Connect to nothing yet.

        Args:
            source: the source's server.
            routing: the pipeline's tables.
            ticket: on whose behalf.
            change: the schema change.
            connection: to the target.
            begin: begins a fenced transaction on it.
            by_hand: how a person changes the target, for messages.
        """
        self._source, self._routing = source, routing
        self._ticket, self._change = ticket, change
        self._connection, self._begin = connection, begin
        self._by_hand = by_hand

    def follow(self) -> None:
        """Keep what the change says, if it is about a mapped database.

        Raises:
            SetlError: a server does not answer.
        """
        session = self._change.session
        ddl = parse_database_ddl(self._change.statement, session.schema, quoting_of(session))
        if ddl is None or ddl.leaves_default or not self._routing.maps(ddl.schema):
            return
        if ddl.verb == "DROP":
            self._keep(ddl.schema, "")
            return
        with closing(connect(self._source)) as connection:
            self._keep(ddl.schema, _collation_of(connection, ddl, self._change))

    def at_statement(self, schema: str) -> str:
        """A database's default collation when the change ran, "" if it has no such database.

        Raises:
            FatalError: it is not known.
            SetlError: a server does not answer.
        """
        with closing(connect(self._source)) as connection:
            now = default_collation(connection, schema)
        known = self._retained(schema)
        if known == now or not isinstance(self._change.position, BinlogPosition):
            return known or now
        ahead = finds_statement(
            self._source,
            self._change.position,
            lambda default, text: _changes(schema, default, text),
            SystemClock(),
            _LIMIT,
        )
        if ahead is False:
            if self._routing.maps(schema):
                self._keep(schema, now)
            return now
        if known:
            return known
        why = (
            "the binlog that the pipeline has not read yet changes it"
            if ahead
            else "the pipeline is too far behind to see whether that was changed since"
        )
        raise self._unknown(
            f"it takes the default collation of {schema}, which is {now or 'not there'} now,"
            f" and {why}"
        )

    def named(self, statement: str, session: StatementSession, schema: str) -> str:
        """A statement with the character set in place of CHARACTER SET DEFAULT.

        Args:
            statement: of this change.
            session: the session that ran it.
            schema: the database of its table at the source.

        Raises:
            FatalError, SetlError: as `at_statement`.
        """
        if not names_default(statement, session):
            return statement
        # MySQL takes collation_database, MariaDB what the table's database has.
        mysql = session.mariadb is False
        default = self._of_session(session) if mysql else self.at_statement(schema)
        return with_named_default(statement, session, default)

    def _of_session(self, session: StatementSession) -> str:
        if session.database_collation:
            with closing(connect(self._source)) as connection:
                return name_of_collation(connection, session.database_collation)
        if session.schema:
            return self.at_statement(session.schema)
        raise self._unknown("it takes a default collation, and its session had no database")

    def _unknown(self, why: str) -> FatalError:
        return FatalError(
            f"this schema change cannot be replicated: {why}:"
            f" {redacted(self._change.statement)[:300]}",
            hint=_ADVICE.format(by_hand=self._by_hand),
        )

    def _retained(self, schema: str) -> str:
        records = TableRecords(self._connection(), self._ticket, _KIND, before=_KIND)
        record = records.of((schema, ""))
        if record is None or record.generation != self._change.generation:
            return ""  # a pipeline that has gone back is at a position before that of the record
        return record.text

    def _keep(self, schema: str, collation: str) -> None:
        connection = self._begin()
        records = TableRecords(connection, self._ticket, _KIND, before=_KIND)
        record = TableRecord(self._change.generation, self._change.version, collation)
        records.write([(schema, "")], record)
        connection.commit()


def _changes(schema: str, default: str, text: str) -> bool:
    """Whether a statement may give a database another default collation."""
    upper = text[:200].upper()
    if "DATABASE" not in upper and "SCHEMA" not in upper:
        return False
    ddl = parse_database_ddl(text, default, Quoting())
    return ddl is not None and ddl.schema.lower() == schema.lower() and not ddl.leaves_default


def _collation_of(connection: Connection[Any], ddl: DatabaseDdl, change: SchemaChange) -> str:
    """The collation that CREATE or ALTER DATABASE gives. `connection` names what is fixed there."""
    session = change.session
    utf8 = ddl.charset == "utf8" or ddl.collation.startswith("utf8_")
    if utf8 and session.mariadb:
        return ""  # utf8mb3 or utf8mb4, as an old_mode says that is not in the stream
    if ddl.collation and ddl.collation != DEFAULT:
        return ddl.collation
    if ddl.charset in ("", DEFAULT):
        return name_of_collation(connection, session.server_collation)
    # With what the session takes for a character set of Unicode.
    text = collated(f"ALTER DATABASE d CHARACTER SET {ddl.charset}", session)
    written = parse_database_ddl(text, "", quoting_of(session))
    if written is not None and written.collation:
        return written.collation
    return value_of(
        connection,
        "SELECT DEFAULT_COLLATE_NAME FROM information_schema.CHARACTER_SETS"
        " WHERE CHARACTER_SET_NAME = %s",
        "utf8mb3" if utf8 else ddl.charset,
    )
