"""What `setl check` says about unique keys and collations that differ between the sites."""

import pytest

from setl.operate.check import check_pipeline
from setl.systems.pipeline_check import PipelineCheck
from tests.integration.pipelines import execute, fresh_name, install_system_tables, mysql, one_way

BIN = "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
CI = "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
UNI = "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci"


@pytest.fixture(scope="module")
def sites(site_a, site_b):
    db = fresh_name("keys")
    for server in (site_a, site_b):
        install_system_tables(server)
        execute(server, f"CREATE DATABASE {db}")
    yield site_a, site_b, db
    for server in (site_a, site_b):
        execute(server, f"DROP DATABASE {db}")


def said(sites, there, here, **mapping):
    """What is said about keys."""
    *servers, db = sites
    for server, columns in zip(servers, (there, here), strict=True):
        execute(server, f"CREATE TABLE {db}.t ({columns})")
    try:
        file = one_way(servers[0], mysql(servers[1]), [{"from": f"{db}.t", **mapping}])
        found = check_pipeline(PipelineCheck(file.pipelines[0]))
        return [f for f in found if "unique key (" in f.what and "target's" in f.what]
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
    assert finding.fix


def test_the_way_out_is_a_way_out(sites):
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
