"""Faulty changes are taken out of a share, and nothing else is lost."""

import pickle

import pytest

from setl.channel.file import Pipeline
from setl.channel.routes.routing import Router
from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op
from setl.model.faulty import RawRecord
from setl.model.schema import Column, Kind, RowSchema
from setl.transform.partition import shuffle
from setl.transform.partition_compaction import compact
from setl.transform.placement import homes_of
from setl.transform.work import TransformPlan, WorkItem
from tests.letters import content_of

ID, NAME = Column("id", Kind.INTEGER), Column("name", Kind.TEXT)
SCHEMA = RowSchema("shop", "t", (ID, NAME), (0,))
MYSQL = {"type": "mysql", "user": "u"}


def plan(**options):
    raw = {
        "name": "p",
        "source": {**MYSQL, "host": "a"},
        "target": {**MYSQL, "host": "b"},
        "tables": [{"from": "shop.*"}],
    }
    isolates = options.pop("isolates", True)
    excluded = options.pop("excluded", {})
    raw["tables"][0] |= options
    router = Router(Pipeline.model_validate(raw))
    return TransformPlan("binlog", router, isolates=isolates, excluded=excluded)


def item(version, *images, op=Op.INSERT):
    decoded = DecodedRows(SCHEMA, op, list(images))
    return WorkItem((0,), version, (), b"", ("shop", "t"), decoded)


def inserts(version, *rows):
    return item(version, *((None, row) for row in rows))


BROKEN = WorkItem((0,), 11, (b"no", b"event"), b"at all", ("shop", "t"))


def test_a_record_that_cannot_be_decoded_is_stored_as_it_came():
    found = compact(plan(), [inserts(10, (1, "a")), BROKEN, inserts(12, (2, "b"))])
    ((_, _, part),) = found.survivors
    assert part.upserts == [(1, "a"), (2, "b")]
    ((_, fault),) = found.faulty
    assert fault.content == RawRecord("binlog", b"at all", (b"no", b"event"), ("shop", "t"))
    assert (fault.version, fault.target, fault.source) == (11, ("shop", "t"), "shop.t")
    assert fault.key is None
    assert found.rows == 3


def test_without_isolation_the_first_one_is_an_error():
    with pytest.raises(DataError):
        compact(plan(isolates=False), [inserts(10, (1, "a")), BROKEN])


def test_of_a_record_only_the_faulty_changes_are_taken_out():
    moved = [((1, ABSENT), (5, ABSENT)), ((2, "b"), (6, "b")), ((3, ABSENT), (7, ABSENT))]
    found = compact(
        plan(), [inserts(10, (9, "z")), item(11, *moved, op=Op.UPDATE), inserts(12, (4, "d"))]
    )
    ((_, _, part),) = found.survivors
    assert sorted(part.upserts) == [(4, "d"), (6, "b"), (9, "z")]
    assert part.deletes == [(2,)]
    images = [(content_of(f).before, content_of(f).after) for _, f in found.faulty]
    assert images == [moved[0], moved[2]]
    # Ids of their letters differ though nobody knows their keys.
    assert len({f.number for _, f in found.faulty}) == 2
    again = [
        WorkItem((0,), 11, (), b"", ("shop", "t"), DecodedRows(SCHEMA, Op.UPDATE, [moved[2]]), 2)
    ]
    ((_, third),) = compact(plan(), again).faulty
    assert third.content == found.faulty[1][1].content


def test_rows_without_a_value_in_the_key_are_taken_out():
    found = compact(plan(key=["name"]), [inserts(10, (1, "a"), (2, None), (3, "c"))])
    ((_, _, part),) = found.survivors
    assert part.upserts == [(1, "a"), (3, "c")]
    ((_, fault),) = found.faulty
    assert content_of(fault).after == (2, None)


def test_rows_that_are_known_to_be_faulty_are_taken_out_with_their_key():
    error = DataError("division by zero")
    excluded = {(0, (2,), 11): error, (0, (1,), 99): error}
    found = compact(plan(excluded=excluded), [inserts(10, (1, "a")), inserts(11, (2, "b"))])
    ((_, _, part),) = found.survivors
    assert (part.upserts, part.upsert_versions) == ([(1, "a")], [10])
    ((_, fault),) = found.faulty
    assert (fault.key, fault.key_columns, fault.error) == ((2,), (ID,), error)


def test_a_faulty_row_goes_where_later_changes_of_it_go():
    excluded = {(0, (n,), 11): DataError("no") for n in range(8)}
    items = [inserts(11, *((n, "a") for n in range(16)))]
    shuffled = shuffle(plan(excluded=excluded), pickle.dumps(items), 4)
    homes = {row.key: bucket for bucket, s in shuffled for row in pickle.loads(s).faulty}
    assert homes == {(n,): homes_of([(n,)], (0,), 4)[0] for n in range(8)}
    partitions = [pickle.loads(partition) for _, partition in shuffled]
    written = sorted(row[0] for s in partitions for c in s.changes for row in c.upserts)
    assert written == list(range(8, 16))


def named(*items):
    """What is left with `name` as key: upserts, deletes, and the images of faulty rows."""
    found = compact(plan(key=["name"]), items)
    images = [(content_of(f).before, content_of(f).after) for _, f in found.faulty]
    upserts = [row for _, _, part in found.survivors for row in part.upserts]
    deletes = [key for _, _, part in found.survivors for key in part.deletes]
    return upserts, deletes, images


def updates(version, *images):
    return item(version, *images, op=Op.UPDATE)


def test_rows_without_the_key_that_a_mapping_names_are_faulty_each_on_its_own():
    two = inserts(10, (1, None), (2, None))
    assert named(two) == ([], [], [(None, (1, None)), (None, (2, None))])
    given = updates(11, ((2, None), (2, "b")))
    assert named(two, given) == ([(2, "b")], [], [(None, (1, None))])
    gone = item(11, ((2, None), None), op=Op.DELETE)
    assert named(two, gone) == ([], [], [(None, (1, None))])
    changed = updates(11, ((2, None), (3, None)))
    assert named(two, changed) == ([], [], [(None, (1, None)), (None, (3, None))])


def test_a_row_that_loses_its_key_is_deleted_and_faulty():
    lost = updates(11, ((1, "a"), (1, None)), ((2, "b"), (2, None)))
    faulty = [(None, (1, None)), (None, (2, None))]
    assert named(inserts(10, (1, "a")), lost) == ([], [("a",), ("b",)], faulty)


def test_a_row_without_a_key_of_an_earlier_load_may_be_at_the_target():
    given = updates(11, ((2, None), (2, "b")))
    assert named(given) == ([(2, "b")], [], [(None, None)])
    with pytest.raises(DataError):
        compact(plan(key=["name"], isolates=False), [given])
