"""Who wrote a transaction, and what a statement's session says of its text."""

import struct

import pytest

from setl.codec.binlog.statements.query import parse_session
from setl.codec.binlog.transactions.author import NOBODY, Author, author_of
from setl.codec.sql.statement import tables_of
from setl.errors import FatalError
from setl.extract.ddl import refuse_temporary
from setl.model.entry import EntryKind
from setl.model.session import StatementSession
from tests.unit.codec.binlog_events import EventWriter, entries_of, mysql_transaction, one_row


def test_a_begin_reports_who_wrote_its_transaction():
    writer = EventWriter()
    (begin, *_), _ = entries_of([*writer.opening(), *mysql_transaction(writer, 5, one_row)])
    assert author_of(begin.payload) == Author(server_id=1, thread_id=7)


def test_mariadb_does_not_tell_the_connection():
    writer = EventWriter(mariadb=True)
    events = [*writer.opening(), writer.mariadb_gtid(5, server=3), *one_row(writer), writer.xid()]
    (begin, *_), _ = entries_of(events)
    assert author_of(begin.payload) == Author(server_id=3)


def test_what_does_not_begin_a_transaction_has_no_author():
    assert author_of(b"") == NOBODY


def query_event(status, text=b"TRUNCATE t", *, flags=0, error=0, writer=None):
    body = struct.pack("<IIBHH", 7, 0, 4, error, len(status)) + status + b"shop\0" + text
    return (writer or EventWriter(checksum=False)).event(2, body, flags=flags)


# As MySQL 9.7 and MariaDB 10.11 write them, in one order each.
STATUS = (
    b"\0" + struct.pack("<I", 1 << 26 | 1 << 27) + b"\1" + struct.pack("<Q", 1 << 20 | 4)
    + b"\6\3std" + b"\3" + b"\3\0\2\0" + b"\4" + struct.pack("<HHH", 45, 47, 8) + b"\5\6+02:00"
    + b"\7\4\0" + b"\x0b\1u\2h1"
)  # fmt: skip


MYSQL_STATUS = (
    STATUS + b"\x08\x09\0" + b"\x0c\2a\0bc\0" + b"\x0d\x57\x3c\4" + b"\x10\1" + b"\x11" + b"\1" * 8
)


MYSQL_STATUS += b"\x12\x2d\0" + b"\x13\0" + b"\x14\0"


def test_the_session_of_a_statement():
    session = parse_session(query_event(MYSQL_STATUS), mariadb=False)
    assert session == StatementSession(
        "shop",
        1 << 20 | 4,
        foreign_keys=False,
        time_zone="+02:00",
        at=1_700_000_000_277_591,
        mariadb=False,
        unique_checks=False,
        explicit_timestamps=True,
        increment=3,
        offset=2,
        collation=47,
        utf8mb4=45,
        month_names=4,
        server_collation=8,
        committed=True,
        database_collation=9,
        thread=7,
    )
    assert session.has_mode("NO_BACKSLASH_ESCAPES")
    assert session.has_mode("ANSI_QUOTES")
    assert not session.has_mode("NO_ZERO_DATE")


def test_the_session_of_a_statement_of_mariadb():
    status = STATUS + b"\x80\x58\x1c\x0c" + b"\x81" + b"\1" * 8 + b"\x82\4" + b"\1" * 8
    status += b"\x83\1" + struct.pack("<HH", 45, 46)
    session = parse_session(query_event(status, flags=4, error=1005), mariadb=True)
    assert (session.at, session.collations) == (1_700_000_000_793_688, ((45, 46),))
    assert (session.mariadb, session.explicit_timestamps) == (True, False)
    assert (session.error, session.temporary) == (1005, True)
    assert parse_session(query_event(b"\0" + struct.pack("<I", 1 << 24)), mariadb=True)[7]


def test_a_variable_that_is_not_known_ends_the_list():
    session = parse_session(query_event(STATUS + b"\xf0\1\2\3"), mariadb=False)
    assert (session.time_zone, session.increment) == ("+02:00", 3)


@pytest.mark.parametrize(
    "text", [b"TRUNCATE t", b"ALTER TABLE t ADD a INT", b"CREATE INDEX i ON t(a)"]
)
def test_ddl_of_a_temporary_table_is_not_taken_for_a_lasting_ones(text):
    def ddl(text, status=STATUS):
        writer = EventWriter()
        event = query_event(status, text, flags=4, writer=writer)
        (entry,) = entries_of([*writer.opening(), event])[0]
        assert entry.kind is EntryKind.DDL
        return entry

    with pytest.raises(FatalError, match="temporary"):
        refuse_temporary(ddl(text))
    # InnoDB of a MySQL takes no part in what is done to temporary tables.
    refuse_temporary(ddl(text, STATUS + b"\x11" + b"\1" * 8))
    # Servers flag DROP and CREATE OR REPLACE, too, which say what they mean.
    refuse_temporary(ddl(b"DROP TABLE `t`"))


def test_names_are_read_as_the_session_quotes():
    writer = EventWriter()
    status = b"\1" + struct.pack("<Q", 1 << 20)  # NO_BACKSLASH_ESCAPES
    text = b"ALTER TABLE a COMMENT = 'C:\\', RENAME TO b"
    entry = entries_of([*writer.opening(), query_event(status, text, writer=writer)])[0][-1]
    assert tables_of(entry) == (("shop", "a"), ("shop", "b"))
