"""Payloads keep every value as it is."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.errors import DataError, FatalError
from setl.load.deadletters.dead_letter import (
    content_from_text,
    content_to_text,
    key_hash,
    letter_of,
)
from setl.model.change import ABSENT, Op
from setl.model.document import DocumentForm
from setl.model.faulty import FaultyRow, RawRecord, SourceChange, TargetRow
from setl.model.position import BinlogPosition, KafkaPosition, document_version
from setl.model.schema import Column, Kind, RowSchema
from tests.loading import ticket_for

ID = Column("id", Kind.INTEGER, unsigned=True)
NAME = Column("name", Kind.TEXT, binary_order=True)
INNER = Column("lines", Kind.JSON, fields=(ID, NAME))

values = st.one_of(
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=())),
    st.binary(),
    st.none(),
    st.just(ABSENT),
    st.tuples(st.tuples(st.integers(), st.binary())),
)


@given(values, values)
def test_a_row_comes_back_as_it_was(first, second):
    schema = RowSchema("s", "t", (ID, NAME), (0,), ((1,),))
    form = DocumentForm.of_key(2)
    for content in (
        TargetRow(("", "i"), (ID, NAME, INNER), (1, 0), (first, second, None), document=form),
        TargetRow(("s.s", "t"), (ID, NAME), (0,), (first,), delete=True, group="g"),
        SourceChange(schema, Op.UPDATE, (first, 1), None, number=3),
        SourceChange(replace(schema, unlogged=("v",)), Op.UPDATE, (first, 1), None),
        TargetRow(("s", "t"), (ID,), (0,), (first,), unlogged=("v",)),
        RawRecord("binlog", b"\x00\xff", (b"a", b""), ("s", "t")),
    ):
        text = content_to_text(content)
        assert text.isascii()
        back = content_from_text(text)
        assert back == content
        # 1 and 1.0 are equal, but not the same.
        assert repr(back) == repr(content)


def test_what_is_no_number_comes_back():
    content = TargetRow(("s", "t"), (ID,), (0,), (float("nan"),))
    # Other readers of JSON know no NaN.
    json.loads(content_to_text(content), parse_constant=pytest.fail)
    assert "values=(nan,)" in repr(content_from_text(content_to_text(content)))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"form":"row"}', '{"form":"record","codec":1}'])
def test_what_was_not_written_by_setl_is_an_error(text):
    with pytest.raises(FatalError, match="cannot be read"):
        content_from_text(text)


def faulty(version=7, key=(1,), values=(1, "a")):
    content = TargetRow(("s", "t"), (ID, NAME), (0,), values)
    return FaultyRow(("s", "t"), "x.t", version, content, DataError("no"), key, (ID,))


def unkeyed(number):
    change = SourceChange(RowSchema("x", "t", (ID,)), Op.INSERT, None, (1,), number=number)
    return FaultyRow(("s", "t"), "x.t", 7, change, DataError("no"))


def test_the_id_is_that_of_the_change_and_not_of_the_attempt():
    first = letter_of(faulty(), ticket_for("p", epoch=1, batch_id=1), 1.0)
    again = letter_of(faulty(values=(1, "b")), ticket_for("p", epoch=2, batch_id=9), 2.0)
    assert first.id == again.id
    others = [
        letter_of(faulty(version=8), ticket_for("p"), 1.0),
        letter_of(faulty(key=(2,)), ticket_for("p"), 1.0),
        letter_of(unkeyed(0), ticket_for("p"), 1.0),
        letter_of(unkeyed(1), ticket_for("p"), 1.0),
        letter_of(faulty(), ticket_for("q"), 1.0),
    ]
    assert len({first.id, *(letter.id for letter in others)}) == 6


def test_the_position_is_reported_by_the_version():
    at = BinlogPosition("db-bin.000017", 999)
    position = BinlogPosition("db-bin.000016", 4711)
    row = faulty(version=document_version(3, position))
    ticket = ticket_for("p")
    letter = letter_of(row, replace(ticket, at=at), 1.0)
    assert letter.position == "db-bin.000016:4711"
    offset = KafkaPosition("orders", 2, (1 << 40) + 5)
    row = faulty(version=document_version(3, offset))
    near = KafkaPosition("orders", 2, 0)
    letter = letter_of(row, replace(ticket, at=near), 1.0)
    assert letter.position == f"orders[2]@{(1 << 40) + 5}"
    assert letter.operation == "upsert"
    assert letter.key_values == "[1]"


def test_documents_of_two_forms_are_two_though_their_keys_agree():
    one, two = DocumentForm(("a-", ""), (0,)), DocumentForm(("b-", ""), (0,))
    assert key_hash((1,), one) != key_hash((1,), two)
    assert key_hash((1,)) != key_hash(("1",))
    assert key_hash(None) == ""
