"""Row changes that were logged as statements: which pass, and what is said of the others."""

import pytest

from setl.errors import FatalError
from setl.extract.extractor import Extractor
from setl.extract.statements import PassedStatements, Reach
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

    def of_writing(self, schema, table, *, temporary):
        self.asked.append(f"{schema}.{table}")
        return self.reaches.get(f"{schema}_{table}", Reach())

    def of_reading(self, schema, table, *, temporary):
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


def extracted(stream, effects=None, accept=()):
    statements = PassedStatements(
        lambda schema, _: schema == "shop", accept.__contains__, effects or Told()
    )
    extractor = Extractor(ToOneTarget(), ME, stream.codec, statements=statements)
    return extractor.extract(stream.batch())


def refused(text, effects=None, accept=(), **session):
    with pytest.raises(FatalError) as caught:
        extracted(stream_of(text, **session), effects, accept)
    return str(caught.value)


def test_statements_of_tables_that_are_not_mapped_pass_and_are_counted_by_schema():
    told = Told()
    stream = stream_of(
        "INSERT INTO t VALUES (1)",
        "UPDATE percona.checksums SET a = 1",
        "REPLACE INTO percona.checksums SELECT 1 FROM shop.orders",
    )
    stream.row(expected=True)
    found = extracted(stream, told)
    assert found.counts.statements == {"other": 1, "percona": 2}
    assert [row.entry.payload for row in found.rows] == stream.expected
    assert told.asked == [
        "other.t", "percona.checksums", "percona.checksums", "read shop.orders",
    ]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), [
    ("INSERT INTO shop.orders VALUES (1)", "it writes shop.orders"),
    ("UPDATE t JOIN shop.orders SET a = 1", "it writes shop.orders"),
    ("INSERT INTO retl.retl_mark VALUES (1)", "it writes retl.retl_mark"),
    ("INSERT INTO t VALUES (f(1))", "it calls other.f"),
    ("SELECT shop.f(1)", "it calls shop.f"),
    ("CREATE TEMPORARY TABLE t SELECT f(1)", "it calls other.f"),
    ("CALL p()", "its tables cannot be told"),
])  # fmt: skip
def test_what_may_touch_a_mapped_table_stops(text, reason):
    assert reason in refused(text)


def test_double_quotes_are_names_where_the_session_says_so():
    text = 'INSERT INTO "shop"."orders" VALUES ("a")'
    assert "it writes shop.orders" in refused(text, sql_mode=MODES["ansi"])
    assert "cannot be told" in refused(text)


def test_a_transaction_of_this_channel_is_dropped_behind_a_statement_too():
    stream = Stream()
    stream.begin()
    stream.mark(mark_row(OWN))
    stream.add(EntryKind.STATEMENT, schema="other", statement="DELETE FROM t")
    stream.row(expected=False)
    stream.commit()
    found = extracted(stream)
    assert (found.rows, found.counts.loopback_rows) == ([], 1)
