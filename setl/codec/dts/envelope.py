"""All fields of a DTS record except its row, for people who look at records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, cast

from setl.codec.dts.header import MOCK_BYTES
from setl.codec.dts.wire import MALFORMED, read_whole
from setl.errors import DataError

FILLER: Final = "FILLER"
"""Stands as the operation of what DTS puts in place of records that a subscription filters out."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A record without its images.

    Attributes:
        operation: as the schema names it, or `FILLER`; then nothing else is known.
        version: of the record's format.
        id: the record's number; not unique.
        timestamp: commit time at the source, seconds since 1970 UTC.
        position: place in the source's log, ``offset@file number`` for MySQL.
        safe_position: from where the source can be read to get it again.
        transaction_id: the source's name for the transaction, "0" for MySQL.
        source_type: kind of database, such as ``MySQL``.
        source_version: its version.
        object_name: as written, "" if none: see `setl.codec.dts.header.split_name`.
        tags: name → value.
        process_timestamps: times at which stages of the service handled it.
        born: ``bornTimestamp``; None in records of 14 fields.
        statement: the text of DDL, else "".
        columns: name and MySQL type number of each column.
    """

    operation: str
    version: int = 0
    id: int = 0
    timestamp: int = 0
    position: str = ""
    safe_position: str = ""
    transaction_id: str = ""
    source_type: str = ""
    source_version: str = ""
    object_name: str = ""
    tags: dict[str, str] = field(default_factory=dict[str, str])
    process_timestamps: tuple[int, ...] = ()
    born: int | None = None
    statement: str = ""
    columns: tuple[tuple[str, int], ...] = ()


def read_envelope(value: bytes) -> Envelope:
    """Read a Kafka value, all of it but the images.

    Raises:
        DataError: the bytes are no DTS record.
    """
    try:
        record, born, left = read_whole(value)
    except MALFORMED as error:
        if len(value) <= MOCK_BYTES:
            return Envelope(FILLER)
        reason = str(error) or type(error).__name__
        raise DataError(f"not a DTS record: {reason}") from error
    if left and len(value) <= MOCK_BYTES:
        return Envelope(FILLER)
    # More fields than are known here may follow in longer ones; sources read those as well.
    return _envelope(record, born)


def _envelope(record: dict[str, Any], born: int | None) -> Envelope:
    after, fields = record["afterImages"], record["fields"]
    columns = cast("list[dict[str, Any]]", fields) if isinstance(fields, list) else []
    return Envelope(
        operation=record["operation"],
        version=record["version"],
        id=record["id"],
        timestamp=record["sourceTimestamp"],
        position=record["sourcePosition"],
        safe_position=record["safeSourcePosition"],
        transaction_id=record["sourceTxid"],
        source_type=record["source"]["sourceType"],
        source_version=record["source"]["version"],
        object_name=record["objectName"] or "",
        tags=record["tags"],
        process_timestamps=tuple(record["processTimestamps"] or ()),
        born=born,
        statement=after if isinstance(after, str) else "",
        columns=tuple([(column["name"], column["dataTypeNumber"]) for column in columns]),
    )
