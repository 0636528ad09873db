"""Parses and finds positions in a binlog that a person has named."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from pymysql.err import MySQLError

from setl.channel.file import BinlogStart, GtidStart, MysqlSource
from setl.clock import SystemClock
from setl.errors import ConfigurationError, PositionLostError
from setl.model.position import BinlogPosition, Position
from setl.select.start_point import StartPoint, parse_start_point
from setl.systems.mysql.binlog.next_transaction import next_transaction
from setl.systems.mysql.binlog.search import BinlogSearch
from setl.systems.mysql.binlog.server import FIRST_OFFSET, BinlogFile, BinlogServer
from setl.systems.mysql.binlog.source import MysqlBinlogSource
from setl.systems.mysql.binlog.stream import StreamLimits
from setl.systems.mysql.binlog.unanswered import refuse_unanswered
from setl.systems.mysql.connection import MysqlEndpoint, connect
from setl.systems.mysql.endpoint import mysql_endpoint

_FILE_OFFSET = re.compile(r"(?P<file>[^\s:]+\.\d+):(?P<offset>\d+)")
# Of MariaDB, or of MySQL, where a tag may stand in front of numbers.
_GTIDS = re.compile(r"[0-9a-fA-F-]+(\s*:\s*[\w-]+)*(\s*,\s*[0-9a-fA-F-]+(\s*:\s*[\w-]+)*)*")

# Events that stand inside a transaction, as SHOW BINLOG EVENTS names them. What begins with
# one of them cannot be read from there: its table maps and its mark stand before it (I7).
_INSIDE = re.compile(
    r"Table_map|(Write|Update|Delete)_rows.*|Xid|Annotate_rows|Rows_query|Intvar|Rand|User.var"
    r"|Partial_update_rows.*|XA_prepare|Transaction_payload|Query"
)


def parse_binlog_start(text: str) -> StartPoint:
    """Understand FILE:OFFSET and GTIDs as positions, and what `parse_start_point` does.

    Raises as it.
    """
    return parse_start_point(
        text,
        own=_own_start,
        at_time=lambda seconds: StartPoint("earliest", time=seconds),
        forms="FILE:OFFSET, GTIDs",
    )


def _own_start(text: str) -> StartPoint | None:
    found = _FILE_OFFSET.fullmatch(text)
    if found:
        return StartPoint(BinlogStart(file=found["file"], offset=int(found["offset"])))
    return StartPoint(GtidStart(gtid=text)) if _GTIDS.fullmatch(text) and "-" in text else None


def find_binlog_position(
    config: MysqlSource, server_id: int, start_point: StartPoint
) -> BinlogPosition:
    """`find_position` in a server's binlog.

    Args:
        config: the server.
        server_id: as whom to read its binlog.
        start_point: what to find.
    """
    if start_point.time is not None:
        return _binlog_at_time(mysql_endpoint(config), start_point.time)
    if isinstance(start_point.start, BinlogStart):
        _check_boundary(config, start_point.start)
    asked = config.model_copy(update={"start": start_point.start})
    found = MysqlBinlogSource(mysql_endpoint(config), server_id, asked.start).initial()
    return cast("BinlogPosition", found)


def _check_boundary(config: MysqlSource, start: BinlogStart) -> None:
    """See that no event is cut, and no transaction."""
    endpoint = mysql_endpoint(config)
    position = BinlogPosition(start.file, start.offset)
    BinlogServer(endpoint).check(position)  # the file, its size
    kind = _event_at(endpoint, start)
    if kind is None:
        return
    what = f"the position {start.file}:{start.offset} is "
    if not kind:
        raise ConfigurationError(
            f"{what}not the beginning of an event",
            hint="SHOW BINLOG EVENTS names those that are; 4 is the beginning of the file",
            server=endpoint,
        )
    if _INSIDE.fullmatch(kind):
        raise ConfigurationError(
            f"{what}inside a transaction: a {kind} event begins there",
            hint=f"The next transaction begins at {next_transaction(endpoint, position)}; to take "
            f"all"
            " of this one, give the position of the Gtid event that it begins with",
            server=endpoint,
        )


def _event_at(endpoint: MysqlEndpoint, start: BinlogStart) -> str | None:
    """Kind of the event at a position, "" if none begins there; None if that is unknown."""
    size = next((f.size for f in BinlogServer(endpoint).files() if f.name == start.file), None)
    if start.offset in (FIRST_OFFSET, size):
        return None  # the beginning of a file, and the end of what is written, are always right
    connection = connect(endpoint)
    try:
        refuse_unanswered(connection, endpoint)
        with connection.cursor() as cursor:
            cursor.execute("SHOW BINLOG EVENTS IN %s FROM %s LIMIT 1", (start.file, start.offset))
            # Log_name, Pos, Event_type, Server_id, End_log_pos, Info
            row: tuple[Any, ...] | None = cursor.fetchone()
            if not row or int(row[1]) != start.offset:
                return ""
            # MySQL's BEGIN stands behind its Gtid event, and other readers note its position.
            begins = row[2] == "Query" and str(row[5]).startswith(("BEGIN", "XA START"))
            return "BEGIN" if begins else str(row[2])
    except MySQLError as error:
        # 1220: no event can be read there. Everything else (a missing privilege) says nothing.
        return "" if error.args and error.args[0] == 1220 else None
    finally:
        connection.close()


def _binlog_at_time(endpoint: MysqlEndpoint, time: float) -> BinlogPosition:
    limits, server = StreamLimits(), BinlogServer(endpoint)
    search = BinlogSearch(endpoint, limits, server, SystemClock())
    files = server.files()
    begun = 0
    for file in reversed(files):
        found = search.identified(BinlogPosition(file.name, FIRST_OFFSET))
        begun = found.origin.created if found.origin else 0
        if begun <= time:
            return found
    when = datetime.fromtimestamp(begun).astimezone().isoformat()
    raise PositionLostError(
        f"the oldest binlog, {files[0].name}, was begun at {when}, and nothing older is kept",
        hint="Load the tables again and start at latest, or take earliest and verify afterwards",
        server=endpoint,
    )


def binlog_distance(
    position: Position, latest: Position, files: Sequence[BinlogFile]
) -> int | None:
    """Bytes from a position to the end of a binlog; None if they are not of one.

    Args:
        position: where somebody stands.
        latest: the end of the stream.
        files: the server's binlog files, oldest first.
    """
    if not (isinstance(position, BinlogPosition) and isinstance(latest, BinlogPosition)):
        return None
    if position.origin and latest.origin and position.origin.server != latest.origin.server:
        return None  # names of files are alike on many servers
    names = [file.name for file in files]
    if position.file not in names or latest.file not in names:
        return None
    first, last = names.index(position.file), names.index(latest.file)
    # The stream may have moved on after its end was asked for.
    return max(0, sum(f.size for f in files[first:last]) + latest.offset - position.offset)
