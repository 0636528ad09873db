"""The SQL files and their cutting into statements."""

import pytest

from setl.codec.sql.tokens import split_statements
from setl.systems.mysql.sql_files import resource_statements

FILES = [
    "retl.sql",
    "fence.sql",
    "deadletter.sql",
    "conflict.sql",
    "grants-source.sql",
    "grants-target.sql",
]


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        (" ;; \n;", []),
        ("a; b", ["a", "b"]),
        ("a -- not; this\n, b;", ["a\n, b"]),
        ("a--b;c", ["a--b", "c"]),
        ("a # x;y\n;b", ["a", "b"]),
        ("a /* x;\ny */ b; c", ["a   b", "c"]),
        ("a /*!40000 x; */; b", ["a /*!40000 x", "*/", "b"]),
        ("select ';', 'it''s;', 'a\\';', \";\", `;``;`; b",
         ["select ';', 'it''s;', 'a\\';', \";\", `;``;`", "b"]),
        ("select '-- no comment'; -- it's one\nb", ["select '-- no comment'", "b"]),
        ("--", []),
    ],
)  # fmt: skip
def test_splitting(text, statements):
    assert split_statements(text) == statements


@pytest.mark.parametrize("file", FILES)
def test_files_hold_only_what_may_run_twice(file):
    statements = resource_statements(file)
    assert statements
    for statement in statements:
        assert statement.startswith(
            ("CREATE TABLE IF NOT EXISTS retl.", "GRANT ", "CREATE DATABASE IF NOT EXISTS retl ")
        )


@pytest.mark.parametrize("file", ["grants-source.sql", "grants-target.sql"])
def test_templates_have_their_placeholders(file):
    for statement in resource_statements(file):
        filled = statement.replace("{user}", "u").replace("{schema}", "s")
        assert "{" not in filled
        assert "{user}" in statement


def test_tables_are_transactional_and_compare_names_by_bytes():
    tables = [s for f in FILES for s in resource_statements(f) if s.startswith("CREATE TABLE")]
    assert len(tables) == 12
    for statement in tables:
        assert statement.endswith(
            "ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
        )
