import json
import math

import pytest

from setl.channel.names.patterns import parse_tables
from setl.codec.dts.envelope import FILLER, Envelope, read_envelope
from setl.codec.sql.redaction import redacted
from setl.errors import DataError
from setl.model.change import ABSENT, Op
from setl.model.position import BinlogPosition, KafkaPosition
from setl.model.schema import Column, Kind, RowSchema
from setl.model.typed import TypedChange
from setl.operate.peek.as_json import json_line
from setl.operate.peek.as_text import text_lines
from setl.systems.seen_record import UNREADABLE, SeenRecord, Wanted
from tests.unit.codec.dts_records import fixture_records, record

AT = BinlogPosition("b.000001", 77)
IN_TOPIC = KafkaPosition("orders", 1, 5)


def change_of(kind, before, after, name="c"):
    schema = RowSchema("shop", "t", (Column("id", Kind.INTEGER), Column(name, kind)), (0,))
    op = Op.INSERT if before is None else Op.DELETE if after is None else Op.UPDATE
    images = [None if value is None else (1, value[0]) for value in (before, after)]
    return TypedChange(schema, op, images[0], images[1])


def shown(kind, before, after, name="c"):
    change = change_of(kind, before, after, name)
    return [line.text for line in text_lines(SeenRecord(AT, change.op.name, change=change))][-1]


# ---- the envelope


def test_an_envelope_has_what_the_fixture_says():
    for value, meaning in fixture_records():
        envelope = read_envelope(value)
        assert envelope.operation == meaning["operation"]
        assert envelope.timestamp == meaning["source_timestamp"]
        assert envelope.position == meaning["position"]
        assert (envelope.source_type, envelope.transaction_id) == ("MySQL", "0")
        if "ddl" in meaning:
            assert envelope.statement == meaning["ddl"]


def test_an_envelope_reports_records_of_both_lengths_apart():
    values = {"id": 9, "tags": {"a": "b"}, "processTimestamps": [1, 2]}
    short = read_envelope(record("BEGIN", **values))
    long = read_envelope(record("BEGIN", length=15, **values))
    assert (short.born, long.born) == (None, 1_700_000_001)
    assert (short.id, short.tags, short.process_timestamps) == (9, {"a": "b"}, (1, 2))
    assert short.safe_position == "72000@78"


@pytest.mark.parametrize("filler", [b"", b"\0" * 48, b"mock"])
def test_fillers_are_reported_as_such(filler):
    assert read_envelope(filler) == Envelope(FILLER)


def test_what_is_no_record_is_an_error():
    with pytest.raises(DataError, match="not a DTS record"):
        read_envelope(b"\xff" * 60)


# ---- text


@pytest.mark.parametrize(
    ("kind", "before", "after", "line"),
    [
        (Kind.TEXT, ["a"], ["b"], "  * c   text     'a' → 'b'"),
        (Kind.TEXT, ["a"], ["a"], "    c   text     'a'"),
        (Kind.TEXT, None, ["NULL"], "    c   text     'NULL'"),
        (Kind.TEXT, [None], [""], "  * c   text     NULL → ''"),
        (Kind.TEXT, [ABSENT], ["a"], "  * c   text     ABSENT → 'a'"),
        (Kind.TEXT, ["a"], [ABSENT], "    c   text     'a'"),
        (Kind.TEXT, ["a"], None, "    c   text     'a'"),
        (Kind.DECIMAL, None, ["1.50"], "    c   decimal  1.50"),
        (Kind.FLOAT, None, [0.1], "    c   float    0.1"),
        (Kind.BINARY, None, [b"\x00\xff"], "    c   binary   0x00ff"),
        (Kind.BINARY, None, [b""], "    c   binary   0x"),
        (Kind.TEXT, None, ["a'b\\c\n\t\x1b[2J\u202e"],
         r"    c   text     'a\'b\\c\n\t\x1b[2J\u202e'"),
        (Kind.TEXT, None, ["x" * 161], f"    c   text     '{'x' * 160}'… (161 characters)"),
        (Kind.BINARY, None, [b"\1" * 33], f"    c   binary   0x{'01' * 32}… (33 bytes)"),
    ],
)  # fmt: skip
def test_values_in_text(kind, before, after, line):
    assert shown(kind, before, after) == line


def test_names_cannot_move_the_cursor():
    line = shown(Kind.INTEGER, None, [1], name="\x1b[31m")
    assert r"\x1b[31m" in line
    assert "\x1b" not in line


def test_a_name_is_written_as_the_option_takes_it():
    seen = SeenRecord(AT, "INSERT", schema="we.ird", table="t*")
    (line,) = text_lines(seen)
    assert line.text == r"b.000001:77  INSERT  we\.ird.t\*"
    assert parse_tables(line.text.split()[2]).match("we.ird", "t*") == ()


# ---- JSON


def test_the_shape_of_a_row_of_a_topic():
    envelope = Envelope("UPDATE", id=7, position="1@2", source_type="MySQL", tags={"a": "b"})
    seen = SeenRecord(
        IN_TOPIC,
        "UPDATE",
        timestamp=1_700_000_000.0,
        schema="shop",
        table="t",
        transaction="u:5",
        size=99,
        change=change_of(Kind.BINARY, [b"\1"], [b"\xff"]),
        envelope=envelope,
        headers=(("setl", b"1 2"), ("raw", b"\xff")),
        written=1_700_000_001.5,
    )
    assert json.loads(json_line(seen)) == {
        "position": "orders[1]@5",
        "topic": "orders",
        "partition": 1,
        "offset": 5,
        "written": "2023-11-14T22:13:21.500000+00:00",
        "headers": [["setl", "1 2"], ["raw", {"hex": "ff"}]],
        "operation": "UPDATE",
        "timestamp": 1_700_000_000,
        "time": "2023-11-14T22:13:20+00:00",
        "schema": "shop",
        "table": "t",
        "transaction": "u:5",
        "size": 99,
        "before": {"id": 1, "c": {"hex": "01"}},
        "after": {"id": 1, "c": {"hex": "ff"}},
        "changed": ["c"],
        "kinds": {"id": "integer", "c": "binary"},
        "key": ["id"],
        "record": {
            "id": 7,
            "version": 0,
            "source_type": "MySQL",
            "source_version": "",
            "position": "1@2",
            "safe_position": "",
            "transaction_id": "",
            "object_name": None,
            "tags": {"a": "b"},
            "process_timestamps": [],
            "born": None,
        },
    }


def test_json_cuts_nothing_and_leaves_out_what_is_absent():
    large = "x" * 100_000
    seen = SeenRecord(AT, "UPDATE", change=change_of(Kind.TEXT, [ABSENT], [large]))
    reported = json.loads(json_line(seen))
    assert (reported["before"], reported["after"]["c"]) == ({"id": 1}, large)
    assert (reported["file"], reported["offset"], reported["timestamp"]) == ("b.000001", 77, None)


def test_json_is_json_whatever_a_value_is():
    for kind, value in ((Kind.FLOAT, math.nan), (Kind.TEXT, "\ud800"), (Kind.INTEGER, 2**64)):
        line = json_line(SeenRecord(AT, "INSERT", change=change_of(kind, None, [value])))
        line.encode()
        assert json.loads(line, parse_constant=pytest.fail)


# ---- what is shown, and what never


def test_which_records_are_wanted():
    row = SeenRecord(AT, "INSERT", 10.0, "shop", "t", change=change_of(Kind.TEXT, None, ["a"]))
    alive = SeenRecord(AT, "UPDATE", 10.0, "retl", "xdual", change=row.change)
    mark = SeenRecord(AT, "UPDATE", 10.0, "retl", "retl_mark", change=row.change)
    ddl = SeenRecord(AT, "DDL", 10.0, "shop", statement="RENAME TABLE t TO u")
    own = SeenRecord(AT, "DDL", 10.0, "shop", statement="ALTER TABLE retl.setl_fence ADD c INT")
    commit, broken = SeenRecord(AT, "COMMIT", 10.0), SeenRecord(AT, UNREADABLE)

    def wanted(**options):
        return [
            r for r in (row, alive, mark, ddl, own, commit, broken) if Wanted(**options).shows(r)
        ]

    assert wanted() == [row, ddl, broken]
    assert wanted(everything=True) == [row, alive, mark, ddl, own, commit, broken]
    assert wanted(since=11.0) == [broken]
    assert wanted(tables=[parse_tables("retl.*")]) == [alive, mark, own, broken]
    assert wanted(tables=[parse_tables("shop.u")]) == [ddl, broken]
    assert wanted(tables=[parse_tables("*.t")], everything=True) == [row, ddl, commit, broken]


@pytest.mark.parametrize(
    ("statement", "reported"),
    [
        ("CREATE USER a IDENTIFIED BY 'se''cret\\'x'", "CREATE USER a IDENTIFIED BY '***'"),
        ('ALTER USER a@b identified by "secret"', "ALTER USER a@b identified by '***'"),
        ("CREATE USER a IDENTIFIED VIA ed25519 USING PASSWORD('secret')",
         "CREATE USER a IDENTIFIED VIA ed25519 USING PASSWORD('***')"),
        ("CREATE USER a IDENTIFIED WITH p AS 'secret' REQUIRE SSL",
         "CREATE USER a IDENTIFIED WITH p AS '***' REQUIRE SSL"),
        ("GRANT ALL ON *.* TO a IDENTIFIED BY PASSWORD '*SECRET'",
         "GRANT ALL ON *.* TO a IDENTIFIED BY PASSWORD '***'"),
        ("SET PASSWORD FOR a = PASSWORD('secret')", "SET PASSWORD FOR a = PASSWORD('***')"),
        ("SET PASSWORD FOR a = 'secret'", "SET PASSWORD FOR a = '***'"),
        ("CREATE SERVER s OPTIONS (USER 'u', PASSWORD 'secret')",
         "CREATE SERVER s OPTIONS (USER 'u', PASSWORD '***')"),
        ("ALTER USER a IDENTIFIED BY 'secret' REPLACE 'older secret'",
         "ALTER USER a IDENTIFIED BY '***' REPLACE '***'"),
        ("CREATE TABLE t (password CHAR(9) DEFAULT 'x' COMMENT 'as it is')",
         "CREATE TABLE t (password CHAR(9) DEFAULT 'x' COMMENT 'as it is')"),
        ("ALTER TABLE t CONNECTION='mysql://u:secret@h/d/t'", "ALTER TABLE t CONNECTION='***'"),
        ("CREATE TABLE t (a INT) ENGINE=FEDERATED CONNECTION 'secret'",
         "CREATE TABLE t (a INT) ENGINE=FEDERATED CONNECTION '***'"),
        ("ALTER TABLE t ADD c ENUM('by', 'x')", "ALTER TABLE t ADD c ENUM('by', 'x')"),
    ],
)  # fmt: skip
def test_passwords_in_statements_are_not_shown(statement, reported):
    assert redacted(statement) == reported
    seen = SeenRecord(AT, "DDL", statement=statement)
    assert "secret" not in json_line(seen).lower().replace("se''cret", "secret")
    assert not any("secret" in line.text.lower() for line in text_lines(seen))


def test_a_password_without_its_end_is_hidden_with_all_behind_it():
    """So it looks to who does not know that a backslash is nothing else in its session."""
    assert redacted(r"SET PASSWORD = 'hunter2\'") == "SET PASSWORD = '***'"


@pytest.mark.timeout(60)
def test_a_statement_of_many_texts_is_read_once():
    """It takes two seconds. Looking at all in front of each text would take minutes."""
    many = "'a' " * (1 << 18)
    assert redacted(f"SET PASSWORD = {many}") == f"SET PASSWORD = '***'{many[3:]}"
