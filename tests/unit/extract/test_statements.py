"""Row changes that were logged as statements: which pass, and what is said of the others."""

import pytest

from setl.errors import FatalError
from setl.extract.extractor import Extractor
from setl.extract.statements import Reach, SkippedStatements
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition
from setl.model.session import StatementSession
from tests.unit.extract.marked_streams import OWN, Stream, ToOneTarget, mark_row
from tests.unit.extract.test_extractor import ME

MODES = {"ansi": 1 << 2}


class Told:
    """Answers as it is told to; nothing else happens with tables it is not told of."""

    def __init__(self, **reaches):
        self.reaches = reaches
        self.asked = []
        self.forgotten = 0

    def of_writing(self, schema, table):
        self.asked.append(f"{schema}.{table}")
        return self.reaches.get(f"{schema}_{table}", Reach())

    def of_reading(self, schema, table):
        self.asked.append(f"read {schema}.{table}")
        return self.reaches.get(f"read_{schema}_{table}", Reach())

    def forget(self):
        self.forgotten += 1


def stream_of(*texts, schema="other", **session):
    stream = Stream()
    stream.begin()
    for text in texts:
        stream.add(
            EntryKind.STATEMENT,
            schema=schema,
            statement=text,
            session=StatementSession(schema, **session),
        )
    stream.commit()
    return stream


def extracted(stream, effects=None, accept=(), maps=lambda schema: schema == "shop"):
    statements = SkippedStatements(
        lambda schema, _: schema == "shop", accept.__contains__, effects or Told()
    )
    extractor = Extractor(ToOneTarget(), ME, stream.codec, statements=statements, maps=maps)
    return extractor.extract(stream.batch())


def refused(text, effects=None, accept=(), **session):
    with pytest.raises(FatalError) as caught:
        extracted(stream_of(text, **session), effects, accept)
    return str(caught.value)


def test_statements_of_tables_that_are_not_mapped_pass_and_are_counted_by_schema():
    reported = Told()
    stream = stream_of(
        "INSERT INTO t VALUES (1)",
        "UPDATE percona.checksums SET a = 1",
        "REPLACE INTO percona.checksums SELECT 1 FROM shop.orders",
    )
    stream.row(expected=True)
    found = extracted(stream, reported)
    assert found.counts.statements == {"other": 1, "percona": 2}
    assert [row.entry.payload for row in found.rows] == stream.expected
    assert reported.asked == [
        "other.t", "percona.checksums", "percona.checksums", "read shop.orders",
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), [
    ("INSERT INTO shop.orders VALUES (1)", "it writes shop.orders"),
    ("UPDATE t JOIN shop.orders SET a = 1", "it writes shop.orders"),
    ("INSERT INTO retl.retl_mark VALUES (1)", "it writes retl.retl_mark"),
    ("INSERT INTO t VALUES (f(1))", "it calls other.f"),
    ("SELECT shop.f(1)", "it calls shop.f"),
    ("CREATE TEMPORARY TABLE t SELECT f(1)", "it calls other.f"),
    ("CALL p()", "its tables is unknown"),
])  # fmt: skip
def test_what_may_touch_a_mapped_table_stops(text, reason):
    assert reason in refused(text)


def test_double_quotes_are_names_where_the_session_says_so():
    text = 'INSERT INTO "shop"."orders" VALUES ("a")'
    assert "it writes shop.orders" in refused(text, sql_mode=MODES["ansi"])
    assert "is unknown" in refused(text)


@pytest.mark.parametrize(("reaches", "reason"), [
    ({"other_t": Reach("has the trigger x")}, "other.t has the trigger x"),
    ({"other_t": Reach("is a view")}, "other.t is a view"),
    ({"other_t": Reach(tables=(("other", "u"), ("shop", "v")))}, "act on rows of shop.v"),
    ({"read_other_v": Reach("calls f")}, "other.v, which it reads, calls f"),
])  # fmt: skip
def test_what_the_source_says_of_a_table_counts(reaches, reason):
    text = "INSERT INTO t SELECT * FROM v"
    assert reason in refused(text, Told(**reaches))
    assert extracted(stream_of(text), Told(**reaches), ("statement@other.t",)).counts.statements


def test_who_accepts_a_tables_statements_has_them_passed_over_whatever_they_do():
    accept = ("statement@shop.orders", "statement@shop.f")
    for text in ("DELETE FROM shop.orders WHERE f(1)", "SELECT shop.f(2)"):
        assert extracted(stream_of(text), Told(), accept).counts.statements == {"shop": 1}
    # Of another table too: not.
    assert "it writes shop.items" in refused(
        "UPDATE shop.orders, shop.items SET a = 1", None, accept
    )
    assert "it calls shop.f" in refused("UPDATE t SET a = shop.f(1)", None, accept)


def test_nothing_is_asked_of_a_statement_that_stops_anyway():
    reported = Told()
    refused("INSERT INTO shop.orders SELECT * FROM t", reported)
    assert reported.asked == []


def test_the_error_shows_no_text_and_names_the_position_behind_the_transaction():
    def position(offset):
        return BinlogPosition("binlog.000007", offset, "")

    stream = stream_of("INSERT INTO shop.orders VALUES ('secret', 1)")
    stream.entries[:] = [e._replace(position=position(n)) for n, e in enumerate(stream.entries, 1)]
    with pytest.raises(FatalError) as caught:
        extracted(stream)
    said = str(caught.value)
    assert "secret" not in said
    assert "name statement@shop.orders under `accept`" in said
    assert "setl position reset PIPELINE --to binlog.000007:3" in said
    assert "setl load PIPELINE --replace" in said


def test_definitions_are_asked_for_again_behind_a_schema_change():
    reported = Told()
    stream = stream_of("INSERT INTO t VALUES (1)")
    stream.add(EntryKind.DDL, schema="other", statement="CREATE TRIGGER other.x BEFORE INSERT ON t")
    extracted(stream, reported)
    assert reported.forgotten == 1


def test_a_table_that_the_stream_has_seen_created_may_be_gone_by_now():
    def stream_behind(*texts):
        stream = Stream()
        session = StatementSession("other")
        for text in texts:
            stream.add(EntryKind.DDL, schema="other", statement=text, session=session)
        for text in ("INSERT INTO t SELECT 1", "UPDATE t SET a = 1"):
            stream.add(EntryKind.STATEMENT, schema="other", statement=text, session=session)
        return stream

    gone = Told(other_t=Reach("is not there any more"))
    for before in (("CREATE TABLE t (id INT)",), ("CREATE TABLE t (id INT)", "DROP TABLE u")):
        assert extracted(stream_behind(*before), gone).counts.statements == {"other": 2}
    for behind in (
        "CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = 1", "DROP TABLE t",
        "RENAME TABLE t TO u, v TO t", "CREATE TABLE u (id INT REFERENCES t (id))",
        "CREATE OR REPLACE TABLE t (id INT) ENGINE=MERGE UNION=(shop.orders)",
    ):  # fmt: skip
        with pytest.raises(FatalError, match="not there any more"):
            extracted(stream_behind("CREATE TABLE t (id INT)", behind), gone)
    with pytest.raises(FatalError, match="not there any more"):
        extracted(stream_behind("CREATE TABLE IF NOT EXISTS t (id INT)"), gone)
    filled = stream_of("CREATE TABLE t SELECT 1 AS a", "DELETE FROM t")
    assert extracted(filled, gone).counts.statements == {"other": 2}


MADE = "CREATE TEMPORARY TABLE m (id INT)"


@pytest.mark.parametrize(("before", "text", "reason"), [
    ((), "INSERT INTO v SELECT * FROM m", "other.v is gone"),
    ((MADE,), "INSERT INTO v SELECT * FROM m", "other.v is gone"),
    ((MADE,), "INSERT INTO t SELECT * FROM v JOIN m", "other.v, which it reads, is gone"),
    ((MADE, "DROP TEMPORARY TABLE IF EXISTS x, m"), "DELETE FROM m", "other.m is gone"),
    ((MADE,), "INSERT INTO m SELECT f(1)", "it calls other.f"),
    ((MADE.replace("m", "v"),), "INSERT INTO shop.v SELECT 1", "it writes shop.v"),
    ((MADE,), "INSERT INTO t SELECT * FROM m", ""),
    ((MADE,), "INSERT INTO m SELECT * FROM t", ""),
    (("CREATE TEMPORARY TABLE m SELECT * FROM t",), "DELETE FROM m", ""),
    (("CREATE TEMPORARY TABLE shop.orders (id INT)",), "DELETE FROM shop.orders", ""),
])  # fmt: skip
def test_a_temporary_table_is_one_that_the_session_has_created(before, text, reason):
    """What is not there any more may as well have been a view of mapped tables."""
    gone = Reach("is gone")
    reported = Told(other_v=gone, read_other_v=gone, other_m=gone, read_other_m=gone)
    used = {"temporary": True, "thread": 7}
    if reason:
        with pytest.raises(FatalError, match=reason):
            extracted(stream_of(*before, text, **used), reported)
        return
    assert sum(extracted(stream_of(*before, text, **used), reported).counts.statements.values()) > 0
    stream = stream_of(*before, **used)
    stream.begin()
    session = StatementSession("other", temporary=True, thread=8)
    stream.add(EntryKind.STATEMENT, schema="other", statement=text, session=session)
    with pytest.raises(FatalError):  # another session's
        extracted(stream, reported)


def test_temporary_tables_that_nobody_uses_count_for_nothing():
    for text in (
        MADE,
        "CREATE TEMPORARY TABLE m (a INT DEFAULT NEXTVAL(s))",
        "DROP TEMPORARY TABLE m",
    ):
        assert extracted(stream_of(text)).counts.statements == {}


@pytest.mark.parametrize(("text", "matters"), [
    ("CREATE DATABASE unrelated", False),
    ("DROP DATABASE shop", True),
    ("ALTER DATABASE COLLATE utf8mb4_bin", False),
    ("CREATE VIEW other.v AS SELECT * FROM shop.orders", False),
    ("CREATE OR REPLACE ALGORITHM=MERGE DEFINER=`a`@`b` VIEW `shop`.`v` AS SELECT 1", True),
    ("CREATE PROCEDURE p() SELECT 1", False),
    ("CREATE PROCEDURE shop.p() SELECT 1", True),
    ("CREATE DEFINER=`a`@`%` TRIGGER x BEFORE INSERT ON other.t FOR EACH ROW SET @a = 1", False),
    ("DROP TRIGGER IF EXISTS shop.x", True),
    ("CREATE EVENT IF NOT EXISTS other.e ON SCHEDULE EVERY 1 DAY DO SELECT 1", False),
    ("DROP FUNCTION other.f", False),
    ("CREATE SEQUENCE shop.s", True),
    ("CREATE TABLESPACE a ADD DATAFILE 'a.ibd'", True),
])  # fmt: skip
def test_objects_of_schemas_that_are_not_mapped_concern_nobody(text, matters):
    stream = Stream()
    stream.add(EntryKind.DDL, schema="other", statement=text, session=StatementSession("other"))
    assert bool(extracted(stream).ddl) is matters


def test_a_transaction_of_this_channel_is_dropped_behind_a_statement_too():
    stream = Stream()
    stream.begin()
    stream.mark(mark_row(OWN))
    stream.add(EntryKind.STATEMENT, schema="other", statement="DELETE FROM t")
    stream.row(expected=False)
    stream.commit()
    found = extracted(stream)
    assert (found.rows, found.counts.loopback_rows) == ([], 1)
