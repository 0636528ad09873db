"""Translates the errors of a binlog stream; no other module does."""

from __future__ import annotations

import struct
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from mysql_event_stream import MesConnectionError, MesError, MesErrorCode

from setl.codec.binlog.refused import damaged
from setl.errors import (
    ConfigurationError,
    FatalError,
    LoginRefusedError,
    SetlError,
    TransientError,
)
from setl.model.position import BinlogPosition

_ENDS_IN_EVENT: Final = "truncated in the middle of event"
# Texts of error 1236, by which servers say that a position is not in their binlogs:
# https://mariadb.com/kb/en/mariadb-error-code-reference/ and rpl_binlog_sender.cc of MySQL.
_LOST: Final = (
    "could not find first log file",
    "could not find next log",
    "impossible position",
    "has been purged",
    "have been purged",
    "purged required binary logs",
    "not in the master's binlog",
    _ENDS_IN_EVENT,
)
# MySQL and MariaDB to 11.6; MariaDB from 11.7 on, as error 4052 whose text is cut off.
_SAME_ID: Final = ("same server_uuid/server_id", "slave with the same server_id")


# The server goes on writing behind the damage, at positions that it counts wrongly: only a new file
# is sure to be whole.
NEW_FILE: Final = (
    "Run FLUSH BINARY LOGS at the source, `setl stop` the channel, move on with `setl position"
    " reset PIPELINE --to latest`, start it, and load the tables again with `setl load PIPELINE"
    " --replace`"
)
_DAMAGED: Final = (
    "The source's binlog is damaged there, mostly since its disk was full; mysqlbinlog shows it,"
    f" and no replica can read on either. {NEW_FILE}"
)


class StreamRefusedError(FatalError):
    """The server does not send its binlog on, and what it says does not tell why."""


def is_lost(error: MesError | MesConnectionError) -> bool:
    """Whether the error says that the server no longer has the position."""
    text = str(error).lower()
    return error.code == MesErrorCode.GTID_PURGED or any(part in text for part in _LOST)


def ends_in_event(error: MesError | MesConnectionError) -> bool:
    """Whether the error says that the binlog's file ends inside an event."""
    return _ENDS_IN_EVENT in str(error).lower()


def unforeseen(error: Exception) -> FatalError:
    """What is told of an error that no client should raise: a defect, for people."""
    failure = FatalError(f"reading the binlog failed in an unforeseen way: {error!r}")
    failure.__cause__ = error
    return failure


@contextmanager
def translating_damage(event: bytes, position: BinlogPosition) -> Generator[None]:
    """Raises FatalError if what is done inside finds that an event makes no sense.

    Args:
        event: the event, with its header.
        position: behind it, as near as that is known.
    """
    try:
        yield
    except (struct.error, LookupError, ValueError, OSError) as error:
        raise damaged(event[4], str(error), position) from error


def _way_on(refusal: str) -> str:
    if "anonymous" in refusal:
        # A server with GTID_MODE=ON sends nothing that was written before it had GTIDs.
        return (
            "Run SET GLOBAL gtid_mode = ON_PERMISSIVE on the source and start the channel; set it"
            " to ON again when the pipeline has passed what was written without GTIDs"
        )
    return (
        "Fix at the source what it says; its own log says more. If this position cannot be read "
        "any"
        f" more, as when the disk was full: {NEW_FILE}"
    )


def translate(error: MesError | MesConnectionError, server_id: int) -> SetlError:
    """The kind of setl error that an error of the client is; not for lost positions."""
    text, code = str(error), error.code
    final: SetlError | None = None
    if any(part in text for part in _SAME_ID):
        final = FatalError(
            f"the source ended this connection, since another reader uses server id {server_id}",
            hint="Give each reader of this server a `server_id` of its own, or stop the other one",
        )
    elif code == MesErrorCode.AUTH or "error 1227" in text:
        kind = ConfigurationError if "error 1227" in text else LoginRefusedError
        final = kind(
            f"the source refuses the account: {text}",
            hint="It needs REPLICATION SLAVE; `setl check` names what is missing on the server",
        )
    elif code == MesErrorCode.VALIDATION and "Failed to query" not in text:
        final = ConfigurationError(
            f"the source cannot be replicated from: {text}",
            hint="`setl check` prints the settings to change on the server",
        )
    elif code in (MesErrorCode.NULL_ARG, MesErrorCode.INVALID_ARG):
        final = ConfigurationError(
            f"the position to start at is not understood: {text}",
            hint="Correct `start` in the channel file",
        )
    elif code in (MesErrorCode.PARSE, MesErrorCode.CHECKSUM, MesErrorCode.QUEUE_FULL):
        final = FatalError(
            f"an event of the binlog cannot be taken in: {text}",
            hint=_DAMAGED
            if code == MesErrorCode.CHECKSUM
            else "Check the binlog with mysqlbinlog on the source; then move the position past it"
            " with `setl position reset`, and compare with `setl verify`",
        )
    elif "error 1236" in text:
        refusal = f"the source refuses to send its binlog: {text}"
        final = StreamRefusedError(refusal, hint=_way_on(text))
    return final or TransientError(f"the connection to the source was lost: {text}")
