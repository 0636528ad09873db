import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setl.codec.dts.header import read_header
from setl.codec.dts.header_reader import DtsHeaderReader
from setl.errors import DataError, FatalError
from setl.model.entry import EntryKind
from setl.model.position import KafkaPosition
from tests.unit.codec.dts_records import AT, character, fixture_records, integer, record, row_record

KINDS = {
    "BEGIN": EntryKind.BEGIN,
    "COMMIT": EntryKind.COMMIT,
    "INSERT": EntryKind.ROWS,
    "UPDATE": EntryKind.ROWS,
    "DELETE": EntryKind.ROWS,
    "DDL": EntryKind.DDL,
    "HEARTBEAT": EntryKind.HEARTBEAT,
}


def test_every_record_of_the_fixture_has_the_header_its_json_says():
    for value, meaning in fixture_records():
        entry = read_header(value, AT)
        assert entry.kind is KINDS[meaning["operation"]], meaning
        assert entry.timestamp == meaning["source_timestamp"]
        if entry.kind is EntryKind.ROWS:
            assert (entry.schema, entry.table) == (meaning["db"], meaning["table"])
            assert entry.payload is value
            assert entry.rows == 1
        else:
            assert entry.rows == 0
            assert entry.payload == b""
        if entry.kind is EntryKind.DDL:
            assert entry.schema == meaning["db"]
            assert entry.statement == meaning["ddl"]


def test_gtid_stands_on_begin_and_ddl_only():
    assert (
        read_header(record("BEGIN", tags={"GTID": "9d43:7", "thread_id": "5"}), AT).transaction
        == "9d43:7"
    )
    assert read_header(record("BEGIN"), AT).transaction == ""
    statement = record(
        "DDL", objectName="shop", afterImages="DROP TABLE t", tags={"GTID": "9d43:8"}
    )
    assert read_header(statement, AT).transaction == "9d43:8"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("shop.orders", ("shop", "orders")),
        ("shop", ("shop", "")),
        ("db.public.orders", ("db", "public.orders")),
        ("we\\u002Eird.ta\\u002Ebl\\u002E", ("we.ird", "ta.bl.")),
        ("a.b\\u002E", ("a", "b.")),
        ("\\u002Ea.b", (".a", "b")),
        ("a.b\\u002", ("a", "b\\u002")),
        ("a.\\u002E\\u002E", ("a", "..")),
    ],
)
def test_object_names(name, expected):
    entry = read_header(row_record("INSERT", [("id", 8)], after=[integer(1)], name=name), AT)
    assert (entry.schema, entry.table) == expected


def test_position_takes_the_records_time_unless_it_has_one():
    assert read_header(record("COMMIT"), AT).position == KafkaPosition(
        "orders", 0, 101, 1_700_000_000
    )
    timed = KafkaPosition("orders", 0, 101, 5)
    assert read_header(record("COMMIT"), timed).position is timed


@pytest.mark.parametrize("length", [14, 15])
@pytest.mark.parametrize("operation", ["BEGIN", "COMMIT", "HEARTBEAT", "CHECKPOINT", "NOOP"])
def test_short_records_of_both_lengths_are_read_and_not_taken_for_fillers(operation, length):
    small = record(
        operation,
        length=length,
        sourcePosition="",
        safeSourcePosition="",
        sourceTxid="",
        source={"sourceType": "MySQL", "version": ""},
    )
    assert len(small) <= 48
    entry = read_header(small, AT)
    assert entry.timestamp == 1_700_000_000
    assert entry.kind is KINDS.get(operation, EntryKind.HEARTBEAT)


@pytest.mark.parametrize("filler", [b"", b"\0", b"\0" * 48, b"x" * 48, b"\xff" * 2, b"mock"])
def test_fillers_move_the_position_on(filler):
    entry = read_header(filler, AT)
    assert entry.kind is EntryKind.HEARTBEAT
    assert entry.position.order == (0, 101)


@pytest.mark.parametrize("garbage", [b"\0" * 49, b"\xff" * 60, b"not a record at all" * 5])
def test_anything_else_is_an_error_that_names_the_record(garbage):
    with pytest.raises(DataError, match=r"orders\[0\]@100"):
        read_header(garbage, AT)


def test_a_row_without_a_table_is_an_error():
    value = row_record("INSERT", [("id", 8)], after=[integer(1)], name=None)
    assert len(value) > 48
    with pytest.raises(DataError, match="names no table"):
        read_header(value, AT)


def test_ddl_without_a_statement_is_an_error():
    with pytest.raises(DataError, match="no statement"):
        read_header(record("DDL", objectName="shop"), AT)


@pytest.mark.parametrize("name", [None, ""])
def test_ddl_whose_schema_nobody_reports_is_an_error(name):
    with pytest.raises(DataError, match="names no schema for its table: TRUNCATE t"):
        read_header(record("DDL", objectName=name, afterImages="TRUNCATE t"), AT)
    entry = read_header(record("DDL", objectName=name, afterImages="TRUNCATE a.t"), AT)
    assert (entry.schema, entry.table) == ("a", "t")
    entry = read_header(record("DDL", objectName=name, afterImages="CREATE USER a"), AT)
    assert (entry.schema, entry.table) == ("", "")


def test_ddl_names_the_table_of_its_statement():
    entry = read_header(
        record("DDL", objectName="shop", afterImages="/* x */ ALTER TABLE `or``ders` ADD y INT"), AT
    )
    assert (entry.schema, entry.table) == ("shop", "or`ders")


def test_full_load_rows_are_rows():
    entry = read_header(row_record("INIT", [("id", 8)], after=[integer(1)]), AT)
    assert entry.kind is EntryKind.ROWS


@pytest.mark.parametrize("operation", ["ROLLBACK", "ABORT"])
def test_a_transaction_taken_back_after_rows_stops_the_stream(operation):
    reader = DtsHeaderReader()
    reader.read(record("BEGIN"), AT)
    ended = reader.read(record(operation), AT)
    assert ended.kind is EntryKind.COMMIT
    assert ended.statement == operation
    reader.read(record("BEGIN"), AT)
    reader.read(row_record("INSERT", [("id", 8)], after=[integer(1)]), AT)
    reader.read(record("HEARTBEAT"), AT)
    with pytest.raises(FatalError, match=operation):
        reader.read(record(operation), AT)


def test_rows_of_a_committed_transaction_do_not_count_for_the_next():
    reader = DtsHeaderReader()
    reader.read(record("BEGIN"), AT)
    reader.read(row_record("INSERT", [("id", 8)], after=[integer(1)]), AT)
    reader.read(record("COMMIT"), AT)
    assert reader.read(record("ROLLBACK"), AT).kind is EntryKind.COMMIT


LOGICAL = {"l_db_name": "shop", "l_tb_name": "orders"}


@pytest.mark.parametrize("source_type", ["DRDS", "MySQL"])  # PolarDB-X calls itself MySQL
@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        (LOGICAL, ("shop", "orders")),
        ({"l_tb_name": "orders"}, ("shop_0003", "orders")),
        ({"l_db_name": "shop"}, ("shop_0003", "orders_x7f_12")),
        ({"l_db_name": "", "l_tb_name": ""}, ("shop_0003", "orders_x7f_12")),
        ({}, ("shop_0003", "orders_x7f_12")),
    ],
)
def test_a_row_of_a_split_table_is_of_its_logical_table(source_type, tags, expected):
    value = row_record(
        "INSERT",
        [("id", 8)],
        after=[integer(1)],
        name="shop_0003.orders_x7f_12",
        source={"sourceType": source_type, "version": ""},
        tags=tags,
    )
    entry = read_header(value, AT)
    assert (entry.schema, entry.table) == expected
    physical = read_header(value, AT, logical_names=False)
    assert (physical.schema, physical.table) == ("shop_0003", "orders_x7f_12")


def test_the_name_of_a_tag_inside_a_value_is_no_tag():
    value = row_record("INSERT", [("note", 253)], after=[character(b"see l_tb_name")])
    entry = read_header(value, AT)
    assert (entry.schema, entry.table) == ("shop", "orders")


def test_ddl_of_a_split_table_names_the_logical_one():
    value = record("DDL", tags=LOGICAL, objectName="shop_0003", afterImages="TRUNCATE t_12")
    entry = read_header(value, AT)
    assert (entry.schema, entry.table) == ("shop", "orders")
    entry = read_header(value, AT, logical_names=False)
    assert (entry.schema, entry.table) == ("shop_0003", "t_12")


# ---- rows of a full load


def read_in_order(operations, first=0):
    """What the reader makes of records: letters of their kinds, boundaries in small ones."""
    reader, found = DtsHeaderReader(), []
    for number, operation in enumerate(operations, first):
        if operation in ("INSERT", "INIT"):
            value = row_record(operation, [("id", 8)], after=[integer(number)])
        else:
            value = record(operation)
        reader.read(value, KafkaPosition("orders", 0, number + 1))
        if reader.boundary:
            found.append("c")
        found.append(operation[:2] if operation == "INIT" else operation[0])
    return "".join(found)


@pytest.mark.parametrize(
    ("operations", "found"),
    [
        (["INIT"] * 3, "IN" * 3),
        (["INIT", "INIT", "INSERT", "INSERT"], "ININcII"),
        (["INIT", "BEGIN", "INSERT", "COMMIT", "INIT"], "INcBICIN"),
        (["INIT", "HEARTBEAT", "INIT", "COMMIT"], "INcHINcC"),
        (["INSERT", "INIT", "INIT"], "IcININ"),  # a COMMIT was left out
        (["INSERT", "HEARTBEAT", "INIT"], "IHcIN"),
        (["BEGIN", "INIT", "INIT", "INSERT", "COMMIT"], "BININIC"),
        (["COMMIT", "INIT"], "CIN"),
        (["INIT", "ROLLBACK"], "INcR"),  # takes back nothing
        (["INSERT"] * 4, "IIII"),
    ],
)
def test_where_a_full_load_begins_and_ends_is_a_boundary(operations, found):
    assert read_in_order(operations) == found


def test_an_endless_full_load_has_boundaries_and_reading_again_finds_the_same():
    whole = read_in_order(["INIT"] * 2000)
    assert whole == "c".join(["IN" * 512] * 3 + ["IN" * 464])
    again = read_in_order(["INIT"] * (2000 - 300), first=300)
    assert whole.endswith(again)


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_give_an_entry_or_a_data_error(value):
    try:
        entry = read_header(value, AT)
    except DataError:
        assert len(value) > 0
    else:
        assert entry.position.order == (0, 101)


@given(cut=st.integers(0, 400), flip=st.integers(0, 8 * 400))
def test_damaged_records_give_an_entry_or_a_data_error(cut, flip):
    value = bytearray(
        row_record(
            "UPDATE",
            [("id", 8), ("name", 253)],
            before=[integer(1), character(b"a")],
            after=[integer(1), character(b"b" * 200)],
            tags={"pk_uk_info": '{"PRIMARY":["id"]}'},
        )
    )
    value[flip // 8 % len(value)] ^= 1 << flip % 8
    damaged = bytes(value[: len(value) - cut])
    with contextlib.suppress(DataError):
        read_header(damaged, AT)


_steps = st.fixed_dictionaries(
    {
        "operation": st.sampled_from(
            ["INSERT", "UPDATE", "DELETE", "INSERT", "DELETE", "INIT", "BEGIN"]
        ),
        "name": st.sampled_from(["shop.orders", "shop_0003.orders_x7f_12"]),
        "seconds": st.sampled_from([1_700_000_000, 1_700_000_000, 1_700_000_001]),
        "transaction": st.sampled_from(["1", "1", "22"]),
        "logical": st.booleans(),
    }
)


@settings(max_examples=400, deadline=None)
@given(st.lists(_steps, max_size=25), st.booleans())
def test_what_is_remembered_of_the_records_before_changes_nothing(steps, logical_names):
    reader, seconds = DtsHeaderReader(logical_names=logical_names), -1.0
    for offset, step in enumerate(steps):
        common = {
            "sourceTimestamp": step["seconds"],
            "sourceTxid": step["transaction"],
            "tags": LOGICAL if step["logical"] and step["name"].startswith("shop_0003") else {},
        }
        if step["operation"] == "BEGIN":
            value = record(step["operation"], **common)
        else:
            images = {"before": [integer(1)], "after": [integer(2)]}
            value = row_record(
                step["operation"], [("id", 8)], name=step["name"], **images, **common
            )
        position = KafkaPosition("t", 0, offset, 0 if offset % 3 else 7)
        said = read_header(value, position, logical_names=logical_names)
        table = reader.table_of_row(value)
        if table is None:
            assert reader.read(value, position) == said
            seconds = said.timestamp
        else:
            assert (said.kind, said.timestamp) == (EntryKind.ROWS, seconds)
            assert (said.schema, said.table, said.statement) == (*table, "")
