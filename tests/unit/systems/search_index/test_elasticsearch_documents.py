import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.errors import DataError
from setl.load.deadletters.storing import Faults
from setl.model.change import ABSENT, TargetChanges
from setl.model.document import DocumentForm
from setl.model.labels import marked
from setl.model.schema import COLUMN_KINDS, Column, Kind
from setl.printable import text_of_bytes
from setl.systems.search_index.load.actions import render_actions
from setl.systems.search_index.load.documents import render_documents
from setl.systems.search_index.load.faults import render


def render_document(columns, row, form=None):
    return render_documents(columns, (row,), form)[0]


def rendered(kind, value):
    text = render_document((Column("c", kind),), (value,))
    assert text.startswith('{"c":')
    return text[5:-1]


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (Kind.INTEGER, 2**64 - 1, "18446744073709551615"),
        (Kind.YEAR, 2026, "2026"),
        (Kind.BIT, 5, "5"),
        (Kind.FLOAT, 1e16, "1e+16"),
        (Kind.DECIMAL, "-0.10", '"-0.10"'),
        (Kind.TEXT, 'a"b\\c\n😀\x00', '"a\\"b\\\\c\\n😀\\u0000"'),
        (Kind.ENUM, "x", '"x"'),
        (Kind.SET, "a,b", '["a","b"]'),
        (Kind.SET, "é", '["é"]'),
        (Kind.SET, "", "[]"),
        (Kind.TIME, "-838:59:59.000000", '"-838:59:59.000000"'),
        (Kind.DATE, "2024-02-29", '"2024-02-29"'),
        (Kind.DATETIME, "2026-01-02 03:04:05.000006", '"2026-01-02T03:04:05.000006"'),
        (Kind.TIMESTAMP, "2026-01-02 03:04:05.000006", '"2026-01-02T03:04:05.000006Z"'),
        (Kind.BINARY, b"\x00\xff\xfe", '"AP/+"'),
        (Kind.GEOMETRY, b"", '""'),
        (Kind.JSON, '{"a": 1.0}', '{"a": 1.0}'),
        (Kind.JSON, "[1,\r\n2]", "[1,  2]"),
        (Kind.JSON, '"\\n"', '"\\n"'),
        (Kind.JSON, "12345678901234567890.123", "12345678901234567890.123"),
    ],
)
def test_values(kind, value, expected):
    assert rendered(kind, value) == expected


@pytest.mark.parametrize("kind", COLUMN_KINDS)
def test_null_is_sent_as_null(kind):
    assert rendered(kind, None) == "null"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Kind.FLOAT, float("nan")),
        (Kind.FLOAT, float("-inf")),
        (Kind.INTEGER, "1"),
        (Kind.DATE, "0000-00-00"),
        (Kind.DATE, "2025-02-29"),
        (Kind.DATE, "2026-00-00"),
        (Kind.DATETIME, "0000-00-00 00:00:00.000000"),
        (Kind.DATETIME, "2026-01-01"),
        (Kind.DATETIME, '2026-01-01 "},{"'),
        (Kind.TIMESTAMP, "0000-00-00 00:00:00.000000"),
        (Kind.TEXT, b"a"),
        (Kind.BINARY, "a"),
        (Kind.JSON, "{"),
        (Kind.JSON, "NaN"),
        (Kind.JSON, '{"a":1}\n{"index":{}}'),
        (Kind.JSON, ""),
    ],
)
def test_what_a_document_cannot_hold_is_refused_with_its_column(kind, value):
    with pytest.raises(DataError, match="column c holds a value that a document cannot"):
        render_documents((Column("c", kind),), ((None,), (value,)))


def test_a_column_that_the_record_did_not_mention_is_refused():
    with pytest.raises(DataError, match="column c is missing"):
        render_document((Column("c", Kind.TEXT),), (ABSENT,))


def test_names_may_hold_anything():
    columns = (Column('a"%s', Kind.INTEGER), Column("100%", Kind.TEXT))
    assert json.loads(render_document(columns, (1, "%d"))) == {'a"%s': 1, "100%": "%d"}


@given(st.lists(st.tuples(st.integers(), st.none() | st.text()), min_size=1))
def test_many_rows_are_rendered_as_each_of_them_alone(rows):
    columns = (Column("i", Kind.INTEGER), Column("t", Kind.TEXT))
    together = render_documents(columns, rows)
    assert together == [render_document(columns, row) for row in rows]
    assert [json.loads(text) for text in together] == [{"i": i, "t": t} for i, t in rows]
    assert not any("\n" in text for text in together)


# -- actions -------------------------------------------------------------------------------

COLUMNS = (Column("id", Kind.INTEGER), Column("name", Kind.TEXT))
EXTERNAL = {"_index": "items", "version_type": "external_gte"}


def changes(upserts=(), deletes=(), columns=COLUMNS):
    return TargetChanges(
        ("", "items"),
        columns,
        (0,),
        list(upserts),
        list(deletes),
        [10 + i for i in range(len(upserts))],
        [20 + i for i in range(len(deletes))],
    )


def test_actions_carry_external_versions_and_deletes_come_first():
    actions = render_actions(changes([(1, "a"), (2, None)], [(3,)]))
    assert [[json.loads(line) for line in action.splitlines()] for action in actions] == [
        [{"delete": {"_id": "3", "version": 20, **EXTERNAL}}],
        [{"index": {"_id": "1", "version": 10, **EXTERNAL}}, {"id": 1, "name": "a"}],
        [{"index": {"_id": "2", "version": 11, **EXTERNAL}}, {"id": 2, "name": None}],
    ]
    assert all(action.endswith(b"\n") for action in actions)


def test_nothing_but_deletes_needs_no_documents():
    assert len(render_actions(changes([], [(1,), (2,)]))) == 2


@pytest.mark.parametrize(
    ("upserts", "deletes", "where"),
    [
        ([(1, "a"), (2, "caf\udce9")], [], {"index": "items", "column": "name", "key": "2"}),
        ([(1, "a"), (2, 5)], [], {"index": "items", "key": "2"}),
        ([(None, "a")], [], {"index": "items", "key": "None"}),
        ([], [(None,)], {"index": "items", "key": "None"}),
    ],
)
def test_a_row_that_is_refused_is_named(upserts, deletes, where):
    with pytest.raises(DataError) as caught:
        render_actions(changes(upserts, deletes))
    assert caught.value.where == where


def test_text_without_a_utf8_form_is_an_error_that_says_its_bytes():
    with pytest.raises(DataError) as caught:
        render_actions(changes([(1, "a"), (2, text_of_bytes("big5", "A4A4C840"))], []))
    assert "0xA4A4C840" in caught.value.message
    assert (caught.value.where["key"], caught.value.where["column"]) == ("2", "name")
    assert "dead_letter" in caught.value.hint


def test_a_second_encoding_of_a_character_is_that_character_in_a_document():
    _, made = render_actions(changes([(1, "a"), (2, text_of_bytes("sjis", "5C61"))], []))
    assert json.loads(made.splitlines()[1]) == {"id": 2, "name": "\\a"}


def test_a_key_without_a_utf8_form_is_named_so_that_it_can_be_logged():
    columns = (Column("id", Kind.TEXT), Column("name", Kind.TEXT))
    with pytest.raises(DataError) as caught:
        render_actions(changes([], [("caf\udce9",)], columns))
    assert caught.value.where["key"] == "caf\\udce9"


TEXTS = (Column("id", Kind.TEXT), Column("name", Kind.TEXT))


@pytest.mark.parametrize("key", ["k" * 513, "", None])
def test_a_row_that_no_document_could_be_made_of_may_be_deleted(key):
    """Its key was refused when it came, or `where` has kept it out."""
    some = changes([("1", "a")], [(key,), ("2",)], TEXTS)
    actions, origins, _ = render([some], Faults([], 0))
    assert [json.loads(action.splitlines()[0]) for action in actions] == [
        {"delete": {"_id": "2", "version": 21, **EXTERNAL}},
        {"index": {"_id": "1", "version": 10, **EXTERNAL}},
    ]
    assert [(origin.number, origin.delete) for origin in origins] == [(1, True), (0, False)]
    with pytest.raises(DataError):
        render([changes([(key, "a")], [], TEXTS)], Faults([], 0))
    with pytest.raises(DataError, match="missing"):
        render([changes([], [(ABSENT,)], TEXTS)], Faults([], 0))


# -- what a channel file chooses -------------------------------------------------------------

AS_NULL = DocumentForm(("", ""), (0,), no_dates_as_null=True)
DATES = (Column("id", Kind.INTEGER), Column("d", Kind.DATE), Column("t", Kind.DATETIME))


@pytest.mark.parametrize("day", ["0000-00-00", "2024-00-10", "2024-02-31", "0000-05-05"])
def test_dates_of_no_calendar_are_null_if_the_channel_file_says_so(day):
    row = (1, day, f"{day} 00:00:00.000000")
    assert render_document(DATES, row, AS_NULL) == '{"id":1,"d":null,"t":null}'
    with pytest.raises(DataError, match="column d holds a value") as caught:
        render_document(DATES, row)
    assert "zero_dates: as_null" in caught.value.hint


def test_what_is_no_date_at_all_is_refused_all_the_same():
    with pytest.raises(DataError, match="column d"):
        render_document(DATES, (1, "soon", None), AS_NULL)
    row = (1, "2024-02-29", "2024-02-29 01:02:03.000004")
    assert render_document(DATES, row, AS_NULL) == render_document(DATES, row)


def test_spatial_values_as_well_known_text():
    point = struct.pack("<IBIdd", 4326, 1, 1, 13.4, 52.5)
    form = DocumentForm(("", ""), (0,), geometry="wkt")
    columns = (Column("id", Kind.INTEGER), Column("g", Kind.GEOMETRY))
    assert render_document(columns, (1, point), form) == '{"id":1,"g":"POINT (13.4 52.5)"}'
    with pytest.raises(DataError, match="column g"):
        render_document(columns, (1, struct.pack("<IBIdd", 3857, 1, 1, 1, 2)), form)


ROUTED = DocumentForm(("", ""), (0,), routing=1)


def test_routing_is_in_every_action():
    part = TargetChanges(
        ("", "items"), COLUMNS, (0, 1), [(1, "b"), (2, None)], [(1, "a"), (3, None)],
        [10, 11], [10, 12], document=ROUTED,
    )  # fmt: skip
    heads = [json.loads(action.splitlines()[0]) for action in render_actions(part)]
    assert heads == [
        {"delete": {"_id": "1", "routing": "a", "version": 10, **EXTERNAL}},
        {"delete": {"_id": "3", "version": 12, **EXTERNAL}},
        {"index": {"_id": "1", "routing": "b", "version": 10, **EXTERNAL}},
        {"index": {"_id": "2", "version": 11, **EXTERNAL}},
    ]


ENUM_NUMBER, SET_NUMBER = marked("0="), marked("1=")
STATE, PARTS = Column("state", Kind.ENUM), Column("parts", Kind.SET)
ID = COLUMNS[0]


@pytest.mark.parametrize(
    ("columns", "upserts", "deletes"),
    [
        ((ID, STATE), [(7, ENUM_NUMBER)], []),
        ((ID, PARTS), [(7, SET_NUMBER)], []),
        ((STATE, ID), [(ENUM_NUMBER, 7)], []),
        ((PARTS, ID), [], [(SET_NUMBER,)]),
    ],
)
def test_a_number_that_prints_like_another_is_refused_and_named(columns, upserts, deletes):
    """Two rows would be one document if it were the text."""
    with pytest.raises(DataError, match=r"'', number [01] of the labels") as caught:
        render_actions(changes(upserts, deletes, columns))
    assert caught.value.where["column"] in {"state", "parts"}


def test_a_set_is_a_list_of_its_labels():
    actions = render_actions(changes([(1, ",x"), (2, "")], columns=(ID, PARTS)))
    documents = [json.loads(action.splitlines()[1]) for action in actions]
    assert [document["parts"] for document in documents] == [["", "x"], []]
