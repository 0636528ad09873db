"""JSON columns of a MariaDB, as statements give them to a MySQL."""

import pytest

from setl.codec.sql.table_ddl import parse_table_ddl
from setl.systems.mysql.ddl.rewriting import json_as_text

TEXT = "LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"


CREATE = (
    "CREATE TABLE t (id INT, `j` {} NOT NULL, json {} COMMENT 'JSON', KEY json (j(9)),"
    " g {} AS (json_compact(j)), CHECK (json <> '')) PARTITION BY KEY (json, id)"
)
ALTER = (
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS a {} AFTER json, ADD (b {}, json INT),"
    " MODIFY c {} NULL, CHANGE COLUMN json json {}, DROP json, ADD KEY json (json),"
    " ALTER json SET DEFAULT 'JSON'"
)


def checked(name):
    return f"{TEXT} CHECK (json_valid(`{name}`))"


@pytest.mark.parametrize(
    ("statement", "types"),
    [
        (CREATE, (checked("j"), checked("json"), TEXT)),
        (ALTER, (checked("a"), checked("b"), TEXT, TEXT)),
        ("CREATE TABLE t LIKE json", ()),
        ("RENAME TABLE t TO json", ()),
    ],
)
def test_json_is_the_text_that_it_is_there(statement, types):
    said = statement.format(*["json" for _ in types])
    ddl = parse_table_ddl(said, "shop")
    assert ddl is not None
    assert json_as_text(ddl) == statement.format(*types)
