from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from setl.model.change import TargetChanges
from setl.model.schema import Column, Kind
from setl.transform.merging import merge

ID, NAME, NOTE = (Column("id", Kind.INTEGER), Column("name", Kind.TEXT), Column("note", Kind.TEXT))
TARGET = ("shop", "orders")


def part(upserts=(), deletes=(), columns=(ID, NAME)):
    """Parts from (row, version) and (key, version) pairs."""
    return TargetChanges(
        TARGET,
        columns,
        (0,),
        [row for row, _ in upserts],
        [key for key, _ in deletes],
        [version for _, version in upserts],
        [version for _, version in deletes],
    )


def state_of(changes, state=None):
    """The rows a target has after deletes, then upserts."""
    state = dict(state or {})
    for change in changes:
        for key in change.deletes:
            state.pop(key, None)
    for change in changes:
        for row in change.upserts:
            state[(row[0],)] = dict(zip([c.name for c in change.columns], row, strict=True))
    return state


def test_the_later_insert_partition_wins():
    merged = merge([part(upserts=[((1, "new"), 7)]), part(upserts=[((1, "old"), 3)])])
    assert [c.upserts for c in merged] == [[(1, "new")]]


def test_a_delete_in_a_later_insert_partition_wins_over_an_upsert():
    merged = merge([part(upserts=[((1, "a"), 3)]), part(deletes=[((1,), 5)])])
    assert state_of(merged, {(1,): {}}) == {}


def test_an_upsert_in_a_later_insert_partition_wins_over_a_delete():
    merged = merge([part(deletes=[((1,), 3)]), part(upserts=[((1, "a"), 5)])])
    assert merged[0].deletes == []
    assert merged[0].upserts == [(1, "a")]


def test_keys_of_two_columns_are_reported_apart_by_both():
    first = [((1, "a", "old"), 3), ((2, "a", "stays"), 4)]
    then = [((1, "b", "new"), 5), ((1, "a", "new"), 6)]
    parts = [part(rows, columns=(ID, NAME, NOTE)) for rows in (then, first)]
    gone = part(deletes=[((1, "b"), 7)], columns=(ID, NAME, NOTE))
    (merged,) = merge([replace(each, key=(0, 1)) for each in (*parts, gone)])
    assert merged.upserts == [(2, "a", "stays"), (1, "a", "new")]
    assert (merged.deletes, merged.delete_versions) == ([(1, "b")], [7])


def test_a_row_that_lacks_columns_takes_them_from_the_earlier_row():
    full = part(upserts=[((1, "a", "kept"), 3)], columns=(ID, NAME, NOTE))
    partial = part(upserts=[((1, "b"), 5)])
    assert state_of(merge([full, partial])) == {(1,): {"id": 1, "name": "b", "note": "kept"}}
    assert state_of(merge([partial, full])) == {(1,): {"id": 1, "name": "b", "note": "kept"}}


def test_updates_that_say_other_columns_each_are_one_that_says_all_of_them():
    one = replace(part([((1, "a"), 3), ((2, "z"), 4)]), partial=True)
    other = replace(part([((1, "b"), 5)], columns=(ID, NOTE)), partial=True)
    again = replace(part([((1, "c"), 6)]), partial=True)
    for parts, name in (([one, other], "a"), ([other, again, one], "c")):
        merged = merge(parts)
        assert all(change.partial for change in merged)
        assert state_of(merged) == {
            (1,): {"id": 1, "name": name, "note": "b"},
            (2,): {"id": 2, "name": "z"},
        }


def test_what_an_update_leaves_open_is_not_what_the_row_held_before():
    full = part([((1, "a", "old"), 3)], columns=(ID, NAME, NOTE))
    whole = replace(part([((1, "b"), 4)]), unlogged=("note",))
    partial = replace(part([((1,), 5)], columns=(ID,)), partial=True, unlogged=("note",))
    for parts, name in (([full, partial], "a"), ([full, whole, partial], "b")):
        (merged,) = merge(parts)
        assert (merged.unlogged, merged.partial) == (("note",), False)
        assert state_of([merged]) == {(1,): {"id": 1, "name": name}}


def test_a_delete_stays_before_a_row_that_lacks_columns():
    gone = part(deletes=[((1,), 3)], columns=(ID, NAME, NOTE))
    partial = part(upserts=[((1, "b"), 5)])
    merged = merge([gone, partial])
    assert [key for change in merged for key in change.deletes] == [(1,)]
    assert state_of(merged, {(1,): {"note": "old"}}) == {(1,): {"id": 1, "name": "b"}}


def test_other_targets_are_left_alone():
    one = part(upserts=[((1, "a"), 1)])
    other = TargetChanges(("shop", "items"), (ID, NAME), (0,), [(1, "z")], [], [2], [])
    assert merge([one, other]) == [one, other]


changes = st.lists(
    st.tuples(st.integers(0, 5), st.one_of(st.none(), st.text(max_size=2))), max_size=30
)


@given(changes, st.integers(1, 5), st.randoms(use_true_random=False))
def test_merging_equals_applying_in_stream_order(stream, insert_partitions, random):
    expected = {}
    parts = []
    size = max(1, -(-len(stream) // insert_partitions))
    for start in range(0, len(stream), size):
        last = {}
        for offset, (key, name) in enumerate(stream[start : start + size]):
            last[key] = (name, start + offset)
        parts.append(
            part(
                upserts=[((k, n), v) for k, (n, v) in last.items() if n is not None],
                deletes=[((k,), v) for k, (n, v) in last.items() if n is None],
            )
        )
    for key, name in stream:
        if name is None:
            expected.pop((key,), None)
        else:
            expected[(key,)] = {"id": key, "name": name}
    random.shuffle(parts)
    merged = merge(parts)
    keys = [k for c in merged for k in [*c.deletes, *[(r[0],) for r in c.upserts]]]
    assert len(keys) == len(set(keys))
    assert state_of(merged) == expected


def test_parts_whose_keys_differ_are_put_together_and_stay_as_they_are():
    one = part(upserts=[((1, "a"), 1)], deletes=[((2,), 2)])
    other = part(upserts=[((3, "b"), 3)])
    wide = part(upserts=[((4, "c", "d"), 4)], columns=(ID, NAME, NOTE))
    merged = merge([one, other, wide])
    assert [c.columns for c in merged] == [(ID, NAME), (ID, NAME, NOTE)]
    assert merged[0].upserts == [(1, "a"), (3, "b")]
    assert (merged[0].deletes, merged[0].upsert_versions) == ([(2,)], [1, 3])
    assert (one.upserts, other.upserts) == ([(1, "a")], [(3, "b")])


def test_a_delete_and_a_row_of_one_key_in_one_part_are_one_change():
    gone = part(deletes=[((1,), 3)], columns=(ID, NAME, NOTE))
    partial = part(upserts=[((1, "b"), 5)])
    again = part(upserts=[((1, "c"), 9)])
    merged = merge([gone, partial, again])
    assert state_of(merged, {(1,): {"note": "old"}}) == {(1,): {"id": 1, "name": "c"}}
