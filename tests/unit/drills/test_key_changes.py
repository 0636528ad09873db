"""What a stream of row changes is compared by."""

from setl.model.change import DecodedRows, Op
from setl.model.schema import Column, Kind, RowSchema
from setl_drills.binlog import KeyChange, key_changes

ITEMS = RowSchema("drill", "items", (Column("site", Kind.TEXT), Column("id", Kind.INTEGER)), (1,))


def test_a_change_of_key_is_reported_from_one_of_values():
    rows = DecodedRows(ITEMS, Op.UPDATE, [(("a", 1), ("a", 1)), (("a", 2), ("a", 3))])
    assert list(key_changes(rows)) == [
        KeyChange("items", Op.UPDATE, 1, 1),
        KeyChange("items", Op.UPDATE, 2, 3),
    ]


def test_inserts_and_deletes_have_one_side():
    (inserted,) = key_changes(DecodedRows(ITEMS, Op.INSERT, [(None, ("a", 7))]))
    (deleted,) = key_changes(DecodedRows(ITEMS, Op.DELETE, [(("a", 7), None)]))
    assert (inserted.before, inserted.after) == (None, 7)
    assert (deleted.before, deleted.after) == (7, None)
