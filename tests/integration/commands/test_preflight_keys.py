"""What `setl check` says about unique keys and collations that differ between the sites."""

import pytest

from setl.operate.check import check_pipeline
from setl.systems.pipeline_check import PipelineCheck
from tests.integration.pipelines import execute, mysql, new_database, one_way

BIN = "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
CI = "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
UNI = "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"


@pytest.fixture(scope="module")
def sites(servers):
    with new_database(servers, "keys") as db:
        yield *servers, db


def said(sites, there, here, **mapping):
    """What is said about keys."""
    *servers, db = sites
    for server, columns in zip(servers, (there, here), strict=True):
        execute(server, f"CREATE TABLE {db}.t ({columns})")
    try:
        file = one_way(servers[0], mysql(servers[1]), [{"from": f"{db}.t", **mapping}])
        found = check_pipeline(PipelineCheck(file.pipelines[0]))
        return [f for f in found if f.code.startswith(("unique-key", "key-encodings"))]
    finally:
        for server in servers:
            execute(server, f"DROP TABLE {db}.t")


@pytest.mark.parametrize(
    ("there", "here"),
    [
        ("id INT PRIMARY KEY, a INT UNIQUE", "id INT PRIMARY KEY, a INT UNIQUE"),
        ("id INT PRIMARY KEY, a INT UNIQUE", "id INT PRIMARY KEY, a INT, UNIQUE (a, id)"),
        ("id INT PRIMARY KEY, a INT UNIQUE", "id INT PRIMARY KEY, a INT, b INT, UNIQUE (b, a)"),
        (f"k {CI} PRIMARY KEY", f"k {CI} PRIMARY KEY"),
        (f"k {CI} PRIMARY KEY", f"k {BIN} PRIMARY KEY"),
        (
            f"id INT PRIMARY KEY, a {CI}, UNIQUE (a(3))",
            f"id INT PRIMARY KEY, a {CI}, UNIQUE (a(5))",
        ),
        ("id INT PRIMARY KEY", "own INT AUTO_INCREMENT PRIMARY KEY, id INT NOT NULL UNIQUE"),
    ],
)
def test_keys_that_the_source_has_too(sites, there, here):
    assert said(sites, there, here) == []


@pytest.mark.parametrize(
    ("there", "here", "level", "what"),
    [
        ("id INT PRIMARY KEY, a INT", "id INT PRIMARY KEY, a INT UNIQUE", "error", "(a) is not"),
        (
            "id INT PRIMARY KEY, a INT",
            "id INT PRIMARY KEY, a INT, b INT DEFAULT 1, UNIQUE (a, b)",
            "error",
            "which does not fill b",
        ),
        (f"k {BIN} PRIMARY KEY", f"k {CI} PRIMARY KEY", "error", "compares k in another way"),
        (f"k {CI} PRIMARY KEY", f"k {UNI} PRIMARY KEY", "warning", "compares k in another way"),
        (
            f"id INT PRIMARY KEY, a {CI} UNIQUE",
            f"id INT PRIMARY KEY, a {CI}, UNIQUE (a(5))",
            "error",
            "(a(5)) is not one",
        ),
        (
            "id INT PRIMARY KEY, a INT",
            "id INT PRIMARY KEY, a INT, g INT AS (a % 3) STORED, UNIQUE (g)",
            "error",
            "which does not fill g",
        ),
    ],
)
def test_keys_that_only_the_target_has(sites, there, here, level, what):
    [finding] = said(sites, there, here)
    assert finding.level == level
    assert what in finding.what
    assert finding.hint


PROCESSED = {"processor": "shop.rows:tidy"}
LOWERED = {"columns": {"a": "lower(b)"}}
TWO = "id INT PRIMARY KEY, a INT UNIQUE"


@pytest.mark.parametrize(
    ("there", "here", "mapping", "words"),
    [
        # A row that is read may conflict with another, and nobody knows whether it may go.
        (TWO, TWO, PROCESSED, "(a), and it is not known what shop.rows:tidy makes of rows"),
        ("id INT PRIMARY KEY, a INT", TWO, PROCESSED, "besides the primary key, (a)"),
        (
            "id INT PRIMARY KEY, b VARCHAR(9)",
            "id INT PRIMARY KEY, b VARCHAR(9), a VARCHAR(9) UNIQUE",
            LOWERED,
            "(a), and it is not known what they compute",
        ),
        (
            TWO,
            "own INT AUTO_INCREMENT PRIMARY KEY, id INT NOT NULL UNIQUE, a INT UNIQUE",
            {},
            "(a), and the target has a primary key of its own",
        ),
    ],
)
def test_keys_over_which_loads_may_stop(sites, there, here, mapping, words):
    [finding] = said(sites, there, here, **mapping)
    assert (finding.level, finding.code) == ("warning", "unique-key-unknown")
    assert words in finding.what
    assert "CollisionError" in finding.what
    assert finding.hint


def test_a_processor_of_rows_with_one_key_is_nothing_to_know(sites):
    one = "id INT PRIMARY KEY, a INT"
    assert said(sites, one, one, **PROCESSED) == []
    keyless = "id INT NOT NULL UNIQUE, a INT"
    assert said(sites, keyless, "own INT AUTO_INCREMENT PRIMARY KEY, " + keyless) == []


def test_the_hint_is_a_hint(sites):
    *servers, db = sites
    there, here = f"k {BIN} PRIMARY KEY, a INT", f"k {CI} PRIMARY KEY, a INT UNIQUE"
    for server, columns in zip(servers, (there, here), strict=True):
        execute(server, f"CREATE TABLE {db}.t ({columns})")
    file = one_way(servers[0], mysql(servers[1]), [{"from": f"{db}.t"}])

    def found():
        return [
            f for f in check_pipeline(PipelineCheck(file.pipelines[0])) if "unique key (" in f.what
        ]

    assert len(found()) == 2
    for finding in found():
        execute(servers[1], *finding.statements)
    assert found() == []
    for server in servers:
        execute(server, f"DROP TABLE {db}.t")


@pytest.mark.parametrize(
    ("columns", "mapping", "level"),
    [
        ("k VARCHAR(9) CHARACTER SET cp932 PRIMARY KEY", {}, "warning"),
        ("k CHAR(9) CHARACTER SET sjis NOT NULL UNIQUE", {}, "warning"),
        ("id INT PRIMARY KEY, k CHAR(9) CHARACTER SET ujis NOT NULL", {"key": ["k"]}, "warning"),
        ("id INT PRIMARY KEY, k CHAR(9) CHARACTER SET ujis NOT NULL", {}, ""),
        ("k CHAR(9) CHARACTER SET gbk PRIMARY KEY", {}, ""),
    ],
)
def test_keys_of_a_character_set_with_two_encodings(sites, columns, mapping, level):
    found = [f for f in said(sites, columns, columns, **mapping) if f.code == "key-encodings"]
    assert [f.level for f in found] == ([level] if level else [])
    assert all(f.acceptable for f in found)
