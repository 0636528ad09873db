"""What is compared, and not read, gives the entries that reading every record in full gives."""

from dataclasses import replace
from itertools import product
from unittest import mock
from zlib import crc32

import confluent_kafka
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setl.codec.dts import header_reader
from setl.codec.dts.header import read_header
from setl.codec.dts.relayed import HEADER, HEARTBEAT, LAST, RelayPosition, RelayTransaction
from setl.codec.dts.rows import DtsRowCodec
from setl.codec.row_codec import single_entries
from setl.errors import DataError
from setl.model.entry import EntryKind
from setl.model.position import KafkaOrigin, KafkaPosition
from setl.systems.kafka.record import TopicPartition
from setl.systems.kafka.source import entries as entries_of_records
from setl.systems.kafka.source import row_chunks
from setl.systems.kafka.source.entries import RecordEntries
from setl.systems.kafka.source.relay_repeats import RelayRepeats
from setl.systems.kafka.source.row_chunks import Mixing
from tests.unit.codec.dts_records import absent, branch, character, integer, moment, row_record
from tests.unit.codec.dts_records import record as dts_record

POSITION = KafkaPosition("orders", 0, 0)


class Message(confluent_kafka.Message):
    """A record as librdkafka has it; counts how often its headers were asked for."""

    def __init__(self, offset, value, headers=None):
        self._offset, self._value, self._headers = offset, value, headers
        self.asked = 0

    def offset(self):
        return self._offset

    def value(self):
        return self._value

    def headers(self):
        self.asked += 1
        return self._headers


def messages(records):
    """Records, each a value and its Kafka headers, as they are read."""
    return [Message(offset, *record) for offset, record in enumerate(records)]


ALL = Mixing(1000, 1 << 20, lambda schema: schema != "retl")


def read(polls, *, logical_names=True, mixing=None):
    """The entries of some polls, each record's its own, and the first error."""
    records = RecordEntries(
        TopicPartition("orders", 0),
        KafkaOrigin(),
        POSITION,
        logical_names=logical_names,
        mixing=mixing,
    )
    found, codec = [], DtsRowCodec()
    for poll in polls:
        if poll:
            entries, error = records.of(poll)
            for entry in entries:
                found += [shown(single) for single in single_entries(codec, entry)]
            if error is not None:
                return found, (type(error), str(error))
    return found, None


def read_one_by_one(polls, *, logical_names=True):
    """What `read` gives, by reading each record, and the position of each, in full."""
    repeats, found = RelayRepeats("orders", 0), []
    for message in (message for poll in polls for message in poll):
        headers, value, offset = message._headers, message._value or b"", message.offset()
        try:
            if headers and repeats.is_repeat(offset, headers):
                continue
            position = KafkaPosition("orders", 0, offset + 1)
            entry = read_header(value, position, logical_names=logical_names)
        except DataError as error:
            return found, (type(error), str(error))
        found.append(shown(entry))
    return found, None


def in_order(found):
    """What `read` gives where runs lie between each other, in the order of the records."""
    entries, error = found
    # Of two entries with one place, the first one is a row's, and the other one ends there.
    return sorted(entries, key=lambda entry: entry.position), error


def shown(entry):
    """An entry without what is remembered of others: times of those that have none."""
    return entry._replace(position=entry.position.offset)


COLUMNS = [("id", 8), ("name", 253), ("at", 12), ("more", 9999)]
_VALUES = st.sampled_from(
    [
        None, absent(), integer(-1), integer(2**63), character(b""), character(b"l_tb_name"),
        character("ü".encode() * 90), moment(2026, *[None] * 6), moment(*[-1] * 7),
        branch("Decimal", value="-1.50", precision=9, scale=2),
        branch("Float", value=-0.0, precision=1, scale=0),
        branch("Timestamp", timestamp=-(2**40), millis=1),
        branch("TimestampWithTimeZone", value=moment(2026, 1, 2, 3, 4, 5, 6)[1], timezone="UTC"),
        branch("BinaryGeometry", type="", value=b"\0"), branch("TextObject", type="JSON", value=""),
        branch("TextGeometry", type="", value=""), branch("BinaryObject", type="", value=b""),
    ]
)  # fmt: skip
_IMAGES = st.tuples(*[_VALUES] * len(COLUMNS)).map(list)
_NAMES = st.sampled_from(["shop.orders", "shop.items", "a\\u002Eb.c", "ü.ü", "t"])
_LOGICAL = {"l_db_name": "shop", "l_tb_name": "others"}
_TAGS = st.sampled_from([{}, {"pk_uk_info": '{"PRIMARY":["id"]}', "server_id": ""}, _LOGICAL])
_POSITIONS = st.sampled_from(["7@1", "8@1", "123456789@1", "ü", "", "9" * 70])


@st.composite
def _values(draw):
    """Records of transactions of a subscription; ids, times and places are anything."""
    made = []
    for number in range(draw(st.integers(1, 3))):
        common = {
            "sourceTxid": draw(st.sampled_from(["0", f"uuid:{number}"])),
            "safeSourcePosition": draw(_POSITIONS),
        }
        operations = draw(st.lists(st.sampled_from(["INSERT", "UPDATE", "DELETE"]), max_size=6))
        names, tags = draw(st.sampled_from([_NAMES, st.just("t")])), draw(_TAGS)
        ends = draw(st.sampled_from([["COMMIT"], ["HEARTBEAT", "COMMIT"], ["DDL"], []]))
        for operation in ["BEGIN", *operations, *ends]:
            own = {
                **common,
                "id": draw(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300)),
                "version": draw(st.sampled_from([0, 0, -1, 2**31 - 1])),
                "sourceTimestamp": draw(st.sampled_from([1_700_000_000, 1_700_000_001, -5, 0])),
                "sourcePosition": draw(_POSITIONS),
                "tags": draw(st.sampled_from([tags, tags, {}, _LOGICAL])).copy(),
                "length": draw(st.sampled_from([14, 15])),
            }
            if operation in ("BEGIN", "COMMIT", "HEARTBEAT", "DDL"):
                own["tags"] |= draw(st.sampled_from([{}, {"GTID": f"g-{number}"}]))
                if operation == "DDL":
                    own |= {"objectName": "shop", "afterImages": "DROP TABLE t"}
                made.append(dts_record(operation, **own))
                continue
            before = None if operation == "INSERT" else draw(_IMAGES | st.none())
            after = None if operation == "DELETE" else draw(_IMAGES)
            name = draw(names)
            made.append(
                row_record(operation, COLUMNS, before=before, after=after, name=name, **own)
            )
    return made


def cut(draw, made):
    """Records as polls."""
    ends = sorted(draw(st.lists(st.integers(0, len(made)), max_size=3)))
    return [made[a:b] for a, b in zip([0, *ends], [*ends, len(made)], strict=True)]


@settings(max_examples=200, deadline=None)
@given(st.data(), st.booleans(), st.sampled_from([1, 2, 4]))
def test_records_of_any_kind(data, logical_names, worth):
    polls = cut(data.draw, messages([(value, None) for value in data.draw(_values())]))
    expected = read_one_by_one(polls, logical_names=logical_names)
    with mock.patch.object(header_reader, "_WORTH", worth):
        assert read(polls, logical_names=logical_names) == expected
        assert in_order(read(polls, logical_names=logical_names, mixing=ALL)) == expected


def test_a_logical_name_is_seen_behind_rows_without_one():
    rows = [("INSERT", {}), *[("UPDATE", {})] * 9, ("UPDATE", _LOGICAL), ("UPDATE", {})]
    values = [row_record(operation, COLUMNS, tags=tags) for operation, tags in rows]
    values.append(row_record("UPDATE", COLUMNS, tags=_LOGICAL, name="shop_3.orders_7"))
    polls = [messages([(value, None) for value in values])]
    assert read(polls) == read_one_by_one(polls)


def usual():
    """A transaction whose records are told by those before them."""
    common = {"sourceTxid": "g-1", "tags": {"pk_uk_info": '{"PRIMARY":["id"]}'}}
    image = [integer(1), character(b"a name"), moment(2026, 1, 2, 3, 4, 5, 6), None]
    return [
        dts_record("BEGIN", id=1, sourceTxid="g-1", tags={"thread_id": "5", "GTID": "g-1"}),
        row_record("INSERT", COLUMNS, after=image, id=2, **common),
        row_record("UPDATE", COLUMNS, before=image, after=image, id=2**20, **common),
        row_record("DELETE", COLUMNS, before=image, id=2**30, **common),
        row_record("INSERT", COLUMNS, after=image, id=2**31, **common),
        row_record("INSERT", COLUMNS, after=image, id=2**40, name="shop.items", **common),
        dts_record("COMMIT", id=2**41, sourceTxid="g-1", tags={"GTID": "g-1"}),
    ]


def damaged_anywhere(whole):
    """A record cut off at each byte, and with each byte changed in three ways."""
    for at in range(len(whole)):
        yield whole[:at]
        for change in (1 << at % 8, 0x80, 0xFF):
            yield whole[:at] + bytes([whole[at] ^ change]) + whole[at + 1 :]


@pytest.mark.parametrize("number", range(7))
def test_a_record_that_is_damaged_anywhere(number, monkeypatch):
    monkeypatch.setattr(header_reader, "_WORTH", 1)  # so that the last row of orders is compared
    records = usual()
    for damaged in damaged_anywhere(records[number]):
        values = [*records[:number], damaged, *records[number + 1 :]]
        poll = messages([(value, None) for value in values])
        assert read([poll]) == read_one_by_one([poll])


# Ids of six bytes, as a relay's are; that of the seventh record has another second byte than those
# before it.
_ALIKE_FROM = 2**40 + 57


ONE, TURNS = ("shop.orders",), ("shop.orders", "shop.items")


def alike(count, tables=ONE, **first):
    """Rows of a transaction that differ in ids, places and values alone; its tables take turns."""
    common = {"sourceTxid": "g-1", "tags": {"pk_uk_info": '{"PRIMARY":["id"]}'}}
    made = [dts_record("BEGIN", id=_ALIKE_FROM, sourceTxid="g-1", tags={"GTID": "g-1"})]
    for number in range(1, count + 1):
        own = {"id": _ALIKE_FROM + number, "sourcePosition": f"{1000 + number}@1", **common}
        own["name"] = tables[number % len(tables)]
        image = [integer(number), character(b"a name"), moment(2026, 1, 2, 3, 4, 5, 6), None]
        made.append(row_record("INSERT", COLUMNS, after=image, **own | first.get(f"n{number}", {})))
    made.append(dts_record("COMMIT", id=_ALIKE_FROM + count + 1, sourceTxid="g-1"))
    return made


@pytest.fixture
def soon(monkeypatch):
    """It is looked after one row already whether more are like it."""
    monkeypatch.setattr(header_reader, "_WORTH", 1)
    monkeypatch.setattr(entries_of_records, "_WORTH", 1)


@pytest.fixture
def counted(monkeypatch):
    """How many records were taken as alike, each time that it was looked."""
    found, rows_alike = [], header_reader.DtsHeaderReader.rows_alike

    def counting(self, *args):
        found.append(rows_alike(self, *args))
        return found[-1]

    monkeypatch.setattr(header_reader.DtsHeaderReader, "rows_alike", counting)
    return found


@pytest.fixture
def ahead(monkeypatch):
    """Of how many records the tables were told ahead, each time that it was looked."""
    found, tables_ahead = [], header_reader.DtsHeaderReader.tables_ahead

    def counting(self, *args):
        tables = tables_ahead(self, *args)
        found.append(len(tables))
        return tables

    monkeypatch.setattr(header_reader.DtsHeaderReader, "tables_ahead", counting)
    return found


def test_rows_that_are_alike_are_taken_together(counted):
    poll = messages([(value, None) for value in alike(30)])
    assert read([poll]) == read_one_by_one([poll])
    assert max(counted) > 20


def test_tables_that_take_turns_are_reported_ahead(ahead):
    tables = [*TURNS * 4, *ONE * 9, *TURNS]
    poll = messages([(value, None) for value in alike(60, tables)])
    expected = read_one_by_one([poll])
    assert read([poll]) == expected
    assert in_order(read([poll], mixing=ALL)) == expected
    assert sum(ahead) > 20


def test_rows_that_were_reported_ahead_are_counted_when_they_are_taken_back(ahead):
    values = [*alike(9, TURNS)[:-1], dts_record("ROLLBACK", id=_ALIKE_FROM + 10)]
    _, error = read([messages([(value, None) for value in values])])
    assert sum(ahead) == 6
    assert error is not None
    assert "a transaction of 9 rows" in error[1]


@pytest.mark.parametrize("number", [6, 7, 8])
def test_a_record_among_those_reported_ahead_that_is_damaged_anywhere(number, ahead):
    records = alike(9, TURNS)
    assert read([messages([(value, None) for value in records])])[1] is None
    assert sum(ahead) == 6
    for damaged in damaged_anywhere(records[number]):
        values = [*records[:number], damaged, *records[number + 1 :]]
        poll = messages([(value, None) for value in values])
        assert read([poll]) == read_one_by_one([poll])


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("number", [6, 7, 8])
def test_a_record_among_those_alike_that_is_damaged_anywhere(number, counted):
    records = alike(9)
    assert read([messages([(value, None) for value in records])])[1] is None
    assert sum(counted) >= 6
    for damaged in damaged_anywhere(records[number]):
        values = [*records[:number], damaged, *records[number + 1 :]]
        poll = messages([(value, None) for value in values])
        assert read([poll]) == read_one_by_one([poll])


_OTHERWISE = [
    {"id": _ALIKE_FROM}, {"id": _ALIKE_FROM + 6}, {"id": 5}, {"id": 2**50}, {"id": -1},
    {"id": _ALIKE_FROM + 2**20}, {"id": _ALIKE_FROM + 2**21}, {"version": 1},
    {"sourceTimestamp": 1_700_000_001},
    {"sourcePosition": "ü1007"}, {"sourcePosition": "99999@1"}, {"sourcePosition": ""},
    {"sourcePosition": "9" * 70}, {"safeSourcePosition": "3@1"}, {"sourceTxid": "g-2"},
    {"tags": {}}, {"tags": _LOGICAL}, {"name": "shop.items"}, {"name": ""},
    {"source": {"sourceType": "MySQL", "version": "9"}}, {"length": 14},
]  # fmt: skip


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("more", _OTHERWISE, ids=str)
@pytest.mark.parametrize("headers", [None, []])
def test_a_record_among_those_alike_that_is_otherwise(more, headers):
    for number in (6, 7):
        poll = messages([(value, headers) for value in alike(9, **{f"n{number}": more})])
        assert read([poll]) == read_one_by_one([poll])


@pytest.mark.parametrize("more", _OTHERWISE, ids=str)
def test_a_record_among_those_reported_ahead_that_is_otherwise(more):
    for number in (6, 7):
        poll = messages([(value, None) for value in alike(9, TURNS, **{f"n{number}": more})])
        expected = read_one_by_one([poll])
        assert read([poll]) == expected
        assert in_order(read([poll], mixing=ALL)) == expected


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("tables", [("a.b",), ("a.b", "a.c")])
def test_what_is_as_short_as_a_filler_is_read(tables, counted, ahead):
    columns, image = [("c", 253)], [character(b"x" * 60)]
    front = {
        "sourcePosition": "1", "safeSourcePosition": "", "sourceTxid": "",
        "source": {"sourceType": "MySQL", "version": ""},
    }  # fmt: skip
    common = {**front, "tags": {}}
    ids = range(_ALIKE_FROM, _ALIKE_FROM + 8)
    records = [
        row_record("INSERT", columns, after=image, id=i, name=tables[i % len(tables)], **common)
        for i in ids
    ]
    records = [dts_record("BEGIN", id=ids[0] - 1, tags={"GTID": "g"}, **front), *records]
    for length in (30, 40, 48, 49):
        values = [*records[:6], records[6][:length], *records[7:]]
        poll = messages([(value, None) for value in values])
        assert read([poll]) == read_one_by_one([poll])
    assert sum(ahead) if len(tables) > 1 else counted


def test_a_run_takes_several_as_it_takes_one_by_one(monkeypatch):
    monkeypatch.setattr(row_chunks, "MOST_RECORDS", 5)
    monkeypatch.setattr(row_chunks, "MOST_BYTES", 20)
    table = ("shop", "orders")
    for sizes in product((1, 4, 9, 25), repeat=3):
        values = [bytes(size) for size in sizes] * 2
        offsets = list(range(7, 13))
        for first in (1, 19, 20, 30):
            some, one_by_one = (row_chunks.RowChunk(table, 1.0, 6, bytes(first)) for _ in range(2))
            count = some.takes_of(offsets, values)
            taken = [one_by_one.takes(table, *each) for each in zip(offsets, values, strict=True)]
            assert count == (taken.index(False) if False in taken else 6)
            assert (some.offsets, some.values, some.room) == (
                one_by_one.offsets[: count + 1], one_by_one.values[: count + 1],
                20 - first - sum(map(len, values[:count])),
            )  # fmt: skip


# ---- what relays wrote


def relayed(generation, transactions, tables=2):
    """The records of some transactions as a relay writes them."""
    made = []
    for begin, gaps in transactions:
        name = RelayTransaction(generation, "bin.000001", begin, "s", gtid=f"g-{begin}")
        common = {
            "sourceTxid": name.gtid, "safeSourcePosition": f"{begin}@1",
            "tags": {"GTID": name.gtid},
        }  # fmt: skip
        ordinals = [sum(gaps[: i + 1]) for i in range(len(gaps))]
        operations = ["BEGIN", *["INSERT"] * len(gaps), "COMMIT"]
        idents = [0, *ordinals, sum(gaps) + 31]
        for operation, ident, ordinal in zip(operations, idents, [0, *ordinals, LAST], strict=True):
            own = {
                **common,
                "id": _ALIKE_FROM + begin + ident,
                "sourcePosition": f"{begin + ident}@1",
            }
            name_of_table = ["shop.orders", "shop.items"][ident % tables]
            value = (
                row_record(operation, COLUMNS, after=[None] * 4, name=name_of_table, **own)
                if operation == "INSERT"
                else dts_record(operation, **own)
            )
            made.append((value, [(HEADER, RelayPosition(name, ordinal).encoded())]))
    return made


@st.composite
def _repeating(draw):
    """A relay's records, and between them what it, or a former one, has written again."""
    starts = sorted(draw(st.sets(st.integers(1, 9), min_size=1, max_size=3)))
    gaps = st.lists(st.integers(1, 3), min_size=1, max_size=9)
    transactions = [(100 * start, draw(gaps)) for start in starts]
    tables = draw(st.integers(1, 2))
    former, own = (relayed(generation, transactions, tables) for generation in (1, 2))
    made = list(own)
    for _ in range(draw(st.integers(0, 3))):
        stale = draw(st.booleans())
        at = draw(st.integers(0, len(made)))
        there = former if stale else [r for r in made[:at] if r in own]
        first = draw(st.integers(0, max(0, len(there) - 1)))
        made[at:at] = there[first : first + draw(st.integers(1, 4))]
    return made


@pytest.mark.usefixtures("soon")
def test_a_repeat_among_records_of_which_few_have_a_position_is_dropped():
    name = RelayTransaction(1, "bin.000001", 100, "s")
    with_place = {7: 7, 10: 7, 13: 8}
    records = [
        (
            value,
            [(HEADER, RelayPosition(name, with_place[n]).encoded())] if n in with_place else None,
        )
        for n, value in enumerate(alike(15))
    ]
    entries, error = read([messages(records)])
    assert (entries, error) == read_one_by_one([messages(records)])
    assert [entry.position for entry in entries] == [n for n in range(1, 18) if n != 11]


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from([1, 4]))
def test_what_relays_repeat_is_found_wherever_it_stands(data, worth):
    polls = cut(data.draw, messages(data.draw(_repeating())))
    with (
        mock.patch.object(header_reader, "_WORTH", worth),
        mock.patch.object(entries_of_records, "_WORTH", worth),
    ):
        assert read(polls) == read_one_by_one(polls)
        assert in_order(read(polls, mixing=ALL)) == read_one_by_one(polls)


def in_turns(*tables):
    """A transaction that changes tables in turn."""
    common = {"sourceTxid": "g-1", "tags": {"pk_uk_info": '{"PRIMARY":["id"]}'}}
    image = [integer(1), character(b"a name"), None, None]
    return [
        dts_record("BEGIN", id=1, sourceTxid="g-1", tags={"GTID": "g-1"}),
        *[
            row_record("INSERT", COLUMNS, after=image, id=2 + n, name=table, **common)
            for n, table in enumerate(tables)
        ],
        dts_record("COMMIT", id=99, sourceTxid="g-1", tags={"GTID": "g-1"}),
    ]


A, B, OWN = "shop.a", "shop.b", "retl.retl_mark"


@pytest.mark.parametrize(
    ("tables", "limits", "cut_at", "expected"),
    [
        ([A, B, A, B, A], {}, 99, [("b", 2), ("a", 3)]),
        ([A, B, A, B, A], {"rows": 5}, 99, [("b", 2), ("a", 3)]),
        ([A, B, A, B, A], {"rows": 4}, 99, [("a", 1), ("b", 1)] * 2 + [("a", 1)]),
        ([A, B, A, B, A], {"bytes": 99}, 99, [("a", 1), ("b", 1)] * 2 + [("a", 1)]),
        # Not seen from its BEGIN to its COMMIT at once: a batch might end in it.
        ([A, A, B, A, B], {}, 6, [("a", 2), ("b", 1), ("a", 1), ("b", 1)]),
        ([A, B, A, B, A], {}, 1, [("a", 1), ("b", 1)] * 2 + [("a", 1)]),
        # A mark keeps its position, by which a transaction is known for a channel's own.
        ([OWN, A, B, A], {}, 99, [("retl_mark", 1), ("b", 1), ("a", 2)]),
        (
            [OWN, A, B, A, OWN, A],
            {},
            99,
            [("retl_mark", 1), ("a", 1), ("b", 1), ("a", 1), ("retl_mark", 1), ("a", 1)],
        ),
    ],
)
def test_a_small_transaction_has_one_run_for_each_of_its_tables(tables, limits, cut_at, expected):
    known = in_turns(A, B, OWN, A, B, OWN)
    values = in_turns(*tables)
    poll = messages([(value, None) for value in [*known, *values]])
    poll, at = poll[len(known) :], len(known)
    mixing = replace(ALL, **limits)
    records = RecordEntries(
        TopicPartition("orders", 0), KafkaOrigin(), POSITION, logical_names=False, mixing=mixing
    )
    records.of(messages([(value, None) for value in known]))  # so that all tables were seen
    found = []
    for part in (poll[:cut_at], poll[cut_at:]):
        if part:
            entries, error = records.of(part)
            assert error is None
            found += entries
    shown_runs = [(e.table, e.rows) for e in found if e.kind is EntryKind.ROWS]
    assert shown_runs == expected
    positions = [e.position.offset for e in found]
    assert positions == sorted(positions)
    assert positions[-1] == at + len(values)


def test_headers_are_looked_at_where_transactions_begin_and_end():
    poll = messages(relayed(1, [(100, [1] * 20), (900, [1, 7, 2])]))
    entries, error = read([poll])
    assert (len(entries), error) == (27, None)
    assert [m.offset() for m in poll if m.asked] == [0, 21, 22, 26]


def test_headers_that_nobody_understands_are_an_error_that_has_its_position():
    records = relayed(1, [(100, [1] * 5)])
    records[4] = records[4][0], [(HEADER, b"another release")]
    poll = messages([*records[:5], *relayed(1, [(900, [1])])])
    entries, error = read([poll])
    assert len(entries) == 4
    assert error is not None
    assert error[0] is DataError
    assert "not a relay's place" in error[1]


def test_a_heartbeat_of_a_relay_between_two_transactions_is_no_part_of_them():
    heart = RelayPosition(RelayTransaction(1, "bin.000001", 500, "s"), HEARTBEAT)
    beat = (dts_record("HEARTBEAT", id=500), [(HEADER, heart.encoded())])
    records = [*relayed(1, [(100, [1, 2])]), beat, beat, *relayed(1, [(900, [1])])]
    polls = [messages(records)]
    assert read(polls) == read_one_by_one(polls)


def test_a_position_names_the_last_record_of_a_run():
    poll = messages([(value, None) for value in usual()])
    records = RecordEntries(
        TopicPartition("orders", 0), KafkaOrigin(), POSITION, logical_names=True
    )
    entries, _ = records.of(poll)
    assert [(e.rows, e.position.offset) for e in entries] == [(0, 1), (4, 5), (1, 6), (0, 7)]
    for entry in entries:
        position = entry.position
        assert isinstance(position, KafkaPosition)
        assert position.record == crc32(poll[position.offset - 1].value())
        assert position.timestamp == 1_700_000_000
