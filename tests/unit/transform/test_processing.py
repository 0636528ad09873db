"""Processors: what becomes of what they return, and how they fail."""

import sys
import textwrap

import pytest

from setl.errors import ConfigurationError, DataError
from setl.model.change import DecodedRows, Op
from setl.model.schema import Column, Kind, RowSchema
from setl.transform.processing import processed, processor_named

SCHEMA = RowSchema(
    "shop", "orders", (Column("id", Kind.INTEGER), Column("name", Kind.TEXT)), key=(0,)
)
CODE = """
    from setl.model.change import Op
    from setl.model.typed import TypedChange

    def keep(change):
        return change

    def drop(change):
        return None

    def split(change):
        for part in (1, 2):
            yield change.mapped(lambda row: {"id": row.as_integer("id") * 10 + part})

    def end(change):
        return change.as_delete() if change.row.as_text("name") == "end" else change

    def wider(change):
        return change.with_values({"length": len(change.row.as_text("name"))})

    def fails(change):
        if change.row.as_integer("id") == 2:
            raise LookupError("no such customer")
        return change

    def misreads(change):
        return change if change.row.as_float("nothing") else None

    def late(change):
        yield change
        raise KeyError("late")

    def wrong(change):
        return "orders"

    def renamed(change):
        return change.with_values({"name": "other"})

    def leaves(change):
        raise SystemExit("all done")

    def made(change):
        number = change.row.as_integer("id")
        op, *images = {
            1: (Op.INSERT, None, (1,)),
            2: (Op.INSERT, None, None),
            3: (Op.UPDATE, (3, "a"), None),
            4: (Op.DELETE, None, (4, "a")),
        }[number]
        return TypedChange(change.schema, op, *images)

    class Rules:
        @staticmethod
        def keep(change):
            return change

    number = 5
"""


@pytest.fixture
def rules(tmp_path, monkeypatch):
    name = f"rules_{abs(hash(tmp_path)):x}"
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(CODE))
    (tmp_path / f"{name}_broken.py").write_text("raise RuntimeError('at once')\n")
    (tmp_path / f"{name}_program.py").write_text("raise SystemExit(0)\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield name
    processor_named.cache_clear()
    sys.modules.pop(name, None)


def inserts(*rows):
    return DecodedRows(SCHEMA, Op.INSERT, [(None, row) for row in rows])


def run(name, decoded, key=()):
    return list(processed(name, decoded, key))


def test_what_is_returned_is_applied(rules):
    decoded = inserts((1, "a"), (2, "b"))
    assert run(f"{rules}:keep", decoded) == [decoded]
    assert run(f"{rules}:Rules.keep", decoded) == [decoded]
    assert run(f"{rules}:drop", decoded) == []


def test_one_change_may_become_several(rules):
    (part,) = run(f"{rules}:split", inserts((1, "a"), (2, "b")))
    assert [after and after[0] for _, after in part.images] == [11, 12, 21, 22]


def test_other_operations_stay_in_their_order(rules):
    parts = run(f"{rules}:end", inserts((1, "a"), (2, "end"), (3, "b")))
    assert [(part.op, part.images) for part in parts] == [
        (Op.INSERT, [(None, (1, "a"))]),
        (Op.DELETE, [((2, "end"), None)]),
        (Op.INSERT, [(None, (3, "b"))]),
    ]


def test_columns_may_be_added(rules):
    (part,) = run(f"{rules}:wider", inserts((1, "abc"), (2, "")))
    assert part.schema.names == ("id", "name", "length")
    assert [after for _, after in part.images] == [(1, "abc", 3), (2, "", 0)]


@pytest.mark.parametrize(
    ("function", "text", "key"),
    [
        ("fails", "raised LookupError: no such customer in line", "2"),
        ("misreads", "there is no column 'nothing'", "1"),
        ("late", "raised KeyError: 'late' in line", "1"),
        ("leaves", "raised SystemExit: all done in line", "1"),
    ],
)
def test_what_a_processor_raises_names_the_row(rules, function, text, key):
    with pytest.raises(DataError) as failed:
        run(f"{rules}:{function}", inserts((1, "a"), (2, "b")))
    assert text in failed.value.message
    where = failed.value.where
    assert (where["processor"], where["key"]) == (f"{rules}:{function}", key)
    assert where["table"] == "shop.orders"


def test_the_row_is_named_by_the_columns_that_identify_it(rules):
    with pytest.raises(DataError) as failed:
        run(f"{rules}:fails", inserts((2, "b")), key=("name", "id"))
    assert failed.value.where["key"] == "b, 2"


def test_what_is_no_change_is_refused(rules):
    with pytest.raises(ConfigurationError, match="returns str, which is no change"):
        run(f"{rules}:wrong", inserts((1, "a")))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1, "a row that has not a value for each of the 2 columns"),
        (2, "an insert without the row after it"),
        (3, "an update without the row after it"),
        (4, "a delete without the row before it"),
    ],
)
def test_a_change_that_cannot_be_is_refused(rules, number, text):
    with pytest.raises(ConfigurationError, match=text):
        run(f"{rules}:made", inserts((number, "a")))


@pytest.mark.parametrize(("key", "routing"), [(("name",), None), ((), "name")])
def test_what_a_row_is_found_by_is_not_changed_in_one_of_its_images(rules, key, routing):
    """A delete would not find the row that an insert has made."""
    assert run(f"{rules}:renamed", inserts((1, "a")))
    with pytest.raises(DataError, match="without the row before it"):
        list(processed(f"{rules}:renamed", inserts((1, "a")), key, routing))


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        ("_nowhere:keep", "cannot be imported: ModuleNotFoundError"),
        ("_broken:keep", "cannot be imported: RuntimeError: at once"),
        ("_program:keep", "cannot be imported: SystemExit: 0"),
        (":nothing", "has no function nothing"),
        (":number", "has no function number"),
    ],
)
def test_a_processor_that_is_not_there(rules, suffix, text):
    with pytest.raises(ConfigurationError) as refused:
        processor_named(rules + suffix)
    assert text in refused.value.message
