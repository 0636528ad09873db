"""Updates that change nothing that the target has are left out, and nothing else is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op, Row
from setl.model.schema import Column, Kind, RowSchema
from setl.transform.columns import ColumnPlan
from setl.transform.partition_compaction import compact
from setl.transform.unchanged import UnchangedRows
from tests.unit.transform.test_compaction_ways import Stream, image, plan_of

SKIPS = {"include": ["id", "n"], "unchanged": "skip"}
SENT = {"include": ["id", "n"]}
INSERT, UPDATE, DELETE = 30, 31, 32

keys, numbers, texts = st.integers(0, 4), st.none() | st.integers(0, 2), st.sampled_from("xyz")
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("put"), keys, numbers, texts),
        st.tuples(st.just("move"), keys, keys),
        st.tuples(st.just("delete"), keys),
    ),
    max_size=12,
)


def events_of(stream, held, changes):
    """Events of the changes that a table would carry out, which are carried out in `held`."""
    for what, key, *rest in changes:
        if what == "put":
            after = tuple(rest)
            if key in held:
                images = [image(key, *held[key]), image(key, *after)]
                yield stream.event(UPDATE, images)
            else:
                yield stream.event(INSERT, [image(key, *after)])
            held[key] = after
        elif key not in held:
            continue
        elif what == "delete":
            yield stream.event(DELETE, [image(key, *held.pop(key))])
        elif rest[0] not in held:
            held[rest[0]] = held.pop(key)
            images = [image(key, *held[rest[0]]), image(rest[0], *held[rest[0]])]
            yield stream.event(UPDATE, images)


def applied(mapping, events, target):
    """What becomes of a target; returns the number of rows written, too."""
    plan, stream = plan_of(mapping), Stream()
    compacted = compact(plan, [stream.item([event]) for event in events])
    target, written = dict(target), 0
    for route, schema, left in compacted.survivors:
        columns = ColumnPlan.build(schema, route)
        for (key,) in left.deletes:
            target.pop(key, None)
        for key, n in columns.rows(left.upserts):
            target[key] = n
            written += 1
    assert compacted.rows == len(events), "they count as applied"
    return target, written


@given(st.dictionaries(keys, st.tuples(numbers, texts)), CHANGES)
def test_the_target_ends_as_it_would_without(rows, changes):
    held = dict(rows)
    events = list(events_of(Stream(), held, changes))
    before = {key: n for key, (n, _) in rows.items()}
    skipping, few = applied(SKIPS, events, before)
    sending, all_of_them = applied(SENT, events, before)
    assert skipping == sending == {key: n for key, (n, _) in held.items()}
    assert few <= all_of_them


def test_what_changes_another_column_is_not_written():
    stream = Stream()
    update = stream.event(UPDATE, [image(1, 7, "x"), image(1, 7, "y")])
    assert applied(SKIPS, [update], {1: 7}) == ({1: 7}, 0)
    assert applied(SENT, [update], {1: 7}) == ({1: 7}, 1)


def test_what_was_put_aside_is_written_again_all_the_same():
    stream, plan = Stream(), plan_of(SKIPS)
    item = stream.item([stream.event(UPDATE, [image(1, 7, "x"), image(1, 7, "y")])])
    assert compact(plan, [item]).survivors == []
    ready = DecodedRows(*compact_once(stream), [((1, 7, "x", "0"), (1, 7, "y", "0"))])
    ((_, _, left),) = compact(plan, [item._replace(decoded=ready)]).survivors
    assert left.upserts == [(1, 7, "y", "0")]


def compact_once(stream):
    item = stream.item([stream.event(INSERT, [image(1, 7)])])
    ((_, schema, _),) = compact(plan_of(SENT), [item]).survivors
    return schema, Op.UPDATE


@pytest.mark.parametrize(
    "images", [(None, (1, 7, "y", "0")), ((1, ABSENT, "x", "0"), (1, 7, "y", "0"))]
)
def test_an_update_that_does_not_say_all_of_it_stays(images):
    schema, op = compact_once(Stream())
    (route,) = plan_of(SKIPS).router.route("shop", "orders")
    decoded = DecodedRows(schema, op, [images])
    assert UnchangedRows(route).left_out(decoded) == decoded


def test_a_zero_that_gets_another_sign_has_changed():
    """Servers keep it, and write it to their binlog; both are equal to Python."""
    columns = (Column("id", Kind.INTEGER), Column("n", Kind.FLOAT), Column("t", Kind.TEXT))
    schema = RowSchema("shop", "orders", columns, (0,))
    (route,) = plan_of(SKIPS).router.route("shop", "orders")
    images: list[tuple[Row | None, Row | None]] = [
        ((1, 0.0, "x"), (1, -0.0, "x")),
        ((1, 0.0, "x"), (1, 0.0, "y")),
    ]
    decoded = DecodedRows(schema, Op.UPDATE, images)
    assert UnchangedRows(route).left_out(decoded).images == images[:1]


def test_other_changes_are_as_without():
    schema, _ = compact_once(Stream())
    (route,) = plan_of(SKIPS).router.route("shop", "orders")
    for op in (Op.INSERT, Op.DELETE):
        decoded = DecodedRows(schema, op, [((1, 7, "x", "0"), (1, 7, "x", "0"))])
        assert UnchangedRows(route).left_out(decoded) is decoded


def test_a_damaged_record_is_still_found():
    stream = Stream()
    item = stream.item([stream.event(UPDATE, [image(1, 7, "x")])])
    with pytest.raises(DataError):
        compact(plan_of(SKIPS), [item])
