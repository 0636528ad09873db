"""Events that cannot be replicated, and which setting of the source makes it write others."""

from __future__ import annotations

from typing import Final

from setl.codec.binlog.event import EventType

_COMPRESSED: Final = (
    "compressed events",
    "SET GLOBAL log_bin_compress=OFF on the source, then move the position on",
)
_OLD_ROWS: Final = ("rows in the format of MySQL 5.1.5", "Upgrade the source")

REFUSED: Final[dict[int, tuple[str, str]]] = {
    EventType.EXECUTE_LOAD_QUERY: (
        "LOAD DATA as a statement",
        "SET GLOBAL binlog_format='ROW' on the source, then load the table again",
    ),
    EventType.OLD_WRITE_ROWS: _OLD_ROWS,
    EventType.OLD_UPDATE_ROWS: _OLD_ROWS,
    EventType.OLD_DELETE_ROWS: _OLD_ROWS,
    EventType.INCIDENT: (
        "an incident: the source says that it lost changes",
        "Load the tables again from a new position",
    ),
    EventType.PARTIAL_UPDATE_ROWS: (
        "partial updates of JSON values",
        "SET GLOBAL binlog_row_value_options='' on the source, then move the position on",
    ),
    EventType.TRANSACTION_PAYLOAD: (
        "compressed transactions",
        "SET GLOBAL binlog_transaction_compression=OFF on the source, then move the position on",
    ),
    EventType.GTID_TAGGED: (
        "GTIDs with tags",
        "Use GTID_NEXT=AUTOMATIC without a tag on the source, then move the position on",
    ),
    EventType.MARIADB_QUERY_COMPRESSED: _COMPRESSED,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1: _COMPRESSED,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED_V1: _COMPRESSED,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED_V1: _COMPRESSED,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED: _COMPRESSED,
    EventType.MARIADB_UPDATE_ROWS_COMPRESSED: _COMPRESSED,
    EventType.MARIADB_DELETE_ROWS_COMPRESSED: _COMPRESSED,
}
