"""Finds where a transaction ends, for whoever wants to go on behind it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from setl.model.position import BinlogPosition
from setl.systems.mysql.binlog.server import BinlogServer
from setl.systems.mysql.binlog.session import FIRST_OFFSET
from setl.systems.mysql.binlog.unanswered import refuse_unanswered
from setl.systems.mysql.connection import MysqlEndpoint, connect, translating

_BEGINS = re.compile(r"(Anonymous_)?Gtid(_tagged)?", re.IGNORECASE)
_PAGE = 500  # events that are asked for at a time


def next_transaction(endpoint: MysqlEndpoint, position: BinlogPosition) -> BinlogPosition:
    """Where the first transaction behind a position in another one begins, or will begin.

    Args:
        endpoint: the server.
        position: the beginning of an event, in a file that it keeps.

    Raises:
        SetlError: the server does not answer.
    """
    files = [file.name for file in BinlogServer(endpoint).files()]
    later = files[files.index(position.file) + 1 :]
    offset = position.offset
    connection = connect(endpoint)
    try:
        with translating(endpoint), connection.cursor() as cursor:
            while True:
                refuse_unanswered(connection, endpoint)
                cursor.execute(
                    "SHOW BINLOG EVENTS IN %s FROM %s LIMIT %s", (position.file, offset, _PAGE)
                )
                events: Sequence[tuple[Any, ...]] = cursor.fetchall()
                for _, begin, kind, _, end, _ in events:
                    if _BEGINS.fullmatch(str(kind)):
                        return BinlogPosition(position.file, int(begin))
                    offset = int(end)
                if len(events) < _PAGE:
                    if later:
                        return BinlogPosition(later[0], FIRST_OFFSET)
                    return BinlogPosition(position.file, offset)
    finally:
        connection.close()
