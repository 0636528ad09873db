"""Which schema changes let names mean something else, for rows that were read by them."""

import pytest

from setl.codec.sql.table_ddl import parse_table_ddl
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.mysql.ddl.predicates import names_given_again, reason_reads_differ


def table(**kinds):
    columns = tuple(Column(name, kind) for name, kind in kinds.items())
    return RowSchema("s", "t", columns, key=(0,))


def alter(clauses):
    ddl = parse_table_ddl(f"ALTER TABLE t {clauses}", "s")
    assert ddl is not None
    return ddl


BEFORE = table(at=Kind.DATETIME, a=Kind.INTEGER, b=Kind.TEXT)
AS_BEFORE = {"at": Kind.DATETIME, "a": Kind.INTEGER, "b": Kind.TEXT}


@pytest.mark.parametrize(
    ("clauses", "now", "said"),
    [
        ("ADD c INT, DROP a", {"c": Kind.INTEGER}, ""),
        ("DROP a", AS_BEFORE, ""),  # a new column of that name gets its values from the stream
        ("RENAME COLUMN a TO c", {"c": Kind.INTEGER}, ""),
        ("RENAME COLUMN a TO c", {"a": Kind.INTEGER, "c": Kind.INTEGER}, "a is another column"),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", None, "a, b is another column"),
        ("CHANGE a c INT, ADD COLUMN A INT", {"c": Kind.INTEGER}, "a is another column"),
        ("CHANGE a a BIGINT, RENAME INDEX i TO j, RENAME TO u", AS_BEFORE, ""),
        ("DROP at, ADD at DATETIME", AS_BEFORE, "at is another column"),
        ("MODIFY at DATETIME(3) NOT NULL", AS_BEFORE, "values of the key column at"),
        ("MODIFY b TEXT, MODIFY a BIGINT", AS_BEFORE, ""),
    ],
)
def test_what_was_read_by_a_name(clauses, now, said):
    there = None if now is None else table(**{"id": Kind.INTEGER, **now})
    assert said in reason_reads_differ(alter(clauses), BEFORE, there)
    assert bool(said) == bool(reason_reads_differ(alter(clauses), BEFORE, there))


def test_names_that_are_given_again_by_a_later_statement():
    assert names_given_again([alter("DROP a"), alter("ADD c INT"), alter("ADD a INT")]) == {"a"}
    assert names_given_again([alter("ADD a INT"), alter("DROP a")]) == set()
