"""Changes of tables without a key: nothing overtakes, and all that came and went is counted."""

import random
from collections import Counter
from typing import Any

import pytest

from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op, TargetChanges
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.mysql.load.keyless import keyless_apart, net
from setl.transform.keyless import KeylessRows
from setl.transform.merging import merge

A, F = Column("a", Kind.INTEGER), Column("f", Kind.FLOAT)
SCHEMA = RowSchema("shop", "t", (A, F))


def changes(upserts=(), deletes=(), version=1, columns=(A, F)):
    return TargetChanges(
        ("shop", "t"),
        columns,
        tuple(range(len(columns))),
        list(upserts),
        list(deletes),
        [version] * len(upserts),
        [version] * len(deletes),
        keyless=True,
    )


def test_what_comes_and_goes_is_what_replaying_would_make():
    draw = random.Random(7)
    for _ in range(300):
        values = [(n, f) for n in (None, 1) for f in (0.0, -0.0, None)]
        start = [draw.choice(values) for _ in range(draw.randrange(5))]
        rows, upserts, deletes = start[:], [], []
        for _ in range(draw.randrange(8)):
            if rows and draw.random() < 0.6:
                gone = rows.pop(draw.randrange(len(rows)))
                deletes.append(gone)
            if draw.random() < 0.6:
                rows.append(draw.choice(values))
                upserts.append(rows[-1])
        found = net(changes(upserts, deletes))
        left = Counter(map(repr, start))
        for row, times, _ in found.less:
            assert left[repr(row)] >= times
            left[repr(row)] -= times
        left.update(map(repr, found.more))
        assert +left == Counter(map(repr, rows))


def test_an_update_is_a_row_that_goes_and_one_that_comes():
    taken = KeylessRows()
    taken.add_many(DecodedRows(SCHEMA, Op.INSERT, [(None, (1, 0.5)), (None, (1, 0.5))]), 3)
    taken.add_many(DecodedRows(SCHEMA, Op.UPDATE, [((1, 0.5), (ABSENT, 0.75))]), 4)
    taken.add_many(DecodedRows(SCHEMA, Op.DELETE, [((1, 0.5), None)]), 5)
    (group,) = taken.survivors()
    assert (group.upserts, group.upsert_versions) == ([(1, 0.5), (1, 0.5), (1, 0.75)], [3, 3, 4])
    assert (group.deletes, group.delete_versions) == ([(1, 0.5), (1, 0.5)], [4, 5])
    assert group.keyless


def test_half_a_row_is_refused():
    with pytest.raises(DataError, match="does not say all of its row: f absent"):
        KeylessRows().add_many(DecodedRows(SCHEMA, Op.INSERT, [(None, (1, ABSENT))]), 3)


def test_shares_of_several_tasks_are_put_together_and_not_compacted():
    first, second = changes([(1, 0.5)], version=1), changes([(1, 0.5)], [(2, 0.5)], version=2)
    (merged,) = merge([first, second])
    assert merged.upserts == [(1, 0.5), (1, 0.5)]
    assert (merged.delete_versions, merged.upsert_versions) == ([2], [1, 2])


def test_a_table_that_gets_a_key_or_loses_it_is_written_in_that_order():
    keyed = TargetChanges(("shop", "t"), (A,), (0,), [(1,)], [], [5], [])
    before, after = changes([(1, 0.5)], version=3), changes([(1, 0.5)], version=7)
    parts: Any = [(None, after), (None, keyed), (None, before)]
    apart, rest = keyless_apart(parts)
    assert [part for _, part in apart.first] == [before]
    assert [part for _, part in apart.last] == [after]
    assert rest == [(None, keyed)]
