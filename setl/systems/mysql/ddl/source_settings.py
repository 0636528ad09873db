"""What the source's server had, and its databases, when a statement ran there (I26).

CREATE TABLE takes the default collation of its database where it names no character set, and the
statement does not tell which it is. The source tells what it is now. CREATE and ALTER DATABASE are
in the stream, so what they say is kept in ``retl.setl_ddl`` of the target, under the name of the
database. What the source says now is taken as well if nothing in the stream that is still to come
changes it.

The zone of its machine, and whether it logs what foreign keys do, are in no event. They were the
same then if it has not been started since, which would show in the binlog. They were as well if
they had the same values at a change before.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

from pymysql.connections import Connection

from setl.clock import SystemClock
from setl.codec.sql.database_ddl import DEFAULT, DatabaseDdl, parse_database_ddl
from setl.codec.sql.statement import quoting_of
from setl.codec.sql.tokens import Quoting
from setl.errors import FatalError
from setl.load.sink import SchemaChange
from setl.model.position import BinlogPosition
from setl.model.session import StatementSession
from setl.systems.mysql.binlog.statements_ahead import finds_server_start, finds_statement
from setl.systems.mysql.connection import MysqlEndpoint, connect
from setl.systems.mysql.ddl.advice import not_replicated
from setl.systems.mysql.ddl.collating import collated, names_default, with_named_default
from setl.systems.mysql.ddl.context import ChangeContext
from setl.systems.mysql.ddl.table_records import (
    DatabaseDefault,
    ServerSetting,
    TableRecord,
    TableRecords,
)
from setl.systems.mysql.ddl.table_state import default_collation, name_of_collation, value_of

_LIMIT: Final = 120.0  # seconds to read ahead; a gigabyte takes about 20
_ADVICE: Final = (
    "Make the change on the target{by_hand}, with the character set and collation that the table"
    " has at the source; in the future, name them in the statement"
)


class DatabaseDefaults:
    """The default collations of the source's databases, for one schema change."""

    def __init__(self, context: ChangeContext, source: MysqlEndpoint) -> None:
        """Connect to nothing yet; `source` is the source's server."""
        self._context, self._source, self._change = context, source, context.change
        self._routing = context.target.routing

    def follow(self) -> None:
        """Keep what the change says, if it is about a mapped database."""
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
        """A database's default collation when the change ran, "" if it has no such database."""
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
        """A statement with the character set in place of CHARACTER SET DEFAULT."""
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
        return not_replicated(why, self._change.statement, _ADVICE)

    def _retained(self, schema: str) -> str:
        record = DatabaseDefault(self._context.connection, self._context.ticket).of((schema, ""))
        if record is None or record.generation != self._change.generation:
            return ""  # a pipeline that has gone back is at a position before that of the record
        return record.text

    def _keep(self, schema: str, collation: str) -> None:
        _keep(self._context, DatabaseDefault, schema, collation)


def source_had(context: ChangeContext, setting: str, value: str) -> bool:
    """Whether a setting of the source had the value that it has now when the change ran.

    Returns:
        False if that is not known. True also where no binlog is read: nothing tells there.
    """
    source, position = context.target.source, context.change.position
    if source is None or not isinstance(position, BinlogPosition):
        return source is not None
    known = ServerSetting(context.connection, context.ticket).of((setting, ""))
    if known is not None and (known.generation, known.text) == (context.change.generation, value):
        return True
    if finds_server_start(source, position, SystemClock(), _LIMIT) is not False:
        return False
    _keep(context, ServerSetting, setting, value)
    return True


def _keep(context: ChangeContext, kind: type[TableRecords], name: str, value: str) -> None:
    connection, change = context.begin(), context.change
    record = TableRecord(change.generation, change.version, value)
    kind(connection, context.ticket).put([(name, "")], record)
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
