"""What a MariaDB 11.8 logs of a table with generated columns, in events that one sent.

The table has a key, `a`, `v` and `s` made of it, and a TEXT.
"""

import struct

import pytest

from setl.channel.routes.routing import Route
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.errors import DataError
from setl.model.change import ABSENT, Op, TargetChanges
from setl.model.entry import EntryKind
from setl.model.position import BinlogPosition
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.mysql.sink.unlogged_columns import unfilled
from setl.transform.compaction import Compactor
from setl.transform.merging import merge
from setl.transform.projection import project
from setl.transform.unchanged import UnchangedRows
from tests.unit.codec.binlog_events import INT, EventWriter, entries_of, field, names, stored

ALL, TOLD = ("id", "a", "v", "s", "b"), ("id", "a", "b")


@pytest.fixture(scope="module")
def logged():
    events, said = stored("generated_columns")
    start = BinlogPosition(said["start"]["file"], said["start"]["offset"])
    entries, _ = entries_of(events, start)
    return [entry for entry in entries if entry.kind is EntryKind.ROWS]


@pytest.fixture(scope="module")
def changes(logged):
    codec = BinlogRowCodec()
    return [codec.decode(entry.payload, entry.context) for entry in logged]


def test_updates_are_of_the_columns_that_they_tell(changes):
    whole, *updates = changes[:5]
    assert whole.schema.names == ALL
    assert whole.images == [(None, (1, 1, 2, 2, "b")), (None, (2, 2, 3, 4, "c"))]
    assert {(u.op, u.schema.names, u.schema.unlogged, u.schema.key) for u in updates} == {
        (Op.UPDATE, TOLD, ("v", "s"), (0,))
    }
    assert [u.images for u in updates] == [
        [((1, 1, "b"), (1, 7, "b"))],
        [((1, 7, "b"), (5, 8, "b"))],
        [((2, 2, "c"), (2, 9, None))],  # a REPLACE
        [((2, 9, None), (2, 9, "k"))],  # ON DUPLICATE KEY UPDATE
    ]


def test_a_delete_has_its_key(changes):
    assert changes[5].images == [((5, 8, ABSENT, ABSENT, "b"), None)]


def test_sessions_with_other_images(changes):
    without_text, without_doubles, minimal = changes[6:]
    assert without_text.schema.unlogged == ("v", "s", "b")
    assert without_text.images == [((2, 9), (2, 4))]
    assert without_doubles.schema.unlogged == ("v", "s")
    assert without_doubles.images == [((2, 4, "k"), (2, 5, "k"))]
    # Here what is not there is unchanged, unless it is generated.
    assert minimal.schema.names == ALL
    assert minimal.images == [
        ((2, ABSENT, ABSENT, ABSENT, ABSENT), (ABSENT, 6, ABSENT, ABSENT, ABSENT))
    ]


def test_a_minimal_update_says_nothing_of_generated_columns_that_are_known(logged):
    *whole, last = [entry for entry in logged if entry.kind is EntryKind.ROWS]
    known = BinlogRowCodec().decode(last.payload, (*last.context, b"", b"", b"s\0v"))
    assert (known.schema.names, known.schema.unlogged) == (TOLD, ("v", "s"))
    assert known.images == [((2, ABSENT, ABSENT), (ABSENT, 6, ABSENT))]
    same = BinlogRowCodec().decode(whole[0].payload, (*whole[0].context, b"", b"", b"s\0v"))
    assert same.schema.names == ALL


def test_whoever_asks_for_keys_alone_gets_all_columns(logged):
    rows = BinlogRowCodec().decode(logged[1].payload, logged[1].context, keys_alone=True)
    assert rows.schema.names == ALL


def written(route, *changes):
    """What is left of changes, for a route."""
    compactor = Compactor()
    for version, decoded in enumerate(changes):
        compactor.add_many(decoded, version)
    return project([(route, part.schema, part) for part in compactor.survivors()])


def reported(changes):
    return {
        (change.unlogged, tuple(c.name for c in change.columns)): change.upserts
        for change in changes
    }


def test_an_insert_lends_nothing_to_an_update_behind_it(changes):
    """The row moves to another key, and its generated columns have other values there."""
    found = written(Route(0, ("x", "t")), *changes[:3])
    assert reported(found) == {((), ALL): [(2, 2, 3, 4, "c")], (("v", "s"), TOLD): [(5, 8, "b")]}
    assert [key for change in found for key in change.deletes] == [(1,)]
    assert not any(change.partial for change in found)


def test_neither_does_one_of_another_task(changes):
    route = Route(0, ("x", "t"))
    first, second = written(route, changes[0]), written(route, changes[1]._replace())
    second[0].upsert_versions[:] = [7]
    assert reported(merge([*first, *second])) == {
        ((), ALL): [(2, 2, 3, 4, "c")],
        (("v", "s"), TOLD): [(1, 7, "b")],
    }


def test_what_is_not_mapped_is_not_missing(changes):
    for route in (
        Route(0, ("", "index"), exclude=("V", "s")),
        Route(0, ("x", "t"), include=("id", "a")),
    ):
        (change,) = written(route, changes[1])
        assert change.unlogged == ()


def test_a_document_needs_all_of_its_columns(changes):
    with pytest.raises(DataError, match="does not say what v, s of its row holds") as caught:
        written(Route(0, ("", "index")), changes[1])
    assert "read: source" in caught.value.hint
    assert caught.value.where["key"] == "1"


def test_a_renamed_column_is_missing_under_its_new_name(changes):
    (change,) = written(Route(0, ("x", "t"), renames={"w": "v"}, exclude=("s",)), changes[1])
    assert change.unlogged == ("w",)


@pytest.mark.parametrize(
    ("v", "given", "missing"), [(True, (), []), (False, (), ["V"]), (False, ("v",), [])]
)
def test_a_target_that_computes_it_needs_no_value(v, given, missing):
    target = RowSchema(
        "x", "t", (Column("id", Kind.INTEGER), Column("v", Kind.INTEGER, generated=v)), (0,)
    )
    columns = (Column("id", Kind.INTEGER), *(Column(name, Kind.INTEGER) for name in given))
    change = TargetChanges(("x", "t"), columns, (0,), unlogged=("V", "elsewhere"))
    assert unfilled(change, target) == missing


def test_an_update_that_says_not_all_may_change_a_column_that_is_mapped(changes):
    """Of what is mapped only `s` changes, of which nothing is said."""
    route = Route(0, ("x", "t"), exclude=("a",), skips_unchanged=True)
    assert UnchangedRows(route).left_out(changes[1]).images == changes[1].images


@pytest.mark.parametrize(("version", "narrow"), [(b"11.8.9-MariaDB", True), (b"10.11.6-Ma", False)])
def test_an_insert_of_a_younger_mariadb_may_be_a_replace(version, narrow):
    """As 11.8 logs a row of REPLACE that replaced another."""
    writer = EventWriter(mariadb=True)
    opening = writer.format_description()
    opening = opening[:21] + version.ljust(50, b"\0") + opening[71:]
    table = writer.table_map([INT, INT], optional=names("id", "g") + field(8, b"\0"))
    event = writer.rows(23, 2, [b"\0" + struct.pack("<i", 1)], present=b"\1")
    if narrow:
        rows = BinlogRowCodec().decode(event, (opening, table))
        assert (rows.images, rows.schema.unlogged) == ([(None, (1,))], ("g",))
        return
    with pytest.raises(DataError, match="an insert leaves columns out"):
        BinlogRowCodec().decode(event, (opening, table))


def test_a_minimal_update_takes_no_generated_column_of_the_row_before_it(logged, changes):
    """An earlier image of the row says what else it holds, but not what is generated now."""
    last = logged[-1]
    minimal = BinlogRowCodec().decode(last.payload, (*last.context, b"", b"", b"s\0v"))
    route = Route(0, ("x", "t"))
    found = written(route, changes[0], minimal)
    assert reported(found) == {((), ALL): [(1, 1, 2, 2, "b")], (("v", "s"), TOLD): [(2, 6, "c")]}
    first, second = written(route, changes[0]), written(route, minimal)
    second[0].upsert_versions[:] = [7]
    assert reported(merge([*first, *second])) == {
        ((), ALL): [(1, 1, 2, 2, "b")],
        (("v", "s"), TOLD): [(2, 6, "c")],
    }
