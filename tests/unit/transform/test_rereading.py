"""Rows that are read at the source instead of taken from their changes."""

import random
from typing import Any

import pytest

from setl.errors import ConfigurationError, DataError
from setl.model.change import ABSENT, DecodedRows, Op
from setl.model.checkpoint import ShownPosition
from setl.model.position import BinlogPosition
from setl.model.schema import Column, Kind, RowSchema
from setl.transform.rereading import Lookup, RereadRows

ID, NAME = Column("id", Kind.INTEGER), Column("name", Kind.TEXT)
ITEMS = RowSchema("shop", "items", (ID, NAME), key=(0,))
WIDER = RowSchema("shop", "items", (Column("more", Kind.TEXT), NAME, ID), key=(2,))
END = ShownPosition(BinlogPosition("bin.000001", 9))


class Source:
    """Has the rows that it is given."""

    def __init__(self, *rows, schema: RowSchema | None = ITEMS, folds=False):
        self.rows, self.schema = rows, schema
        self.asked: list[Any] = []
        self.folds = folds

    def read(self, table, keys, position) -> Any:
        self.asked.append((keys, position))
        if self.schema is None:
            return None
        positions = [self.schema.names.index(table.names[i]) for i in table.key]
        fold = str.casefold if self.folds else lambda value: value
        wanted = {tuple(map(fold, key)) for key in keys}
        return self.schema, [r for r in self.rows if tuple(fold(r[i]) for i in positions) in wanted]


def survivors(source, *entries, schema=ITEMS):
    rows = RereadRows(Lookup(source, END))
    for version, (op, *images) in enumerate(entries, start=1):
        rows.add_many(DecodedRows(schema, op, images), version)
    return rows.survivors()


def test_a_row_is_what_the_source_has_under_the_version_of_its_last_change():
    source = Source((1, "now"), (2, "other"))
    (found,) = survivors(
        source,
        (Op.INSERT, (None, (1, "a"))),
        (Op.UPDATE, ((1, "a"), (1, "b")), ((2, "c"), (2, "d"))),
    )
    assert (found.upserts, found.upsert_versions) == ([(1, "now"), (2, "other")], [2, 2])
    assert not found.deletes
    assert source.asked == [([(1,), (2,)], END)], "each key once, as of the end of the load"


def test_what_is_gone_is_deleted_and_what_is_there_again_is_not():
    source = Source((3, "back"))
    (found,) = survivors(
        source, (Op.INSERT, (None, (1, "a")), (None, (2, "b"))), (Op.DELETE, ((3, "c"), None))
    )
    assert (found.upserts, found.upsert_versions) == ([(3, "back")], [2])
    assert (found.deletes, found.delete_versions) == ([(1,), (2,)], [1, 1])


def test_each_row_has_a_version_of_its_own():
    changes = [(Op.INSERT, (None, (key, "a"))) for key in (1, 2, 3)]
    (found,) = survivors(Source((2, "b"), (1, "a")), *changes)
    assert (found.upserts, found.upsert_versions) == ([(1, "a"), (2, "b")], [1, 2])
    assert (found.deletes, found.delete_versions) == ([(3,)], [3])


def test_both_keys_of_an_update_are_read():
    source = Source((1, "b"), (2, "a"))  # changed places
    (found,) = survivors(
        source,
        (Op.UPDATE, ((1, "a"), (0, "a"))),
        (Op.UPDATE, ((2, "b"), (1, "b"))),
        (Op.UPDATE, ((0, "a"), (2, "a"))),
    )
    assert sorted(found.upserts) == [(1, "b"), (2, "a")]
    assert found.deletes == [(0,)]


def test_minimal_images_are_enough():
    source = Source((5, "whole"))
    (found,) = survivors(
        source, (Op.UPDATE, ((1, ABSENT), (5, ABSENT))), (Op.UPDATE, ((5, ABSENT), (ABSENT, "x")))
    )
    assert found.upserts == [(5, "whole")]
    assert not found.partial
    assert found.deletes == [(1,)]
    with pytest.raises(DataError, match="which row"):
        survivors(source, (Op.UPDATE, ((ABSENT, "a"), (ABSENT, "b"))))


def test_a_table_without_a_key_is_refused():
    with pytest.raises(ConfigurationError, match="no primary key"):
        survivors(
            Source(), (Op.INSERT, (None, (1, "a"))), schema=RowSchema("s", "t", ITEMS.columns)
        )


def test_columns_are_those_of_the_change():
    # A column has come, and others stand elsewhere.
    (found,) = survivors(Source(("m", "now", 1), schema=WIDER), (Op.INSERT, (None, (1, "a"))))
    assert (found.schema, found.upserts) == (ITEMS, [(1, "now")])


def test_columns_that_have_gone_or_changed_keep_the_value_of_the_change():
    source = Source((1, "now"))
    insert = (Op.INSERT, (None, ("gone", "a", 1)))
    (found,) = survivors(source, insert, schema=WIDER)
    assert found.upserts == [("gone", "now", 1)]
    other = RowSchema("shop", "items", (ID, Column("name", Kind.JSON)), key=(0,))
    (found,) = survivors(Source((1, "{}"), schema=other), (Op.INSERT, (None, (1, "a"))))
    assert found.upserts == [(1, "a")]
    (found,) = survivors(source, (Op.INSERT, (None, (ABSENT, "a", 1))), schema=WIDER)
    assert found.partial
    assert (found.schema.names, found.upserts) == (("name", "id"), [("now", 1)])


def test_changes_of_a_table_that_is_gone_count_as_they_are():
    update = (Op.UPDATE, ((1, "a"), (2, "b")))
    (found,) = survivors(Source(schema=None), (Op.INSERT, (None, (1, "a"))), update)
    assert (found.upserts, found.deletes) == ([(2, "b")], [(1,)])
    with pytest.raises(DataError, match="gone"):
        survivors(Source(schema=None), (Op.INSERT, (None, (1, ABSENT))))


def test_another_spelling_of_a_key_is_written_as_it_was_found():
    schema = RowSchema("shop", "items", (Column("id", Kind.TEXT), NAME), key=(0,))
    source = Source(("A", "now"), schema=schema, folds=True)
    (found,) = survivors(source, (Op.INSERT, (None, ("a", "x"))), schema=schema)
    assert (found.upserts, found.upsert_versions) == ([("A", "now")], [1])
    assert found.deletes == [("a",)], "before it is written"


def _history(draw, count):
    """Changes of a table with keys 0 to 5, and its rows after each of them."""
    rows: dict[int, str] = {}
    changes, states = [], [{}]
    for number in range(count):
        key, other, name = draw.randrange(6), draw.randrange(6), f"v{number}"
        if key not in rows:
            rows[key] = name
            changes.append((Op.INSERT, None, (key, name)))
        elif draw.random() < 0.3:
            changes.append((Op.DELETE, (key, rows.pop(key)), None))
        else:
            goal = other if other not in rows else key
            before = (key, rows.pop(key))
            rows[goal] = name
            changes.append((Op.UPDATE, before, (goal, name)))
        states.append(dict(rows))
    return changes, states


@pytest.mark.parametrize("seed", range(200))
def test_any_history_ends_in_the_state_of_the_source(seed):
    """Loads of any size, each read at any moment behind its end, repeated after any crash.

    An index refuses what is older than what it has, and a table takes everything.
    """
    draw = random.Random(seed)
    changes, states = _history(draw, 40)
    table: dict[int, str] = {}
    index: dict[int, tuple[int, str | None]] = {}
    now = position = 0
    while position < len(changes):
        if position and draw.random() < 0.2:
            position = draw.randrange(position)  # a crash: the checkpoint is behind
        end = min(len(changes), position + draw.randrange(1, 8))
        now = draw.randint(max(now, end), len(changes))
        rows = RereadRows(Lookup(Source(*states[now].items())))
        for number in range(position, end):
            op, before, after = changes[number]
            rows.add_many(DecodedRows(ITEMS, op, [(before, after)]), number + 1)
        for part in rows.survivors():
            written: list[Any] = [
                (key, None, version)
                for (key,), version in zip(part.deletes, part.delete_versions, strict=True)
            ]
            written += [
                (key, name, version)
                for (key, name), version in zip(part.upserts, part.upsert_versions, strict=True)
            ]
            for key, name, version in written:
                if name is None:
                    table.pop(key, None)
                else:
                    table[key] = name
                if version >= index.get(key, (0, None))[0]:
                    index[key] = version, name
        position = end
    assert table == states[-1]
    assert {key: name for key, (_, name) in index.items() if name is not None} == states[-1]
