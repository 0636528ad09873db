"""Questions to a MySQL or MariaDB server about its binlogs, over short connections."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from setl.codec.binlog.tables.old_times import LIKELY_NONE, OLD_FORMAT, UNKNOWN
from setl.codec.binlog.transactions.gtid import same_gtids
from setl.errors import ConfigurationError, PositionLostError
from setl.model.position import BinlogOrigin, BinlogPosition, binlog_file_number
from setl.systems.mysql.binlog.retention import RETENTION_VARIABLES, retention_of
from setl.systems.mysql.binlog.session import FIRST_OFFSET, ServerSession
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating

_LOG = logging.getLogger(__name__)

# Seconds that a server may take to read a binlog up to a position (measured: 20 million small
# events a minute, where they are cached).
_SCAN = 60.0
_LOOKS = 3  # for a moment in which nothing is being committed
# MySQL puts it before the first event of an encrypted file. It counts it in the file's size, and in
# no position: https://dev.mysql.com/doc/refman/8.4/en/replication-binlog-encryption.html
_ENCRYPTION_HEADER = 512

_HINTS = (
    "Stop the channel, move on with `setl position reset PIPELINE --to latest`, start it, and load "
    "the tables again with `setl load PIPELINE --replace`, which also deletes what only the target "
    "has. Or take what is left with `--to earliest` and compare with `setl verify`. Keep binlogs "
    "longer on the source"
)


@dataclass(frozen=True, slots=True)
class PositionReport:
    """What a server says about a position in its binlogs.

    Attributes:
        server: which server it is, see `BinlogOrigin.server`.
        absence: why there is nothing at the position, in words; "" if there is something.
        disagreement: why the GTIDs are not those of this position, in words; "" if they may be.
        proved: whether the server knows the GTIDs of the position, and they are the same.
        removed: whether its file may be one that the server had and keeps no more.
    """

    server: str
    absence: str = ""
    disagreement: str = ""
    proved: bool = False
    removed: bool = False


class StreamServer(NamedTuple):
    """What a stream has to know of the server that sends it.

    Attributes:
        identity: which server it is, see `BinlogOrigin.server`.
        folds_names: see `BinlogServer.folds_names`.
    """

    identity: str
    folds_names: bool


@dataclass(frozen=True, slots=True)
class BinlogFile:
    """One binlog file of a server.

    Attributes:
        name: its name.
        size: bytes in it, as positions count them; the newest one grows.
    """

    name: str
    size: int


class BinlogServer:
    """Asks one server. Every call has a connection of its own, so calls are thread-safe."""

    def __init__(self, endpoint: MysqlEndpoint, *, timeout: float = 10.0) -> None:
        """Nothing is connected yet.

        Args:
            endpoint: the server.
            timeout: seconds to wait for any answer, at most those of `endpoint`.
        """
        self._endpoint = replace(
            endpoint,
            connect_timeout=min(timeout, endpoint.connect_timeout),
            read_timeout=min(timeout, endpoint.read_timeout),
        )

    def files(self) -> list[BinlogFile]:
        """The binlogs that the server keeps, oldest first.

        Raises:
            ConfigurationError: the server writes none, or the account may not ask.
            TransientError: the server cannot be reached.
        """
        with self._session() as session:
            return self._files(session)

    def latest(self) -> BinlogPosition:
        """The end of the newest binlog, with the GTIDs executed up to there.

        MySQL moves the end when it writes a transaction, and executes the GTID when it commits it.
        So there may be GTIDs before the position that this does not name; `BinlogSearch.end` does.

        Raises:
            ConfigurationError: the server writes none, or the account may not ask.
            TransientError: the server cannot be reached.
        """
        with self._session() as session:
            return self._latest(session)

    def idle_end(self) -> BinlogPosition | None:
        """The same if the GTIDs are exactly those before the position; None if that is not sure.

        MySQL takes ownership of a transaction's GTID before it writes the transaction, and gives it
        up when it adds the GTID to those that are executed. So nothing is missing if no GTID was
        owned between two answers with the same position.
        """
        with self._session() as session:
            position = self._latest(session)
            for _ in range(_LOOKS):
                if session.mariadb or session.gtid_mode() == "OFF":
                    return position
                owned = session.row("SELECT @@GLOBAL.gtid_owned")
                before, position = position, self._latest(session)
                if owned is not None and not owned[0] and position.order == before.order:
                    return position
            return None

    def _latest(self, session: ServerSession) -> BinlogPosition:
        rows = session.of_binlog(session.status_statement())
        if not rows:
            raise self._no_binlog()
        (row,) = rows
        file, offset = str(row[0]), int(row[1])
        if session.mariadb:
            gtid = session.gtid_at(file, offset) or ""
        else:
            # File, Position, Binlog_Do_DB, Binlog_Ignore_DB, Executed_Gtid_Set
            gtid = str(row[4]).replace("\n", "")
        return BinlogPosition(file, offset, gtid, BinlogOrigin(session.identity()))

    def all_have_gtids(self) -> bool:
        """Whether every transaction of the server has a GTID. Raises TransientError.

        MariaDB gives each one; MySQL may be set to let some be without.
        """
        with self._session() as session:
            return session.all_have_gtids()

    def earliest(self) -> BinlogPosition:
        """The beginning of the oldest binlog that is kept. Raises what `files` raises."""
        with self._session() as session:
            file = self._files(session)[0].name
            return BinlogPosition(file, FIRST_OFFSET, origin=BinlogOrigin(session.identity()))

    def oldest(self) -> tuple[BinlogPosition, bool]:
        """The same with the GTIDs before it, and whether these are all that was before it.

        MySQL counts among them what was in binlogs of another name; MariaDB does not know that.
        """
        with self._session(patient=True) as session:
            file = self._files(session)[0].name
            # Asked afterwards: what is purged between the two is too much, and not too little.
            gtid = session.gtids_before(file)
            position = BinlogPosition(file, FIRST_OFFSET, gtid, BinlogOrigin(session.identity()))
            return position, session.all_have_gtids()

    def identity(self) -> str:
        """Which server it is, see `BinlogOrigin.server`. Raises TransientError."""
        with self._session() as session:
            return session.identity()

    def folds_names(self) -> bool:
        """Whether it keeps names of tables in lower case, and its binlog has them so.

        Statements stand there as they were written. Raises TransientError.
        """
        with self._session() as session:
            return session.folds_names()

    def is_table(self, schema: str, table: str) -> bool | None:
        """Whether a name is a table's now; False if a sequence's, None if the account sees none.

        Raises TransientError.
        """
        with self._session() as session:
            row = session.row(
                "SELECT TABLE_TYPE FROM information_schema.TABLES"
                " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
                schema,
                table,
            )
            return None if row is None else str(row[0]) != "SEQUENCE"

    def time_digits(self, schema: str, table: str) -> dict[str, str]:
        """What is known of a table's times, see `setl.codec.binlog.tables.old_times.TimeDigits`.

        Raises TransientError.
        """
        with self._session() as session:
            rows = session.rows(
                "SELECT COLUMN_NAME, COLUMN_TYPE, DATETIME_PRECISION FROM"
                " information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
                " AND DATETIME_PRECISION IS NOT NULL",
                schema,
                table,
            )
        return {
            str(name): str(digits)
            if OLD_FORMAT in str(type_)
            else (UNKNOWN if digits else LIKELY_NONE)
            for name, type_, digits in rows
        }

    def versions(self, schema: str, table: str) -> tuple[str, str] | None:
        """The columns of a versioned table, see `setl.codec.binlog.rows.versioned.Versions`.

        Raises TransientError.
        """
        with self._session() as session:
            row = session.row(
                "SELECT MAX(IF(c.GENERATION_EXPRESSION = 'ROW START', c.COLUMN_NAME, NULL)),"
                " MAX(IF(c.GENERATION_EXPRESSION = 'ROW END', c.COLUMN_NAME, NULL)), COUNT(*)"
                " FROM information_schema.TABLES t JOIN information_schema.COLUMNS c"
                " USING (TABLE_SCHEMA, TABLE_NAME) WHERE t.TABLE_TYPE = 'SYSTEM VERSIONED'"
                " AND TABLE_SCHEMA = %s AND TABLE_NAME = %s",
                schema,
                table,
            )
        if row is None or not row[2]:
            return None
        return str(row[0] or "row_start"), str(row[1] or "row_end")

    def generated(self, schema: str, table: str) -> list[str]:
        """The generated columns of a table (`setl.codec.binlog.rows.unlogged_columns.Generated`).

        Raises TransientError.
        """
        with self._session() as session:
            rows = session.rows(
                "SELECT COLUMN_NAME FROM information_schema.COLUMNS"
                " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND EXTRA LIKE '%% GENERATED%%'",
                schema,
                table,
            )
        return [str(name) for (name,) in rows]

    def retention(self) -> tuple[float | None, float]:
        """Seconds for which files are kept, None for ever; and the server's time since 1970 UTC.

        Raises:
            TransientError: the server cannot be reached.
        """
        with self._session() as session:
            variables = {str(name): str(value) for name, value in session.rows(RETENTION_VARIABLES)}
            retention = retention_of(variables, session.version, session.rows)
            row = session.row("SELECT UNIX_TIMESTAMP(NOW(6))")
            return retention.seconds, float(row[0]) if row else 0.0

    def check(self, position: BinlogPosition) -> str:
        """See that the server still has the stream from a position on.

        Returns:
            Which server it is.

        Raises:
            PositionLostError: it has not; says what it has, and the hints.
            ConfigurationError: the server writes no binlog, or the account may not ask.
            TransientError: the server cannot be reached.
        """
        with self._session() as session:
            return self._check(session, position)

    def for_stream(self, position: BinlogPosition) -> StreamServer:
        """The same, and what else a stream from there needs to know, on one connection."""
        with self._session() as session:
            session.refuse_nameless()
            return StreamServer(self._check(session, position), session.folds_names())

    def examine(self, position: BinlogPosition) -> PositionReport:
        """Compare what a position says of its position with what the server has there.

        MariaDB tells the GTIDs of a position, and they have to be the same. MySQL does not; there
        the server must have executed them.

        Raises:
            ConfigurationError: the server writes no binlog, or the account may not ask.
            TransientError: the server cannot be reached, or takes too long to read the file.
        """
        with self._session(patient=True) as session:
            server = session.identity()
            files = self._files(session)
            absence = _absence(position, files)
            if absence or not position.gtid:
                removed = _may_be_removed(position.file, files)
                return PositionReport(server, absence, removed=removed)
            if not session.mariadb:
                missing = session.missing(position.gtid)
                return PositionReport(
                    server, disagreement=missing and f"the server has not executed {missing}"
                )
            found = session.gtid_at(position.file, position.offset)
            if found is None:
                return PositionReport(server, disagreement="no event begins there")
            if not same_gtids(found, position.gtid):
                what = f"GTID {found or 'nothing'} ends there, and not {position.gtid}"
                return PositionReport(server, disagreement=what)
            return PositionReport(server, proved=True)

    def missing(self, gtid: str) -> str:
        """Those of some GTIDs that are not in this server's binlogs, "" if all are.

        Purged binlogs count: what was executed and then purged is not missing.

        Raises:
            ConfigurationError: `gtid` is not what this server calls GTIDs.
            TransientError: the server cannot be reached, or commits hang there that may be theirs.
        """
        with self._session() as session:
            return session.missing(gtid)

    def gtid_at(self, position: BinlogPosition) -> str | None:
        """GTIDs executed up to a position, "" where no event begins.

        None if the server cannot tell.

        MySQL cannot. Raises TransientError.
        """
        with self._session(patient=True) as session:
            if not session.mariadb:
                return None
            return session.gtid_at(position.file, position.offset) or ""

    def at(self, file: str, offset: int) -> BinlogPosition:
        """A configured position, checked.

        Raises:
            PositionLostError: the position does not exist.
            ConfigurationError: the server writes no binlog, or the account may not ask.
            TransientError: the server cannot be reached.
        """
        position = BinlogPosition(file, offset)
        return replace(position, origin=BinlogOrigin(self.check(position)))

    def lost(self, message: str, position: BinlogPosition) -> PositionLostError:
        """The final error that a position is gone (I8)."""
        return PositionLostError(message, hint=_HINTS, server=self._endpoint, position=position)

    def _check(self, session: ServerSession, position: BinlogPosition) -> str:
        what = _absence(position, self._files(session))
        if what:
            raise self.lost(f"the source has nothing at {position}: {what}", position)
        return session.identity()

    def _files(self, session: ServerSession) -> list[BinlogFile]:
        rows = session.of_binlog("SHOW BINARY LOGS")
        if not rows:
            raise self._no_binlog()
        return [_file(*row) for row in rows]

    def _no_binlog(self) -> ConfigurationError:
        return ConfigurationError(
            "the source writes no binlog",
            hint="Start the server with --log-bin and --binlog-format=ROW",
            server=self._endpoint,
        )

    @contextmanager
    def _session(self, *, patient: bool = False) -> Generator[ServerSession]:
        """A connection; a patient one lets the server read through a whole file."""
        endpoint = self._endpoint
        if patient:
            endpoint = replace(endpoint, read_timeout=max(endpoint.read_timeout, _SCAN))
        connection = connect(endpoint)
        try:
            with translating(self._endpoint):
                yield ServerSession(connection, self._endpoint)
        finally:
            connection.close()


def _file(name: object, size: Any, encrypted: object = "No", *_: object) -> BinlogFile:
    """A line of SHOW BINARY LOGS; MariaDB says nothing of encryption, and counts as it numbers."""
    return BinlogFile(str(name), int(size) - (_ENCRYPTION_HEADER if encrypted == "Yes" else 0))


def _absence(position: BinlogPosition, files: list[BinlogFile]) -> str:
    """Why there is nothing at a position, in words; "" if there is."""
    file = position.file
    size = next((retention.size for retention in files if retention.name == file), None)
    if size is not None:
        if position.offset <= size:
            return ""
        return f"{file} ends at {size}, so the binlogs were reset or lost their end"
    return _why_missing(file, files)


def _may_be_removed(file: str, files: list[BinlogFile]) -> bool:
    """Whether a file was before the oldest one, or has another name than they have."""
    try:
        number, oldest = binlog_file_number(file), binlog_file_number(files[0].name)
    except ValueError:
        return False
    return number < oldest or file.rpartition(".")[0] != files[0].name.rpartition(".")[0]


def _why_missing(file: str, files: list[BinlogFile]) -> str:
    retention = f"it keeps {files[0].name} to {files[-1].name}"
    try:
        number, oldest, newest = (
            binlog_file_number(name) for name in (file, files[0].name, files[-1].name)
        )
    except ValueError:
        return f"{file} is not the name of a binlog; {retention}"
    if file.rpartition(".")[0] != files[0].name.rpartition(".")[0]:
        return f"its binlogs have another name; {retention}"
    if number < oldest:
        return f"{file} was purged; {retention}"
    if number > newest:
        return f"the binlogs were reset, or this is another server; {retention}"
    return f"{file} was removed; {retention}"
