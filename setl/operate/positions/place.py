"""Finding a place in a source's stream that a person has named."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, cast

from pydantic import ValidationError
from pymysql.err import MySQLError

from setl.channel.file import (
    BinlogStart,
    DtsSource,
    GtidStart,
    MysqlSource,
    OffsetStart,
    Pipeline,
    TimestampStart,
)
from setl.clock import SystemClock
from setl.errors import ConfigurationError, PositionLostError
from setl.model.position import BinlogPosition, Position
from setl.run.ends import source_of
from setl.select.identity import replica_id
from setl.systems.mysql.binlog.search import BinlogSearch
from setl.systems.mysql.binlog.server import FIRST_OFFSET, BinlogServer
from setl.systems.mysql.binlog.source import MysqlBinlogSource
from setl.systems.mysql.binlog.stream import StreamLimits
from setl.systems.mysql.connection import MysqlEndpoint, connect
from setl.systems.mysql.endpoint import mysql_endpoint

_FILE_OFFSET = re.compile(r"(?P<file>[^\s:]+\.\d+):(?P<offset>\d+)")
# Of MariaDB, or of MySQL, where a tag may stand in front of numbers.
_GTIDS = re.compile(r"[0-9a-fA-F-]+(\s*:\s*[\w-]+)*(\s*,\s*[0-9a-fA-F-]+(\s*:\s*[\w-]+)*)*")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")

# Events that stand inside a transaction, as SHOW BINLOG EVENTS names them. What begins with
# one of them cannot be read from there: its table maps and its mark stand before it (I7).
_INSIDE = re.compile(
    r"Table_map|(Write|Update|Delete)_rows.*|Xid|Annotate_rows|Rows_query|Intvar|Rand|User.var"
    r"|Partial_update_rows.*|XA_prepare|Transaction_payload"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a stream, as a person names it.

    Attributes:
        start: in the words of the channel file's `start`; None if it is a time in a binlog.
        time: seconds since 1970 UTC, for a binlog.
    """

    start: Literal["latest", "earliest"] | BinlogStart | GtidStart | OffsetStart | TimestampStart
    time: float | None = None


def parse_place(text: str, source: MysqlSource | DtsSource) -> Place:
    """Understand a place: latest, earliest, FILE:OFFSET, GTIDs, a Kafka offset, or a time.

    Args:
        text: what was written. A time is ISO 8601 with hours and minutes, local unless it
            names a zone.
        source: which of them it can be.

    Raises:
        ConfigurationError: it is none of those that the source takes.
    """
    text = text.strip()
    if text in ("latest", "earliest"):
        return Place(text)
    try:
        if isinstance(source, DtsSource):
            return _kafka_place(text)
        found = _FILE_OFFSET.fullmatch(text)
        if found:
            return Place(BinlogStart(file=found["file"], offset=int(found["offset"])))
        if _TIME.fullmatch(text):
            return Place("earliest", time=_seconds(text))
        if _GTIDS.fullmatch(text) and "-" in text:
            return Place(GtidStart(gtid=text))
    except (ValidationError, ValueError, OverflowError) as error:
        raise ConfigurationError(f"not a place in the source: {text!r}: {error}") from error
    raise ConfigurationError(
        f"not a place in the source: {text!r}",
        hint="Write latest, earliest, FILE:OFFSET, GTIDs, or a time such as 2026-11-21T22:00",
    )


def _kafka_place(text: str) -> Place:
    if text.isdigit():
        return Place(OffsetStart(offset=int(text)))
    if _TIME.fullmatch(text):
        return Place(TimestampStart(timestamp=int(_seconds(text))))
    raise ConfigurationError(
        f"not a place in the source: {text!r}",
        hint="Write latest, earliest, an offset, or a time such as 2026-11-21T22:00",
    )


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).astimezone().timestamp()


def find_place(pipeline: Pipeline, channel: str, nid: str, place: Place) -> Position:
    """Where a place is, at the source as it is now: a boundary between two transactions.

    A time in a binlog is the beginning of the file that was being written then, since files
    are all that is dated cheaply; what was committed in it before that time is read as well.

    Raises:
        PositionLostError: the place does not exist; says what does.
        ConfigurationError: the place is inside a transaction, or the source refuses the account.
        TransientError: the source cannot be reached.
    """
    config = pipeline.source
    if isinstance(config, MysqlSource):
        server_id = config.server_id or replica_id(channel, pipeline.name, nid)
        return find_binlog_place(config, server_id, place)
    asked = config.model_copy(update={"start": place.start})
    source = source_of(pipeline.model_copy(update={"source": asked}), channel, nid)
    try:
        return source.initial()
    finally:
        source.close()


def find_binlog_place(config: MysqlSource, server_id: int, place: Place) -> BinlogPosition:
    """`find_place` in a server's binlog.

    Args:
        config: the server.
        server_id: as whom to read its binlog.
        place: what to find.
    """
    if place.time is not None:
        return _binlog_at_time(mysql_endpoint(config), place.time)
    if isinstance(place.start, BinlogStart):
        _check_boundary(config, place.start)
    asked = config.model_copy(update={"start": place.start})
    found = MysqlBinlogSource(mysql_endpoint(config), server_id, asked.start).initial()
    return cast("BinlogPosition", found)


def _check_boundary(config: MysqlSource, start: BinlogStart) -> None:
    """See that no event is cut, and no transaction."""
    endpoint = mysql_endpoint(config)
    BinlogServer(endpoint).check(BinlogPosition(start.file, start.offset))  # the file, its size
    kind = _event_at(endpoint, start)
    if kind is None:
        return
    what = f"the place {start.file}:{start.offset} is "
    if not kind:
        raise ConfigurationError(
            f"{what}not the beginning of an event",
            hint="SHOW BINLOG EVENTS names those that are; 4 is the beginning of the file",
            server=endpoint,
        )
    if _INSIDE.fullmatch(kind):
        raise ConfigurationError(
            f"{what}inside a transaction: a {kind} event begins there",
            hint="Take the place of the Gtid event that the transaction begins with",
            server=endpoint,
        )


def _event_at(endpoint: MysqlEndpoint, start: BinlogStart) -> str | None:
    """Kind of the event at a place, "" if none begins there; None if that cannot be told."""
    size = next((f.size for f in BinlogServer(endpoint).files() if f.name == start.file), None)
    if start.offset in (FIRST_OFFSET, size):
        return None  # the beginning of a file, and the end of what is written, are always right
    connection = connect(endpoint)
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW BINLOG EVENTS IN %s FROM %s LIMIT 1", (start.file, start.offset))
            # Log_name, Pos, Event_type, Server_id, End_log_pos, Info
            row: tuple[Any, ...] | None = cursor.fetchone()
            return str(row[2]) if row and int(row[1]) == start.offset else ""
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
