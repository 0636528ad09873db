import time
from contextlib import closing
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from elasticsearch import Elasticsearch
from elasticsearch.helpers import bulk

from setl.bulk.comparison import What
from setl.bulk.repair import repair_of
from setl.bulk.source_side import MappedTable
from setl.bulk.table_shape import TableShape
from setl.bulk.verify_target import TargetComparison, VerifySettings
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.errors import ConfigurationError
from setl.model.position import BinlogPosition
from setl.operate.verify import verify_keys
from setl.run.verification.ambiguity import seen_twice
from setl.run.verification.compared_targets import mapped_targets, target_reader
from setl.systems.mysql.binlog.source import MysqlBinlogSource
from setl.systems.mysql.connection import MysqlEndpoint, connect
from setl.systems.mysql.reading.table_reader import TableReader
from setl.systems.mysql.reading.table_target import TableTarget
from setl.systems.search_index.load.documents import render_documents
from setl.systems.search_index.load.ids import document_id
from tests.integration.compared_pair import AT_ONCE, ORDERS, ROWS, described, fill, named
from tests.integration.type_catalogue import LABELS
from tests.mysql_servers import binlog_status


def test_equal_tables(pair):
    pair.orders()
    verdict = pair.verdict()
    assert verdict.equal
    assert (verdict.source_rows, verdict.target_rows) == (5, 5)
    assert (verdict.table, verdict.target) == (f"{pair.schema}.orders",) * 2
    assert verdict.sample_keys == ()


def test_empty_tables(pair):
    pair.both(ORDERS.format(name="orders"))
    verdict = pair.verdict()
    assert verdict.equal
    assert (verdict.source_rows, verdict.target_rows) == (0, 0)


def test_a_row_that_is_missing_one_too_many_and_one_that_differs(pair):
    pair.orders()
    pair.run(
        pair.target,
        "DELETE FROM orders WHERE id = 3",
        "INSERT INTO orders (id, price, created) VALUES (7, 1, '2026-01-01')",
        "UPDATE orders SET price = 1.5, buyer = 'x' WHERE id = 4",
    )
    verdict = pair.verdict()
    assert (verdict.missing, verdict.extra, verdict.different) == (1, 1, 1)
    assert not verdict.equal
    assert (verdict.source_rows, verdict.target_rows) == (5, 5)
    assert named(verdict) == [
        ("3", What.MISSING, []),
        ("4", What.DIFFERENT, ["buyer", "price"]),
        ("7", What.EXTRA, []),
    ]
    (buyer, price) = verdict.sample_keys[1].columns
    assert (buyer.source, buyer.target) == ("", "x")
    assert (price.source, price.target) == ("9999999999.99", "1.5")


def test_a_wider_decimal_holds_the_same_value_or_another_one(pair):
    pair.orders()
    pair.run(pair.target, "ALTER TABLE orders MODIFY price DECIMAL(14,3) NOT NULL")
    assert pair.verdict().equal
    pair.run(pair.target, "UPDATE orders SET price = 1.501 WHERE id = 1")
    assert named(pair.verdict()) == [("1", What.DIFFERENT, ["price"])]


def test_a_float_in_a_double_column(pair):
    pair.orders()
    pair.run(pair.target, "ALTER TABLE orders MODIFY weight DOUBLE")
    pair.run(pair.target, "UPDATE orders SET weight = 1.1 WHERE id = 1")
    pair.run(pair.target, "UPDATE orders SET weight = -2.5e-7 WHERE id = 3")
    pair.run(pair.target, "UPDATE orders SET weight = 3e38 WHERE id = 4")
    assert named(pair.verdict()) == [("1000", What.DIFFERENT, ["weight"])]


def test_columns_that_only_the_target_has_are_not_looked_at(pair):
    pair.orders()
    pair.run(pair.target, "ALTER TABLE orders ADD loaded TIMESTAMP DEFAULT CURRENT_TIMESTAMP")
    assert pair.verdict().equal


def test_composite_keys_in_many_parts(pair):
    pair.both(
        "CREATE TABLE items (kind VARCHAR(10) COLLATE utf8mb4_bin, day DATE, n INT, v DECIMAL(5,1),"
        " PRIMARY KEY (kind, day, n))"
    )
    rows = [
        (kind, f"2026-01-0{day}", n, f"{n}.5")
        for kind in ("a", "A", "ä", "b%", "")
        for day in range(1, 4)
        for n in range(4)
    ]
    fill(pair.source, "items", rows)
    fill(pair.target, "items", list(reversed(rows)))
    verdict = pair.verdict()
    assert verdict.equal
    assert (verdict.source_rows, verdict.target_rows) == (60, 60)
    pair.run(pair.target, "DELETE FROM items WHERE kind = 'ä' AND day = '2026-01-02' AND n = 3")
    assert named(pair.verdict()) == [('["ä", "2026-01-02", 3]', What.MISSING, [])]


def test_a_key_that_differs_in_case_only(pair):
    pair.both("CREATE TABLE words (w VARCHAR(10) COLLATE utf8mb4_general_ci PRIMARY KEY, n INT)")
    fill(pair.source, "words", [("abc", 1)])
    fill(pair.target, "words", [("ABC", 1)])
    assert named(pair.verdict()) == [('"ABC"', What.EXTRA, []), ('"abc"', What.MISSING, [])]


@pytest.mark.parametrize("rows_per_part", [1, 2, 1000])
def test_parts_hold_every_row_once(pair, rows_per_part):
    pair.orders()
    endpoint = MysqlEndpoint(pair.a.host, pair.a.port, pair.a.user, pair.a.password)
    schema = described(pair.source, pair.schema, "orders")
    reader = TableReader(endpoint, schema)
    ids: list[Any] = [
        row[0]
        for part in reader.parts(rows_per_part)
        for rows in reader.read(schema.columns, part)
        for row in rows
    ]
    assert sorted(ids) == [1, 2, 3, 4, 1000]
    some = reader.parts_of_keys(schema.columns[:1], [(2,), (3,), (99,)])
    found: list[Any] = [r[0] for p in some for rows in reader.read(schema.columns, p) for r in rows]
    assert sorted(found) == [2, 3]


ALL_TYPES = """CREATE TABLE kinds (
  id INT PRIMARY KEY,
  ti TINYINT, tu TINYINT UNSIGNED, bu BIGINT UNSIGNED, zf INT(8) UNSIGNED ZEROFILL,
  de DECIMAL(30,10), dz DECIMAL(9,2) ZEROFILL, d65 DECIMAL(65,30), fl FLOAT, dbl DOUBLE,
  b1 BIT(1), b64 BIT(64), y YEAR, d DATE, t0 TIME, t6 TIME(6), dt0 DATETIME, dt3 DATETIME(3),
  ts0 TIMESTAMP NULL, ts6 TIMESTAMP(6) NULL,
  ch CHAR(5), vc VARCHAR(20) CHARACTER SET latin1, tx MEDIUMTEXT, bi BINARY(4), vb VARBINARY(9),
  bl BLOB, en ENUM('a','b, c'), st SET('x','y','z'), js JSON, ge POINT
) CHARSET utf8mb4"""
ALL_ROWS = [
    """1, -128, 255, 18446744073709551615, 42,
       -12345678901234567890.0123456789, 1.5, 0, 1.1, 0.1,
       b'1', 18446744073709551615, 2026, '2026-01-02', '-838:59:59', '00:00:00.000001',
       '2026-01-02 03:04:05', '9999-12-31 23:59:59.999',
       '2026-01-02 03:04:05', '2038-01-19 03:14:07.999999',
       'ab ', 'café ', '𝄞', 'a', x'00', x'', 'b, c', 'x,z', '{"a": [1, 2.50]}', POINT(1, -2)""",
    """2, 127, 0, 0, 99999999,
       0.0000000001, 0, 99999999999999999999999999999999999.5, -3e38, 1e-300,
       b'0', 0, 1901, '1000-01-01', '838:59:58', '-00:00:00.5',
       '1000-01-01 00:00:00', '2026-01-02 03:04:05.5',
       '1970-01-01 00:00:01', '1970-01-01 00:00:01.1',
       '', '', '', x'', '', 'x', 'a', '', '1', NULL""",
    "3" + ", NULL" * 29,
    """4, 0, 0, 1, 1,
       -0.5, 1, -1.5, 16777216, -0e0,
       b'0', 1, 0, '0000-00-00', '0:0:0', '0:0:0',
       '0000-00-00', '2026-02-00', '0000-00-00', '0000-00-00',
       'x', 'x', 'x', 'x', 'x', 'x', 'a', 'y', '[]', POINT(0,0)""",
]


def test_values_are_those_of_the_binlog(pair):
    """What is read from a table is what the codec makes of the same rows in the stream."""
    setup = "SET sql_mode='ALLOW_INVALID_DATES', time_zone='+00:00'"
    pair.run(pair.source, setup, ALL_TYPES)
    file, offset = binlog_status(pair.source)
    pair.run(pair.source, f"INSERT INTO kinds VALUES ({'), ('.join(ALL_ROWS)})")

    endpoint = MysqlEndpoint(pair.a.host, pair.a.port, pair.a.user, pair.a.password)
    binlog, codec = MysqlBinlogSource(endpoint, server_id=7_770_001), BinlogRowCodec()
    streamed: list[Any] = []
    with closing(binlog):
        binlog.open(BinlogPosition(file, offset))
        deadline = time.monotonic() + 60
        while len(streamed) < len(ALL_ROWS) and time.monotonic() < deadline:
            for entry in binlog.read(100, 0.5):
                if (entry.schema, entry.table) == (pair.schema, "kinds"):
                    decoded = codec.decode(entry.payload, entry.context)
                    streamed += [after for _, after in decoded.images]
    schema, read = rows_of(pair, "kinds")
    assert len(read) == len(ALL_ROWS)
    for one, other in zip(sorted(read), sorted(streamed), strict=True):
        for name, value, expected in zip(schema.names, one, other, strict=True):
            assert (name, repr(value)) == (name, repr(expected))


@pytest.mark.family("mysql", why="MariaDB's JSON is text")
def test_all_digits_of_numbers_in_json_count(pair):
    pair.both("CREATE TABLE docs (id INT PRIMARY KEY, j JSON)")
    for side, last in ((pair.source, 1), (pair.target, 2)):
        number = f"CAST('0.12345678901234567{last}' AS DECIMAL(30,20))"
        pair.run(side, f"INSERT INTO docs VALUES (1, JSON_ARRAY(1.5, {number}))")
    assert named(pair.verdict({"from": "docs"})) == [("1", What.DIFFERENT, ["j"])]


def test_renamed_and_excluded_columns(pair):
    pair.orders()
    pair.run(pair.target, "ALTER TABLE orders CHANGE buyer customer VARCHAR(40), DROP note")
    mapping = {"from": "orders", "columns": {"customer": "buyer"}, "exclude": ["note"]}
    assert pair.verdict(mapping).equal
    pair.run(pair.target, "UPDATE orders SET customer = 'y' WHERE id = 1")
    assert named(pair.verdict(mapping)) == [("1", What.DIFFERENT, ["customer"])]


def test_expressions_and_where(pair):
    pair.both(ORDERS.format(name="orders"))
    pair.run(pair.target, "ALTER TABLE orders ADD twice DECIMAL(20,2), ADD loud VARCHAR(50)")
    fill(pair.source, "orders", ROWS)
    sent = [row for row in ROWS if row[8] == "sent"]
    twice = {1: "3.00", 4: "19999999999.98", 1000: "2.00"}
    fill(
        pair.target,
        "orders",
        [(*r, twice[r[0]], None if r[1] is None else r[1].upper()) for r in sent],
    )
    mapping = {
        "from": "orders",
        "columns": {"twice": "price * 2", "loud": "upper(buyer)"},
        "where": "state = 'sent'",
    }
    verdict = pair.verdict(mapping)
    assert named(verdict) == []
    assert (verdict.source_rows, verdict.target_rows) == (3, 3)
    pair.run(
        pair.target,
        "UPDATE orders SET twice = 3.01 WHERE id = 1",
        "INSERT INTO orders (id, price, created) VALUES (2, 1, '2026-01-01')",
    )
    assert named(pair.verdict(mapping)) == [
        ("1", What.DIFFERENT, ["twice"]),
        ("2", What.EXTRA, []),
    ]


def test_tables_that_come_together_in_one(pair):
    for name in ("part_1", "part_2"):
        pair.run(pair.source, ORDERS.format(name=name))
    pair.run(pair.target, ORDERS.format(name="whole"))
    fill(pair.source, "part_1", ROWS[:2])
    fill(pair.source, "part_2", ROWS[2:])
    fill(pair.target, "whole", ROWS)
    mapping = {"from": "part_*", "to": "whole"}
    verdict = pair.verdict(mapping)
    assert verdict.equal
    assert verdict.table == f"{pair.schema}.part_1, {pair.schema}.part_2"
    pair.run(pair.target, "INSERT INTO whole (id, price, created) VALUES (8, 1, '2026-01-01')")
    assert named(pair.verdict(mapping)) == [("8", What.EXTRA, [])]


def test_a_table_without_a_primary_key(pair):
    pair.both("CREATE TABLE log (at INT NOT NULL, what VARCHAR(10))")
    fill(pair.source, "log", [(1, "a"), (2, "b")])
    fill(pair.target, "log", [(1, "a"), (1, "a"), (2, "b")])
    mapping = {"from": "log", "key": ["at"]}
    verdict = pair.verdict(mapping)
    assert [(d.key, d.what) for d in verdict.sample_keys] == [("1", What.DIFFERENT)]
    verdict = pair.verdict({"from": "log"})
    assert [(d.key, d.what) for d in verdict.sample_keys] == [('[1, "a"]', What.DIFFERENT)]
    with pytest.raises(ConfigurationError, match="no primary key"):
        pair.verify({"from": "log", "where": "at > 0"})


def test_rows_without_a_key_are_named_by_their_values_and_how_often_they_are_there(pair):
    pair.both("CREATE TABLE log (a DOUBLE, b VARCHAR(300) COLLATE utf8mb4_general_ci, c BLOB)")
    here, there = (1.5, "x", None), (1.5, "X", None)
    odd = (None, "é", b"\0\xff")
    fill(pair.source, "log", [here, here, here, odd, odd, (2, "y" * 300, None), (3, "same", b"")])
    fill(pair.target, "log", [(3, "same", b""), here, there, (3, "same", b"")])
    verdict = pair.verdict()
    assert {(d.key, d.what, d.source_rows, d.target_rows) for d in verdict.sample_keys} == {
        ('[1.5, "x", null]', What.DIFFERENT, 3, 1),
        ('[1.5, "X", null]', What.EXTRA, 0, 1),
        ('[null, "é", {"hex": "00ff"}]', What.MISSING, 2, 0),
        (f'[2.0, "{"y" * 200}… (300 characters)", null]', What.MISSING, 1, 0),
        ('[3.0, "same", {"hex": ""}]', What.DIFFERENT, 1, 2),
    }
    assert (verdict.missing, verdict.extra, verdict.different) == (2, 1, 2)
    assert (verdict.source_rows, verdict.target_rows) == (7, 4)
    repair = repair_of(verdict, "me", 0.0)
    assert (repair.requests, repair.left, verdict.differing.keyless) == ((), 5, True)


def test_rows_without_a_key_that_arrive_while_it_looks(pair):
    pair.both("CREATE TABLE log (a INT, b VARCHAR(9))")
    fill(pair.source, "log", [(1, "x")] * 3 + [(None, "y")] * 2 + [(3, "z")])
    fill(pair.target, "log", [(1, "x"), (None, "y"), (4, None)])
    pauses = []

    def wait(seconds):
        pauses.append(seconds)
        if len(pauses) == 1:
            fill(pair.target, "log", [(1, "x")] * 2)
            pair.run(pair.source, "UPDATE log SET a = 5 WHERE a = 3")
        if len(pauses) == 2:
            fill(pair.source, "log", [(4, None)])

    settings = VerifySettings(rechecks=3, pause=0)
    verdict = pair.verdict(settings=settings, wait=wait)
    assert named(verdict) == [('[null, "y"]', What.DIFFERENT, [])]
    assert (verdict.source_rows, verdict.target_rows, verdict.caught_up) == (6, 5, 3)


def test_standing_verification_of_a_table_without_a_key(pair):
    pair.both("CREATE TABLE log (a INT, b VARCHAR(9))")
    fill(pair.source, "log", [(1, "x")] * 3 + [(2, None)])
    fill(pair.target, "log", [(1, "x")] * 2 + [(2, None)])
    (sources,) = mapped_targets(pair.pipeline()).values()
    mapped = [MappedTable.build(pair.spark, *source) for source in sources]
    target = target_reader(pair.pipeline(), (pair.schema, "log"), mapped)
    comparison = TargetComparison(pair.spark, mapped, target, AT_ONCE)
    first, again = (comparison.compare(None, 2) for _ in range(2))
    assert (first.last, first.rows) == (None, 4)
    assert "no key" in comparison.whole
    twice = seen_twice(first.verdict, again.verdict)
    assert [(d.key, d.what) for d in twice.sample_keys] == [('[1, "x"]', What.DIFFERENT)]
    assert (twice.differences, twice.undecided) == (1, 0)
    pair.run(pair.target, "DELETE FROM log WHERE a = 1 LIMIT 1")
    moved = seen_twice(again.verdict, comparison.compare(None, 2).verdict)
    assert (moved.differences, moved.undecided) == (0, 1)
    fill(pair.target, "log", [(1, "x")] * 2)  # as a refused repair says
    assert comparison.compare(None, 2).verdict.equal


def test_chosen_tables_only_and_names_that_are_not_there(pair):
    pair.orders("one")
    pair.orders("two")
    (verdict,) = pair.verify(tables=[f"{pair.schema}.two"])
    assert verdict.target == f"{pair.schema}.two"
    with pytest.raises(ConfigurationError, match=r"does not map x\.y"):
        pair.verify(tables=["x.y"])
    with pytest.raises(ConfigurationError, match=r"has no table .*nowhere"):
        pair.verify({"from": "nowhere"})


def test_a_target_table_or_column_that_does_not_exist(pair):
    pair.orders()
    pair.run(pair.target, "ALTER TABLE orders DROP note")
    with pytest.raises(ConfigurationError, match="no column note"):
        pair.verify()
    pair.run(pair.target, "DROP TABLE orders")
    with pytest.raises(ConfigurationError, match="does not exist"):
        pair.verify()


def test_an_error_in_a_task_stores_its_kind(pair):
    pair.orders()
    gone = pair.pipeline({"from": "orders"})
    sources = mapped_targets(gone)[pair.schema, "orders"]
    pair.run(pair.source, "RENAME TABLE orders TO elsewhere", ORDERS.format(name="orders"))
    reader: Any = sources[0][0]
    broken = TableReader(reader.endpoint, described(pair.source, pair.schema, "elsewhere"))
    pair.run(pair.source, "ALTER TABLE elsewhere DROP note")
    target: Any = next(iter(mapped_targets(gone).values()))[0][0]
    shape = TableShape.build(target.schema, target.schema.names, ["id"])
    mapped = MappedTable.build(pair.spark, broken, sources[0][1])
    with pytest.raises(ConfigurationError, match="note"):
        TargetComparison(pair.spark, [mapped], TableTarget(target, shape), AT_ONCE).compare_all()


def test_rows_that_arrive_while_it_looks_are_no_differences(pair):
    pair.orders()
    pair.run(
        pair.target,
        "DELETE FROM orders WHERE id = 1",
        "UPDATE orders SET price = 5 WHERE id = 2",
        "INSERT INTO orders (id, price, created) VALUES (7, 1, '2026-01-01')",
        "UPDATE orders SET price = 5 WHERE id = 3",
    )
    pauses = []

    def wait(seconds):
        pauses.append(seconds)
        if len(pauses) == 1:
            fill(pair.target, "orders", ROWS[:1])
            pair.run(
                pair.source, "INSERT INTO orders (id, price, created) VALUES (7, 1, '2026-01-01')"
            )
        if len(pauses) == 2:
            pair.run(pair.target, "UPDATE orders SET price = -0.05 WHERE id = 2")

    settings = VerifySettings(rechecks=3, pause=0.25)
    verdict = pair.verdict(settings=settings, wait=wait)
    assert named(verdict) == [("3", What.DIFFERENT, ["price"])]
    assert (verdict.missing, verdict.extra, verdict.different, verdict.caught_up) == (0, 0, 1, 3)
    assert pauses == [0.25] * 3


def test_equal_tables_are_not_read_again(pair):
    pair.orders()

    def wait(seconds):
        raise AssertionError(seconds)

    assert pair.verdict(settings=VerifySettings(), wait=wait).equal


def test_more_differences_than_are_named_or_read_again(pair):
    pair.both("CREATE TABLE n (id INT PRIMARY KEY, v INT)")
    fill(pair.source, "n", [(i, i) for i in range(100)])
    settings = VerifySettings(rechecks=1, pause=0, recheck_keys=10, rows_per_part=30)
    verdict = pair.verdict(settings=settings, sample=3)
    assert verdict.missing == 100
    assert [d.key for d in verdict.sample_keys] == ["0", "1", "2"]
    assert verdict.further == ()


@pytest.mark.parametrize("checksums", [True, False])
def test_numbers_of_labels_that_print_alike_differ(pair, checksums):
    # In ranges by such keys where servers make the checksums of them.
    settings = replace(AT_ONCE, checksums=checksums, rows_per_part=3 if checksums else 1000)
    pair.both("SET sql_mode = ''")
    for i, (definition, numbers) in enumerate(LABELS.values()):
        pair.both(f"CREATE TABLE t{i} (k {definition} NOT NULL PRIMARY KEY, v {definition})")
        rows = ", ".join(f"({n}, {n})" for n in numbers)
        pair.both(f"INSERT INTO t{i} VALUES {rows}")
    assert [named(v) for v in pair.verify(settings=settings) if not v.equal] == []
    for i, (_, (one, other, *_, last)) in enumerate(LABELS.values()):
        pair.run(pair.target, f"UPDATE t{i} SET v = {one} WHERE CAST(k AS UNSIGNED) = {last}")
        pair.run(pair.target, f"DELETE FROM t{i} WHERE CAST(k AS UNSIGNED) = {other}")
    verdicts = pair.verify(settings=settings)
    assert [(v.missing, v.different) for v in verdicts] == [(1, 1)] * len(LABELS)


@pytest.mark.parametrize("checksums", [True, False])
def test_keys_beyond_those_read_again_are_remembered_and_looked_at_later(pair, checksums):
    pair.both("CREATE TABLE n (id INT PRIMARY KEY, v INT)")
    fill(pair.source, "n", [(i, i) for i in range(90)])
    fill(pair.target, "n", [(i, -i) for i in range(80, 100)])
    settings = replace(AT_ONCE, recheck_keys=10, further_keys=85, checksums=checksums)
    verdict = pair.verdict(settings=settings)
    assert [key for (key,), _ in verdict.differing.keys] == list(range(10))
    # Which ones are forgotten depends on how tasks share them.
    further = {each.key: each for each in verdict.further}
    assert 75 <= len(further) <= 85
    assert further["85"].what is What.DIFFERENT
    pair.run(pair.target, "UPDATE n SET v = id WHERE id = 80")
    pair.run(pair.target, "INSERT INTO n VALUES (20, 20)")
    pair.run(pair.source, "DELETE FROM n WHERE id = 85")
    chosen = [further[key] for key in ("20", "21", "80", "81", "85")]
    again = verify_keys(
        pair.spark, pair.pipeline(), verdict, chosen, replace(settings, rechecks=1, pause=0)
    )
    assert again.differing.keys == (
        ((21,), What.MISSING), ((81,), What.DIFFERENT), ((85,), What.EXTRA)
    )  # fmt: skip
    assert (again.missing, again.extra, again.different, again.caught_up) == (1, 1, 1, 2)


def test_progress(pair):
    pair.orders()
    seen = []
    pair.verify(progress=lambda target, rows: seen.append((target, rows)))
    assert seen[-1] == (f"{pair.schema}.orders", 10)


# -- Elasticsearch ------------------------------------------------------------------------


@pytest.fixture
def index(elasticsearch):
    name = f"verify-{uuid4().hex[:8]}"
    client = Elasticsearch(elasticsearch.url)
    yield client, name, {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    client.options(ignore_status=404).indices.delete(index=name)
    client.close()


def put(client, index, schema, rows):
    bulk(
        client,
        (
            {
                "_index": index,
                "_id": document_id(tuple(row[i] for i in schema.key)),
                "_source": render_documents(schema.columns, (row,))[0],
            }
            for row in rows
        ),
    )


def rows_of(pair, table) -> Any:
    endpoint = MysqlEndpoint(pair.a.host, pair.a.port, pair.a.user, pair.a.password)
    with connect(endpoint) as connection:
        schema = described(connection, pair.schema, table)
    reader = TableReader(endpoint, schema)
    parts = reader.parts(100)
    return schema, [r for p in parts for rows in reader.read(schema.columns, p) for r in rows]


def test_an_index(pair, index):
    client, name, target = index
    pair.orders()
    mapping = {"from": "orders", "to": name}
    verdict = pair.verdict(mapping, target=target)
    assert (verdict.missing, verdict.source_rows, verdict.target_rows) == (5, 5, 0)

    put(client, name, *rows_of(pair, "orders"))
    verdict = pair.verdict(mapping, target=target)
    assert named(verdict) == []
    assert (verdict.source_rows, verdict.target_rows) == (5, 5)

    client.delete(index=name, id="2")
    client.update(index=name, id="1", doc={"note": "plain ", "extra": 1})
    client.index(index=name, id="77", document={"id": 77})
    verdict = pair.verdict(mapping, target=target)
    assert named(verdict) == [
        ("1", What.DIFFERENT, ["note"]),
        ("2", What.MISSING, []),
        ("77", What.EXTRA, []),
    ]


def test_an_index_that_catches_up(pair, index):
    client, name, target = index
    pair.both(
        "CREATE TABLE pairs (a INT, b VARCHAR(10) COLLATE utf8mb4_bin, v INT, PRIMARY KEY (a, b))"
    )
    fill(pair.source, "pairs", [(i, f"k,{i}", i) for i in range(10)])
    schema, rows = rows_of(pair, "pairs")
    put(client, name, schema, [*rows[2:], (70, "new", 7), (80, "new", 8)])

    def wait(_):
        put(client, name, schema, rows[:1])
        fill(pair.source, "pairs", [(70, "new", 7)])

    settings = VerifySettings(rechecks=1)
    verdict = pair.verdict(
        {"from": "pairs", "to": name}, target=target, settings=settings, wait=wait
    )
    assert named(verdict) == [("1,k\\,1", What.MISSING, []), ("80,new", What.EXTRA, [])]
    assert verdict.caught_up == 2


def test_expressions_into_an_index(pair, index):
    client, name, target = index
    pair.orders()
    _, rows = rows_of(pair, "orders")
    mapping = {
        "from": "orders",
        "to": name,
        "include": ["id"],
        "columns": {"n": "length(note) + 1"},
    }
    lengths = {1: 6, 2: 1, 3: 10, 4: None, 1000: 4}
    bulk(
        client,
        (
            {"_index": name, "_id": str(r[0]), "_source": {"id": r[0], "n": lengths[r[0]]}}
            for r in rows
        ),
    )
    assert named(pair.verdict(mapping, target=target)) == []
    client.update(index=name, id="3", doc={"n": 11})
    assert named(pair.verdict(mapping, target=target)) == [("3", What.DIFFERENT, ["n"])]


def test_doubles_whose_last_digit_the_server_does_not_keep(pair, index):
    client, name, target = index
    pair.both("CREATE TABLE d (id INT PRIMARY KEY, v DOUBLE)")
    values = [-943305.0469559873, 2.999999900196495e38, 0.1, -109225.61189039715, 0.0, None]
    fill(pair.source, "d", list(enumerate(values)))
    mapping = {"from": "d", "to": name}
    put(client, name, *rows_of(pair, "d"))
    assert named(pair.verdict(mapping, target=target)) == []
    client.update(index=name, id="0", doc={"v": -943305.0469559})
    assert named(pair.verdict(mapping, target=target)) == [("0", What.DIFFERENT, ["v"])]
