"""Records that are read by column say what decoding them one by one says, or are refused."""

import pickle
from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setl.codec.columns.column_rows import ColumnRows
from setl.codec.columns.images import UnfitRowsError
from setl.codec.columns.values import WHOLE, texts_made
from setl.codec.dts.columns import finding
from setl.codec.dts.row_chunks import CHUNK_FRONT, MARK, joined
from setl.codec.dts.rows import DtsRowCodec
from setl.codec.row_codec import DAMAGED
from setl.errors import DataError
from setl.model.change import Op
from setl.model.labels import LABELLED
from setl.model.schema import Kind
from tests.unit.codec.dts_records import (
    absent,
    branch,
    character,
    fixture_records,
    integer,
    moment,
    row_record,
)
from tests.unit.codec.test_dts_by_hand import changing_streams, streams, usual

VERSION = 1 << 40
REFUSED = (DataError, *DAMAGED)

_TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
_LONG = st.integers(0, 20_000).map(lambda size: "x" * size)
_TIME = (st.integers(0, 23), st.integers(0, 59), st.integers(0, 59), st.integers(0, 999_999))
_DAY = (st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31))


def _moments(*parts):
    return st.tuples(*parts).map(lambda parts: moment(*parts))


def _typed(name, *types):
    value = st.binary(max_size=20) if name.startswith("Binary") else _TEXT
    return [st.builds(lambda v, t=t: branch(name, type=t, value=v), value) for t in types]


_NONE = [st.none()] * 7
# A MySQL type number, and values of which one column has one sort.
SORTS = [
    *[(number, st.integers(-(2**63), 2**63 - 1).map(integer)) for number in (1, 3, 8)],
    (3, st.builds(integer, st.integers(0, 99), st.integers(0, 130))),
    (8, st.integers(0, 2**64 - 1).map(integer)),
    (16, st.integers(0, 2**64 - 1).map(integer)),
    (13, st.integers(1901, 2155).map(integer)),
    (13, _moments(st.integers(0, 2155), *_NONE[:6])),
    *[
        (253, st.builds(lambda v, c=c: character(v.encode(), c), _TEXT | _LONG))
        for c in ("utf8mb4", "ascii")
    ],
    (253, st.binary(max_size=9).map(lambda v: character(v, "utf8mb4"))),
    (253, st.binary(max_size=9).map(lambda v: character(v, "latin1"))),
    (253, st.binary(max_size=9).map(lambda v: character(v, "sjis"))),
    (252, st.binary(max_size=300).map(lambda v: character(v, "binary"))),
    (253, _TEXT.map(lambda v: character(v.encode("utf-16-be"), "utf16"))),
    (247, st.sampled_from(["a", "b", "ü"]).map(lambda v: character(v.encode(), "utf8mb4"))),
    (
        246,
        st.decimals(-999, 999, places=2).map(
            lambda v: branch("Decimal", value=str(v), precision=5, scale=2)
        ),
    ),
    (246, st.sampled_from(["1E-8", "1.0", "0", "-0.0"]).map(
        lambda v: branch("Decimal", value=v, precision=9, scale=8))),
    (5, st.floats().map(lambda v: branch("Float", value=v, precision=22, scale=0))),
    (
        7,
        st.builds(
            lambda s, m: branch("Timestamp", timestamp=s, millis=m),
            st.integers(0, 2**32 - 1) | st.integers(-9, 2**33),
            st.integers(0, 999_999),
        ),
    ),
    (12, _moments(*_DAY, *_TIME)),
    (14, _moments(*_DAY, *_TIME)),
    (10, _moments(*_DAY, *_NONE[:4])),
    (10, _moments(*_DAY, *[st.sampled_from([0, None])] * 4)),
    (11, _moments(*_NONE[:3], st.integers(-838, 838), *[st.integers(-59, 59)] * 2, _TIME[3])),
    (14, _moments(*_NONE[:3], *_TIME)),
    (9999, _moments(*_DAY, *_NONE[:4])),
    *[(245, sort) for sort in _typed("TextObject", "JSON")],
    *[(248, sort) for sort in _typed("TextObject", "SET", "ENUM", "SET_NUMBER", "TEXT")],
    *[(252, sort) for sort in _typed("BinaryObject", "BLOB")],
    *[(255, sort) for sort in _typed("BinaryGeometry", "GEOMETRY")],
    *[(255, sort) for sort in _typed("TextGeometry", "GEOMETRY")],
    (3, st.none()),
    (12, st.none()),
]  # fmt: skip


@st.composite
def tables(draw):
    """Records of one table, whose columns hold values of one sort, or NULL."""
    sorts = draw(st.lists(st.sampled_from(SORTS), min_size=1, max_size=9))
    columns = [(f"c{i}", number) for i, (number, _) in enumerate(sorts)]
    image = st.tuples(
        *[sort | st.none() if draw(st.booleans()) else sort for _, sort in sorts]
    ).map(list)
    made = []
    for number, operation in enumerate(
        draw(st.lists(st.sampled_from(["INSERT", "UPDATE", "DELETE", "INIT"]), max_size=8))
    ):
        made.append(
            row_record(
                operation,
                columns,
                before=None if operation in ("INSERT", "INIT") else draw(image),
                after=None if operation == "DELETE" else draw(image),
                length=15,
                id=draw(st.integers(0, 2**50)),
                sourcePosition=f"{number}@{draw(st.integers(0, 10**6))}",
                tags={"t": draw(st.sampled_from(["1", "22"]))},
            )
        )
    return made


def one_by_one(codec, records):
    """What decoding says: operation, images and version of each record."""
    found = []
    for offset, value in records:
        rows = codec.decode(value, ())
        found.append((rows.op, *rows.images[0], VERSION + offset))
    return found


def found_rows(codec, payloads):
    form = codec.row_form(payloads[0][1], ())
    return None if form is None else codec.find_rows(form, payloads)


def by_column(codec, payloads):
    """The same by column; None if the records are refused."""
    try:
        found = found_rows(codec, payloads)
        if found is None:
            return None
        found.values.convert()
        rows = ColumnRows(found, found.starts, values=found.values).decoded()
    except REFUSED:
        return None
    said, at = [], 0
    for updated, deleted, version in zip(found.updated, found.deleted, found.versions, strict=True):
        op = Op.UPDATE if updated else Op.DELETE if deleted else Op.INSERT
        before = None if op is Op.INSERT else rows[at]
        after = None if op is Op.DELETE else rows[at + updated]
        said.append((op, before, after, int(version)))
        at += 1 + updated
    return said


def payloads_of(records, cuts=()):
    """Runs of some records, each with its version."""
    runs = [records[a:b] for a, b in pairwise([0, *sorted(cuts), len(records)]) if a < b]
    return [(VERSION + run[-1][0], joined(run)) for run in runs]


def numbered(values):
    return [(2**32 - 15 + 10 * n, value) for n, value in enumerate(values)]


@settings(max_examples=300)
@given(tables() | streams() | changing_streams(), st.data())
def test_by_column_is_the_same_or_refused(values, data):
    if not values:
        return
    records, codec = numbered(values), DtsRowCodec()
    cuts = data.draw(st.sets(st.integers(1, len(records))))
    expected: object = "refused"
    with suppress(DataError):
        for _ in range(2):  # what is learned of the last record may concern the first
            expected = one_by_one(codec, records)
    found = by_column(codec, payloads_of(records, cuts))
    # repr: -0.0 is not 0.0, and 1 is not True.
    assert found is None or repr(found) == repr(expected)


def values_asked(found):
    """All that a writer of rows may ask of values, as text."""
    values, said = found.values, []
    for column in range(len(found.form.schema.columns)):
        kind = values.kind(column)
        if kind in LABELLED:
            held, which = values.labels(column)
            said.append([held[number] for number in which])
        elif kind in WHOLE:
            said.append(values.whole(column).tolist())
        elif kind is Kind.FLOAT:
            said.append(values.floating(column).tolist())
        elif (texts := values.texts(column)) is not None:
            data = values.window.bytes if texts.data is None else texts.data
            said.append([bytes(data[a:b]) for a, b in zip(texts.starts, texts.stops, strict=True)])
        else:
            said.append(texts_made(values.made(column), values.count))
        codes, count = values.codes(column)
        assert codes.max(initial=0) < max(count, 1)
    return said


@settings(max_examples=150)
@given(tables())
def test_whatever_is_asked_for_is_what_rows_hold(values):
    codec = DtsRowCodec()
    try:
        for value in values * 2:
            codec.decode(value, ())
        found = found_rows(codec, payloads_of(numbered(values)))
        if found is None:
            return
        found.values.convert()
        asked = values_asked(found)
    except (*REFUSED, IndexError):
        return
    columns = [list(column) for column in zip(*ColumnRows(found, found.starts), strict=True)]
    for i, (held, given_) in enumerate(zip(columns, asked, strict=True)):
        null = found.values.nulls.get(i, np.zeros(len(held), np.bool_))
        for value, other, absent_ in zip(held, given_, null.tolist(), strict=True):
            if absent_:
                assert value is None
                continue
            raw = value.encode() if isinstance(value, str) and isinstance(other, bytes) else value
            assert repr(raw) == repr(other)
        codes, _ = found.values.codes(i)
        for one, code in zip(held, codes.tolist(), strict=True):
            for two, another in zip(held, codes.tolist(), strict=True):
                if one is not None and two is not None:
                    assert (one == two) == (code == another) or one != one


USUAL_RECORDS = numbered(
    [usual(op, n, n) for n, op in enumerate(["INSERT", "UPDATE", "DELETE", "UPDATE", "INSERT"], 1)]
)


def test_usual_records_are_read_by_column():
    codec = DtsRowCodec()
    expected = one_by_one(codec, USUAL_RECORDS)
    for cuts in ((), (2,), (1, 2, 3, 4)):
        assert by_column(codec, payloads_of(USUAL_RECORDS, cuts)) == expected
    form = codec.row_form(USUAL_RECORDS[0][1], ())
    assert form is codec.row_form(USUAL_RECORDS[1][1], ())


def test_a_table_that_was_not_seen_before_is_learned_from_its_first_record():
    records = numbered([usual("UPDATE", 3), usual("UPDATE", 5)])  # odd, so nothing is NULL
    assert by_column(DtsRowCodec(), payloads_of(records)) == one_by_one(DtsRowCodec(), records)


def test_it_is_estimated_how_many_records_there_are():
    codec, payload = DtsRowCodec(), joined(numbered([usual("INSERT", 3)] * 50))
    assert round(codec.likely_rows(payload, (), len(payload))) == 50
    assert codec.likely_rows(b"", (), 0) == 0


def test_rows_are_sent_as_bytes():
    codec = DtsRowCodec()
    one_by_one(codec, USUAL_RECORDS)
    found = found_rows(codec, payloads_of(USUAL_RECORDS))
    assert found is not None
    rows = ColumnRows(found, found.starts).picked((2, 0))
    sent = pickle.loads(pickle.dumps(rows))
    assert sent == rows
    assert sent[1] == rows[1] == rows[1:2][0]
    assert sent.joined([rows]) == [*rows, *rows]
    assert rows.taken([3, 1]) == [rows[3], rows[1]]


def test_a_table_is_read_again_only_if_records_say_something_else(monkeypatch):
    def at(second):
        keys = {"pk_uk_info": '{"PRIMARY":["id"]}', "readerThroughoutTime": f"17000000{second}"}
        return usual("UPDATE", second, tags=keys)

    codec, records = DtsRowCodec(), numbered([at(n // 3) for n in range(30, 60)])
    expected = one_by_one(codec, records)
    read, times = finding.read_identity, []

    def counted(*args, **options):
        times.append(args)
        return read(*args, **options)

    monkeypatch.setattr(finding, "read_identity", counted)
    assert by_column(codec, payloads_of(records)) == expected
    assert len(times) == 1


@pytest.mark.parametrize("operation", ["INSERT", "UPDATE", "DELETE"])
def test_no_record_is_taken_whose_bytes_are_damaged(operation):
    codec = DtsRowCodec()
    ids = (2**40 + 62, 2**40 + 63, 2**40 + 64)
    one, two, three = (usual(operation, 3, id=ident, sourcePosition="123@4") for ident in ids)
    expected = one_by_one(codec, numbered([one, two, three]))
    assert by_column(codec, payloads_of(numbered([one, two, three]))) == expected
    for at in range(len(three)):
        for damage in (0x01, 0x02, 0x7F, 0x80, 0xFF):
            damaged = three[:at] + bytes([three[at] ^ damage]) + three[at + 1 :]
            records = numbered([one, two, damaged])
            found = by_column(codec, payloads_of(records))
            # Then it is a record to whoever reads it alone, too.
            assert found is None or repr(found) == repr(one_by_one(codec, records))


@pytest.mark.parametrize("operation", ["INSERT", "UPDATE", "DELETE"])
def test_what_is_cut_off_anywhere_is_refused(operation):
    codec, whole = DtsRowCodec(), usual(operation, 3)
    codec.decode(whole, ())
    rest = len(usual(operation, 3, bornTimestamp=0)) - 1  # a reader stops before bornTimestamp
    for end in range(rest):
        records = numbered([whole, whole[:end], whole])
        assert by_column(codec, payloads_of(records)) is None
        assert by_column(codec, [(VERSION, whole), (VERSION, whole[:end])]) is None
    payload = joined(numbered([whole, whole]))
    assert by_column(codec, [(VERSION, payload[:-1])]) is None


def test_what_is_out_of_the_ordinary_is_refused():
    codec, fine = DtsRowCodec(), usual("INSERT", 3)
    codec.decode(fine, ())
    image = [integer(2**64 - 1), *[None] * 7]
    columns = [("id", 8), *[("c", 3)] * 7]
    odd = [
        row_record("DELETE", columns, before=[integer(1), *[absent()] * 7]),
        usual("INSERT", 6, name="shop.items"),
        row_record("INSERT", [("id", 8)], after=[integer(1)]),
        row_record("INSERT", columns, after=image),
        b"x",
    ]
    for value in odd:
        assert by_column(codec, payloads_of(numbered([fine, value, fine]))) is None


@pytest.mark.parametrize("values", [(1, 2**64 - 1), (2**64 - 1, 1)])
def test_a_number_that_teaches_something_of_its_column_is_refused_once(values):
    codec = DtsRowCodec()
    records = numbered([row_record("INSERT", [("n", 8)], after=[integer(v)]) for v in values])
    first = by_column(codec, payloads_of(records))
    expected = one_by_one(codec, records)
    assert first in (None, expected)
    assert by_column(codec, payloads_of(records)) == expected


def test_values_may_hold_any_bytes():
    columns = [("id", 8), ("b", 252)]

    def value(before, after):
        images = [
            [integer(3), branch("BinaryObject", type="BLOB", value=blob)]
            for blob in (before, after)
        ]
        return row_record("UPDATE", columns, before=images[0], after=images[1])

    whole, codec = value(b"x", b"fake"), DtsRowCodec()
    odd = [b"", b"\0\4\4", whole[whole.rindex(b"\0\4\4") :], whole, joined([(1, whole)] * 2), MARK]
    for blob in odd:
        records = numbered([value(blob, b"y"), value(b"y", blob)])
        assert by_column(codec, payloads_of(records)) == one_by_one(codec, records)


@pytest.mark.parametrize("operation", ["INSERT", "UPDATE", "DELETE"])
def test_an_image_does_not_go_on_in_the_next_record_of_a_run(operation):
    image = [integer(7), branch("BinaryObject", type="BLOB", value=b"b" * 100)]
    whole = row_record(
        operation,
        [("id", 8), ("b", 252)],
        before=None if operation == "INSERT" else image,
        after=None if operation == "DELETE" else image,
    )
    codec = DtsRowCodec()
    codec.decode(whole, ())
    cut = whole.rindex(b"b" * 100) + 20
    # What stands before the next record is as long as what is missing of the value.
    payload = joined([(1, whole[:cut]), (2, whole[cut + CHUNK_FRONT.size :])])
    with pytest.raises((UnfitRowsError, *DAMAGED)):
        found_rows(codec, [(VERSION, payload)])


def test_the_fixture_says_the_same_by_column():
    codec, taken = DtsRowCodec(), 0
    for value, _ in fixture_records() * 2:
        try:
            expected = one_by_one(codec, [(0, value)])
        except DataError:
            continue
        found = by_column(codec, [(VERSION, value)])
        assert found is None or repr(found) == repr(expected)
        taken += found is not None
    assert taken
