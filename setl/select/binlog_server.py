"""Questions to a MySQL or MariaDB server about its binlogs, over short connections."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from pymysql.connections import Connection
from pymysql.err import OperationalError

from setl.errors import ConfigurationError, PositionLostError
from setl.model.position import BinlogPosition, binlog_file_number
from setl.mysql.connection import MysqlEndpoint, connect, translating

_LOG = logging.getLogger(__name__)

FIRST_OFFSET = 4  # the four bytes before it mark the file as a binlog

_WAYS_OUT = (
    "Load the tables again and start at `start: latest`, or start at `start: earliest` and "
    "verify afterwards; keep binlogs longer on the source"
)


class Progress(Enum):
    """How far a server's binlog is, compared with a set of GTIDs."""

    BEHIND = "behind"  # some of them it has not executed
    THERE = "there"  # it has executed just them
    BEYOND = "beyond"  # it has executed them and more


@dataclass(frozen=True, slots=True)
class BinlogFile:
    """One binlog file of a server.

    Attributes:
        name: its name.
        size: bytes in it; the newest one grows.
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

        Raises:
            ConfigurationError: the server writes none, or the account may not ask.
            TransientError: the server cannot be reached.
        """
        with self._session() as session:
            row = session.row(session.status_statement())
            if not row:
                raise self._no_binlog()
            file, offset = str(row[0]), int(row[1])
            if session.mariadb:
                return BinlogPosition(file, offset, session.gtid_at(file, offset))
            # File, Position, Binlog_Do_DB, Binlog_Ignore_DB, Executed_Gtid_Set
            return BinlogPosition(file, offset, str(row[4]).replace("\n", ""))

    def earliest(self) -> BinlogPosition:
        """The beginning of the oldest binlog that is kept. Raises what `files` raises."""
        return BinlogPosition(self.files()[0].name, FIRST_OFFSET)

    def check(self, position: BinlogPosition) -> None:
        """See that the server still has the stream from a position on.

        Raises:
            PositionLostError: it has not; says what it has, and the ways out.
            ConfigurationError: the server writes no binlog, or the account may not ask.
            TransientError: the server cannot be reached.
        """
        files = self.files()
        sizes = {file.name: file.size for file in files}
        size = sizes.get(position.file)
        if size is None:
            what = _absence(position.file, files)
        elif position.offset > size:
            what = f"{position.file} ends at {size}, so the binlogs were reset or lost their end"
        else:
            return
        raise self.lost(f"the source has nothing at {position}: {what}", position)

    def at(self, file: str, offset: int) -> BinlogPosition:
        """A configured place, checked, with its GTIDs where the server can tell them.

        Raises:
            PositionLostError: the place does not exist.
            ConfigurationError: the server writes no binlog, or the account may not ask.
            TransientError: the server cannot be reached.
        """
        self.check(BinlogPosition(file, offset))
        with self._session() as session:
            gtid = session.gtid_at(file, offset) if session.mariadb else ""
        return BinlogPosition(file, offset, gtid)

    def event_size(self, position: BinlogPosition) -> int:
        """Bytes of the event that begins at `position`; 0 if there is none, or it may not be known.

        Raises:
            TransientError: the server cannot be reached.
        """
        with self._session() as session:
            try:
                row = session.row(
                    "SHOW BINLOG EVENTS IN %s FROM %s LIMIT 1", position.file, position.offset
                )
            except OperationalError as error:
                _LOG.info("%s: cannot look at %s: %s", self._endpoint, position, error)
                return 0
            # Log_name, Pos, Event_type, Server_id, End_log_pos, Info
            return int(row[4]) - int(row[1]) if row else 0

    def progress(self, gtid: str) -> Progress:
        """How far the server's binlog is, compared with a set of GTIDs.

        Raises:
            ConfigurationError: `gtid` is not what this server calls GTIDs.
            TransientError: the server cannot be reached.
        """
        with self._session() as session:
            if session.mariadb:
                row = session.row("SELECT @@GLOBAL.gtid_binlog_pos")
                return mariadb_progress(str(row[0] or "") if row else "", gtid)
            row = session.row(
                "SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed),"
                " GTID_SUBSET(@@GLOBAL.gtid_executed, %s)",
                gtid,
                gtid,
            )
            has_all, has_no_more = row or (0, 0)
            if not has_all:
                return Progress.BEHIND
            return Progress.THERE if has_no_more else Progress.BEYOND

    def lost(self, message: str, position: BinlogPosition) -> PositionLostError:
        """The final error that a position is gone (I8)."""
        return PositionLostError(message, hint=_WAYS_OUT, server=self._endpoint, position=position)

    def _files(self, session: _Session) -> list[BinlogFile]:
        rows = session.rows("SHOW BINARY LOGS")
        if not rows:
            raise self._no_binlog()
        return [BinlogFile(str(row[0]), int(row[1])) for row in rows]

    def _no_binlog(self) -> ConfigurationError:
        return ConfigurationError(
            "the source writes no binlog",
            hint="Start the server with --log-bin and --binlog-format=ROW",
            server=self._endpoint,
        )

    @contextmanager
    def _session(self) -> Generator[_Session]:
        connection = connect(self._endpoint)
        try:
            with translating(self._endpoint):
                yield _Session(connection)
        finally:
            connection.close()


class _Session:
    """One connection, and which family of server is at its other end."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        row = self.row("SELECT VERSION()")
        version = str(row[0]) if row else ""
        self.mariadb = "mariadb" in version.lower()
        # 8.4.2-0ubuntu1, 10.11.6-MariaDB-log
        numbers = version.partition("-")[0].split(".")
        self._version = tuple(int(number) for number in numbers if number.isdigit())

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(statement, values or None)
            return list(cursor.fetchall())

    def row(self, statement: str, *values: object) -> tuple[Any, ...] | None:
        rows = self.rows(statement, *values)
        return rows[0] if rows else None

    def status_statement(self) -> str:
        # MySQL 8.2 has both names; 8.4 dropped the old one, MariaDB never had the new one.
        new_name = not self.mariadb and self._version >= (8, 2)
        return "SHOW BINARY LOG STATUS" if new_name else "SHOW MASTER STATUS"

    def gtid_at(self, file: str, offset: int) -> str:
        """MariaDB only. "" where it cannot tell, as for an offset inside an event."""
        row = self.row("SELECT BINLOG_GTID_POS(%s, %s)", file, offset)
        return str(row[0] or "") if row else ""


def _absence(file: str, files: list[BinlogFile]) -> str:
    """Why a file may be missing, in words."""
    kept = f"it keeps {files[0].name} to {files[-1].name}"
    try:
        number, oldest, newest = (
            binlog_file_number(name) for name in (file, files[0].name, files[-1].name)
        )
    except ValueError:
        return f"{file} is not the name of a binlog; {kept}"
    if file.rpartition(".")[0] != files[0].name.rpartition(".")[0]:
        return f"its binlogs have another name; {kept}"
    if number < oldest:
        return f"{file} was purged; {kept}"
    if number > newest:
        return f"the binlogs were reset, or this is another server; {kept}"
    return f"{file} was removed; {kept}"


def mariadb_progress(executed: str, gtid: str) -> Progress:
    """Compare two positions of MariaDB: the newest ``domain-server-sequence`` of each domain.

    Raises:
        ConfigurationError: `gtid` is no such position.
    """
    have, wanted = _newest(executed), _newest(gtid)
    if any(have.get(domain, -1) < number for domain, number in wanted.items()):
        return Progress.BEHIND
    return Progress.THERE if have == wanted else Progress.BEYOND


def _newest(text: str) -> dict[int, int]:
    try:
        return {
            int(domain): int(number)
            for domain, _, number in (gtid.split("-") for gtid in text.split(",") if gtid.strip())
        }
    except ValueError as error:
        raise ConfigurationError(
            f"not GTIDs of a MariaDB server: {text!r}",
            hint="They are written domain-server-sequence, such as 0-1-100, with commas between",
        ) from error
