import pytest

from setl.errors import ConfigurationError
from setl.model.schema import Column, Kind
from setl.systems.mysql.catalog import ColumnRow, column_of
from setl.systems.mysql.stored.writers import lock_name


def described(data_type, column_type="", *, precision=None, scale=None, collation=None, extra=""):
    return ColumnRow("c", data_type, column_type or data_type, precision, scale, collation, extra)


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (described("int", precision=10, scale=0), Column("c", Kind.INTEGER, binary_order=True)),
        (
            described("bigint", "bigint(20) unsigned zerofill", precision=20, scale=0),
            Column("c", Kind.INTEGER, unsigned=True, binary_order=True),
        ),
        (
            described("decimal", "decimal(20,4) unsigned", precision=20, scale=4),
            Column("c", Kind.DECIMAL, 20, 4, binary_order=True),
        ),
        (described("double", precision=22), Column("c", Kind.FLOAT, binary_order=True)),
        (described("uuid"), Column("c", Kind.TEXT, binary_order=True)),
        (described("json"), Column("c", Kind.JSON, binary_order=True)),
        (described("varbinary"), Column("c", Kind.BINARY, binary_order=True)),
        (described("geomcollection"), Column("c", Kind.GEOMETRY, binary_order=True)),
        (
            described("enum", "enum('unsigned')", collation="latin1_swedish_ci"),
            Column("c", Kind.ENUM),
        ),
    ],
)
def test_columns(row, column):
    assert column_of(row) == column


@pytest.mark.parametrize(
    ("data_type", "collation", "expected"),
    [
        ("varchar", "utf8mb4_general_ci", False),
        # These pad with spaces: 'a' and 'a ' are one key.
        ("varchar", "utf8mb4_bin", False),
        ("text", "latin1_bin", False),
        ("char", "utf8mb4_bin", True),
        ("varchar", "utf8mb4_nopad_bin", True),
        ("varchar", "utf8mb4_0900_bin", True),
        ("enum", "latin1_bin", True),
    ],
)
def test_only_collations_that_tell_every_spelling_apart_order_by_bytes(
    data_type, collation, expected
):
    assert column_of(described(data_type, collation=collation)).binary_order is expected


@pytest.mark.parametrize(
    ("extra", "generated"),
    [
        ("", False),
        ("auto_increment", False),
        ("DEFAULT_GENERATED on update CURRENT_TIMESTAMP", False),
        ("VIRTUAL GENERATED", True),
        ("STORED GENERATED, INVISIBLE", True),
    ],
)
def test_generated_columns_are_known_on_both_families(extra, generated):
    assert column_of(described("int", extra=extra)).generated is generated


def test_an_unknown_type_is_an_error_that_names_the_column():
    with pytest.raises(ConfigurationError, match="column c has the type tuple"):
        column_of(described("tuple"))


def test_lock_names_fit_and_differ():
    names = {lock_name(p, n) for p in ("a/b", "a/" + "b" * 150) for n in (1, 2**64 - 1)}
    assert len(names) == 4
    assert max(map(len, names)) <= 64
