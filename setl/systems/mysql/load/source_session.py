"""What the session at the source may have been that wrote a row, and writing under the like of it.

A row event says nothing of the session that wrote its row. Only what a server computes from other
columns depends on it: generated columns and CHECKs. Two settings matter to most of them, the time
zone and whether the session was strict. A zone is tried as its distance to UTC, which every server
knows; names of zones need tables that many servers lack.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

import pymysql
from pymysql.connections import Connection

from setl.model.change import Row
from setl.systems.mysql.connection import error_number
from setl.systems.mysql.load.watch import lenient

_HOUR: Final = 60
_UNKNOWN_ZONE: Final = 1298
# Minutes east of UTC that clocks have been set to since 1970, the whole hours first:
# https://data.iana.org/time-zones/tz-link.html
_OFFSETS: Final = (
    *(sign * hours * _HOUR for hours in range(1, 13) for sign in (1, -1)),
    13 * _HOUR, 14 * _HOUR,
    330, 570, 210, 270, 345, 390, 630, 525, 765, 825, -210, -150, -570,
)  # fmt: skip
_ZERO_DATE: Final = "0000"


class UnknownZoneError(Exception):
    """The server does not take a time zone."""


@dataclass(frozen=True, slots=True)
class SourceSession:
    """Settings of a session.

    Attributes:
        offset: minutes of its time zone east of UTC.
        strict: whether it refuses values that do not fit into a generated column.
    """

    offset: int = 0
    strict: bool = True

    def others(self, *, lenient: bool) -> Iterator[SourceSession]:
        """What else to try, the likeliest first.

        Args:
            lenient: whether sessions that are not strict are among them.
        """
        if lenient and self.strict:
            yield replace(self, strict=False)
        offsets = [n for n in (0, *_OFFSETS) if n != self.offset]
        yield from (SourceSession(n) for n in offsets)
        if lenient:
            yield from (SourceSession(n, strict=False) for n in offsets)

    def shifted(self, rows: Sequence[Row], moments: Sequence[int]) -> Sequence[Row]:
        """Rows with the values of TIMESTAMP columns as this session writes and reads them.

        Args:
            rows: with moments in UTC, ``YYYY-MM-DD hh:mm:ss.ffffff``.
            moments: their indexes in a row.
        """
        if not (self.offset and moments):
            return rows
        return [
            tuple(
                _shifted(value, self.offset) if i in moments else value
                for i, value in enumerate(row)
            )
            for row in rows
        ]


UTC: Final = SourceSession()


@cache
def _distance(minutes: int) -> timedelta:
    return timedelta(minutes=minutes)


def _shifted(value: Any, minutes: int) -> Any:
    # Zero and invalid dates are not moved by servers either.
    if not isinstance(value, str) or value.startswith(_ZERO_DATE):
        return value
    try:
        moved = datetime.fromisoformat(value) + _distance(minutes)
    except (ValueError, OverflowError):
        return value
    return moved.isoformat(" ", "microseconds")


@contextmanager
def session_like(connection: Connection[Any], session: SourceSession) -> Generator[None]:
    """The connection's session with these settings, and as it was afterwards.

    Raises:
        UnknownZoneError: the server does not go that far from UTC.
        pymysql.MySQLError: any other error of the server.
    """
    if session == UTC:
        yield
        return
    sign, minutes = "+" if session.offset >= 0 else "-", abs(session.offset)
    zone = f"{sign}{minutes // _HOUR:02}:{minutes % _HOUR:02}"
    with ExitStack() as stack, connection.cursor() as cursor:
        try:
            cursor.execute("SET SESSION time_zone = %s", (zone,))
        except pymysql.MySQLError as error:
            if error_number(error) == _UNKNOWN_ZONE:
                raise UnknownZoneError(zone) from error
            raise
        try:
            if not session.strict:
                stack.enter_context(lenient(connection))
            yield
        finally:
            # After an error that ended the connection there is nothing to set back.
            if connection.open:
                stack.close()
                cursor.execute("SET SESSION time_zone = '+00:00'")
