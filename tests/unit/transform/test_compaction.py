import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.errors import ConfigurationError, DataError
from setl.model.change import ABSENT, DecodedRows, Op, Row, RowChange
from setl.model.schema import Column, Kind, RowSchema
from setl.transform.compaction import Compactor

TABLE = RowSchema(
    "shop",
    "orders",
    (Column("a", Kind.TEXT), Column("id", Kind.INTEGER), Column("b", Kind.TEXT)),
    key=(1,),
)
PAIRS = RowSchema("shop", "pairs", TABLE.columns, key=(2, 1))
Entry = tuple[Op, list[tuple[Row | None, Row | None]]]
EVERY = [(TABLE, ()), (PAIRS, ()), (RowSchema("s", "keyless", TABLE.columns), ("ID",))]


def insert(*rows) -> Entry:
    return Op.INSERT, [(None, row) for row in rows]


def update(*images) -> Entry:
    return Op.UPDATE, list(images)


def delete(*rows) -> Entry:
    return Op.DELETE, [(row, None) for row in rows]


def compacted(*entries, schema=TABLE, key=(), same_version=False):
    compactor = Compactor(key)
    for number, (op, images) in enumerate(entries, 1):
        compactor.add_many(DecodedRows(schema, op, images), 1 if same_version else number)
    return compactor.survivors()


def states(groups):
    """What survives, by key: the row (as a mapping where it is partial) or None."""
    found = {}
    for group in groups:
        for key in group.deletes:
            found[key] = None
        for row in group.upserts:
            key = tuple(row[i] for i in group.key)
            found[key] = dict(zip(group.schema.names, row, strict=True)) if group.partial else row
    return found


def row(number, a="a", b="b"):
    return (a, number, b)


# What the property below does not make up, and one that it does.
SEQUENCES = {
    "swap over a third key": (
        [
            update((row(1, "x"), row(0, "x"))),
            update((row(2, "y"), row(1, "y"))),
            update((row(0, "x"), row(2, "x"))),
        ],
        {(0,): None, (1,): row(1, "y"), (2,): row(2, "x")},
    ),
    "direct swap in one record": (
        [update((row(1, "x"), row(2, "x")), (row(2, "y"), row(1, "y")))],
        {(1,): row(1, "y"), (2,): row(2, "x")},
    ),
    "direct cycle in one record": (
        [
            update(
                (row(1, "x"), row(2, "x")), (row(2, "y"), row(3, "y")), (row(3, "z"), row(1, "z"))
            )
        ],
        {(1,): row(1, "z"), (2,): row(2, "x"), (3,): row(3, "y")},
    ),
    "all keys move up in one record": (
        [update((row(2, "y"), row(3, "y")), (row(1, "x"), row(2, "x")))],
        {(1,): None, (2,): row(2, "x"), (3,): row(3, "y")},
    ),
    "key change of a row that was changed outside the stream": (
        [update((row(1, "x"), row(2, "x"))), update((row(2, "other"), row(3, "other")))],
        {(1,): None, (2,): None, (3,): row(3, "other")},
    ),
    "other spelling": ([update((row("a"), row("A")))], {("a",): None, ("A",): row("A")}),
    "number and text": ([insert(row(1), row("1"))], {(1,): row(1), ("1",): row("1")}),
    "bytes and text": ([insert(row(b"1"), row("1"))], {(b"1",): row(b"1"), ("1",): row("1")}),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_of_a_sequence_the_last_state_survives(name):
    entries, expected = SEQUENCES[name]
    assert states(compacted(*entries)) == expected


def test_a_direct_swap_is_not_seen_in_different_records():
    # There the second before image may as well be of a row that something else changed.
    swap = [update((row(1, "x"), row(2, "x"))), update((row(2, "y"), row(1, "y")))]
    assert states(compacted(*swap)) == {(1,): row(1, "y"), (2,): None}


def test_survivors_come_in_the_order_of_their_last_changes_with_their_versions():
    [group] = compacted(
        insert(row(1), row(2)),
        delete(row(8)),
        insert(row(3)),
        update((row(1), row(1, "x"))),
        delete(row(2)),
        update((row(9), row(7))),
    )
    assert group.upserts == [row(3), row(1, "x"), row(7)]
    assert group.upsert_versions == [3, 4, 6]
    assert group.deletes == [(8,), (2,), (9,)]
    assert group.delete_versions == [2, 5, 6]
    assert not group.partial
    assert (group.schema, group.key) == (TABLE, (1,))
    assert pickle.loads(pickle.dumps(group)) == group


def test_one_change_at_a_time_is_the_same():
    entries = SEQUENCES["swap over a third key"][0]
    compactor = Compactor()
    for number, (op, [(before, after)]) in enumerate(entries, 1):
        compactor.add(TABLE, RowChange(op, before, after, number))
    assert compactor.survivors() == compacted(*entries)
    assert len(compactor) == 3


@pytest.mark.parametrize(
    ("schema", "key"), [(RowSchema("s", "t", TABLE.columns), ()), (TABLE, ("id", "nowhere"))]
)
def test_a_table_without_key_is_refused_with_hints(schema, key):
    with pytest.raises(ConfigurationError) as raised:
        compacted(insert(row(1)), schema=schema, key=key)
    assert "key" in raised.value.message
    assert raised.value.hint
    assert raised.value.where["table"] == schema.name


def test_null_in_a_configured_key_is_refused():
    with pytest.raises(DataError, match="null") as raised:
        compacted(insert(row(None)), schema=RowSchema("s", "t", TABLE.columns), key=("id",))
    assert raised.value.where == {"table": "s.t", "key": "(None,)", "version": "1"}


@pytest.mark.parametrize(
    "entry",
    [
        (Op.INSERT, [(None, None)]),
        (Op.UPDATE, [(row(1), None)]),
        (Op.DELETE, [(None, None)]),
        delete((ABSENT, ABSENT, "b")),
        insert(("a", ABSENT, "b")),
        update((("a", ABSENT, "b"), ("x", ABSENT, "b"))),
    ],
)
def test_an_image_that_does_not_say_its_row_is_refused(entry):
    with pytest.raises(DataError) as raised:
        compacted(entry)
    assert raised.value.where["table"] == "shop.orders"


class TestAbsentValues:
    def test_are_taken_from_the_before_image(self):
        images = (row(1, "a", "b"), ("x", ABSENT, ABSENT))
        assert states(compacted(update(images))) == {(1,): row(1, "x", "b")}

    def test_are_taken_from_what_is_pending_under_the_old_key(self):
        minimal = ((ABSENT, 1, ABSENT), (ABSENT, 2, ABSENT))
        groups = compacted(insert(row(1)), update(minimal))
        assert states(groups) == {(1,): None, (2,): row(2)}

    def test_leave_partial_rows_grouped_by_the_columns_they_have(self):
        groups = compacted(
            update(((ABSENT, 1, ABSENT), ("x", ABSENT, ABSENT))),
            update(((ABSENT, 2, ABSENT), (ABSENT, ABSENT, "y"))),
            update(((ABSENT, 3, ABSENT), (ABSENT, ABSENT, "z"))),
            insert(row(4)),
        )
        assert [(g.partial, g.schema.names, g.upserts, g.upsert_versions) for g in groups] == [
            (False, ("a", "id", "b"), [row(4)], [4]),
            (True, ("a", "id"), [("x", 1)], [1]),
            (True, ("id", "b"), [(2, "y"), (3, "z")], [2, 3]),
        ]
        assert [g.key for g in groups] == [(1,), (1,), (0,)]
        assert [g.schema.key for g in groups] == [(1,), (1,), (0,)]

    def test_are_not_taken_from_a_row_that_was_deleted(self):
        # The target must not keep them either, so the delete survives beside the partial row.
        [whole, part] = compacted(delete(row(1)), insert((ABSENT, 1, "new")))
        assert (whole.deletes, whole.delete_versions, whole.upserts) == ([(1,)], [1], [])
        assert (part.partial, part.upserts, part.deletes) == (True, [(1, "new")], [])

    def test_forbid_a_key_change(self):
        images = ((ABSENT, 1, ABSENT), (ABSENT, 2, "b"))
        with pytest.raises(DataError, match="a absent") as raised:
            compacted(update(images))
        assert raised.value.where == {"table": "shop.orders", "key": "(1,)"}
        assert "binlog_row_image" in raised.value.hint

    def test_in_before_images_do_not_hide_a_key_change(self):
        assert states(compacted(update(((ABSENT, 1, "b"), row(2))))) == {(1,): None, (2,): row(2)}

    def test_in_a_part_of_the_before_key_mean_that_it_did_not_change(self):
        images = ((ABSENT, 1, ABSENT), row(2, "x", "k"))
        groups = compacted(update(images), schema=PAIRS)
        assert states(groups) == {("k", 1): None, ("k", 2): row(2, "x", "k")}


def test_a_schema_that_changes_in_between_stores_the_order_of_a_row():
    wider = RowSchema("shop", "orders", (*TABLE.columns, Column("c", Kind.TEXT)), key=(1,))
    compactor = Compactor()
    compactor.add_many(DecodedRows(TABLE, *insert(row(1), row(2), row(3))), 1)
    compactor.add_many(DecodedRows(wider, *update(((*row(1), None), (*row(1, "x"), "c")))), 2)
    compactor.add_many(DecodedRows(wider, *delete((*row(2), None))), 3)
    # Only what changed, on top of a row that is pending in the old schema.
    minimal = ((ABSENT, 3, ABSENT, ABSENT), (ABSENT, ABSENT, ABSENT, "c"))
    compactor.add_many(DecodedRows(wider, Op.UPDATE, [minimal]), 4)
    compactor.add_many(DecodedRows(RowSchema(*_fields(TABLE)), *insert(row(4))), 5)
    [old, new] = sorted(compactor.survivors(), key=lambda g: len(g.schema.columns))
    assert old.upserts == [row(4)]
    assert new.upserts == [(*row(1, "x"), "c"), (*row(3), "c")]
    assert new.deletes == [(2,)]


def _fields(schema):
    return schema.schema, schema.table, schema.columns, schema.key


# -- against a replay ---------------------------------------------------------------------

texts = st.sampled_from(["", "x", "y", "Y"])


@st.composite
def histories(draw, schema, key_columns, minimal):
    """(op, before, after) of changes that a server would make, and the table before and after."""
    numbers = st.integers(0, 4)
    fresh = st.builds(row, numbers, texts, texts)
    table = {}

    def key_of(values):
        return tuple(values[i] for i in key_columns)

    for values in draw(st.lists(fresh, max_size=4)):
        table[key_of(values)] = values
    start, changes = dict(table), []
    for _ in range(draw(st.integers(0, 14))):
        choice = draw(st.sampled_from(["insert", "update", "move", "delete"]))
        new = draw(fresh)
        if choice == "insert" and key_of(new) not in table:
            after = new
            if minimal and draw(st.booleans()):
                # What the statement did not give gets its default, NULL, and is not logged.
                given_columns = {*key_columns, draw(st.integers(0, 2))}
                after = tuple(v if i in given_columns else ABSENT for i, v in enumerate(new))
                new = tuple(v if i in given_columns else None for i, v in enumerate(new))
            changes.append((Op.INSERT, None, after))
            table[key_of(new)] = new
        elif choice != "insert" and table:
            old = table[draw(st.sampled_from(sorted(table, key=repr)))]
            if choice == "delete":
                before = _only(old, key_columns) if minimal else old
                changes.append((Op.DELETE, before, None))
                del table[key_of(old)]
                continue
            if choice == "update":
                new = tuple(old[i] if i in key_columns else v for i, v in enumerate(new))
            elif key_of(new) in table:
                continue
            del table[key_of(old)]
            table[key_of(new)] = new
            if minimal and choice == "update":
                changed = {i for i in range(3) if old[i] != new[i]}
                changes.append((Op.UPDATE, _only(old, key_columns), _only(new, changed)))
            else:
                changes.append((Op.UPDATE, old, new))
    return start, changes, table


def _only(values, positions):
    return tuple(v if i in positions else ABSENT for i, v in enumerate(values))


def entries_of(changes, cuts):
    """Changes as a codec gives them: runs of one operation share an entry, unless cut."""
    entries = []
    for number, (op, before, after) in enumerate(changes):
        if entries and entries[-1][0] is op and number not in cuts:
            entries[-1][1].append((before, after))
        else:
            entries.append((op, [(before, after)]))
    return entries


def load(table, groups):
    """What a sink does: deletes first, then upserts; a partial row keeps the rest."""
    for group in groups:
        for key in group.deletes:
            table.pop(key, None)
    for group in groups:
        assert all(ABSENT not in r for r in group.upserts)
        for values in group.upserts:
            key = tuple(values[i] for i in group.key)
            if group.partial:
                stored = dict(zip(TABLE.names, table.get(key, (None,) * 3), strict=True))
                stored.update(zip(group.schema.names, values, strict=True))
                table[key] = tuple(stored.values())
            else:
                table[key] = values


@given(st.data())
@pytest.mark.parametrize("minimal", [False, True])
@pytest.mark.parametrize(("schema", "key"), EVERY, ids=["one", "two", "configured"])
def test_loading_survivors_gives_what_a_replay_gives(schema, key, minimal, data):
    columns = schema.key or (1,)
    start, changes, expected = data.draw(histories(schema, columns, minimal))
    positions = st.sets(st.integers(0, len(changes)))
    entries = entries_of(changes, data.draw(positions))
    table, version = dict(start), 0
    ends = {min(position, len(entries)) for position in data.draw(positions)}
    for first, last in pairwise(sorted({0, len(entries), *ends})):
        compactor, changed = Compactor(key), {}
        for op, images in entries[first:last]:
            version += 1
            compactor.add_many(DecodedRows(schema, op, images), version)
        groups = compactor.survivors()
        load(table, groups)
        for group in groups:
            assert group.upsert_versions == sorted(group.upsert_versions)
            for k, v in zip(group.deletes, group.delete_versions, strict=True):
                changed.setdefault(k, v)
            for r, v in zip(group.upserts, group.upsert_versions, strict=True):
                changed[tuple(r[i] for i in group.key)] = v
        assert changed == last_versions(entries, first, last, columns)
    assert table == expected


def last_versions(entries, first, last, columns):
    versions = {}
    for number in range(first, last):
        for before, after in entries[number][1]:
            old = before or after
            versions[tuple(old[i] for i in columns)] = number + 1
            if after is not None:
                filled = [old[i] if after[i] is ABSENT else after[i] for i in columns]
                versions[tuple(filled)] = number + 1
    return versions


@given(st.data())
def test_loading_survivors_again_from_any_position_on_changes_nothing(data):
    # I12: a load that is repeated, and a stretch that is, end in the same state.
    start, changes, expected = data.draw(histories(TABLE, (1,), minimal=False))
    entries = entries_of(changes, set(range(len(changes))))
    table = dict(start)
    load(table, compacted(*entries))
    load(table, compacted(*entries[data.draw(st.integers(0, len(entries))) :]))
    assert table == expected
