"""Every drill once, with a fixed seed; `setl drill run all --seeds 20` is the long form."""

import pytest

from setl_drills.catalogue import CATALOGUE

SEED = 1
ON_MYSQL = (
    "switchover", "kill-active", "two-way-failover", "freeze-in-transaction", "source-replaced",
)  # fmt: skip
"""What differs between the families: who waits for whose locks, how a transaction ends with its
connection, and what names a place in a replica's binlog."""
BETWEEN = ("two-way-failover",)
"""What runs between the families as well."""
RUNS = [
    *(("mariadb", name) for name in CATALOGUE),
    *(("mysql", name) for name in CATALOGUE if name in ON_MYSQL),
    *(("mixed", name) for name in CATALOGUE if name in BETWEEN),
]


@pytest.mark.timeout(600)
@pytest.mark.servers
@pytest.mark.parametrize(
    ("sites", "name"), RUNS, indirect=["sites"], ids=[f"{name}-{sites}" for sites, name in RUNS]
)
def test_drill(sites, name, world, runner):
    result = runner.run_one(world, CATALOGUE[name], SEED)
    assert result.passed, "\n".join([*result.problems, f"logs: {result.folder}"])


def test_the_drills_on_mysql_are_drills():
    assert set(ON_MYSQL) | set(BETWEEN) <= set(CATALOGUE)
