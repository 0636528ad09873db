"""Every drill once, with a fixed seed; `setl drill run all --seeds 20` is the long form."""

import pytest

from setl_drills.catalogue import CATALOGUE

SEED = 1
ON_MYSQL = (
    "switchover", "kill-active", "two-way-failover", "freeze-in-transaction", "source-replaced",
    "load-dies",
)  # fmt: skip
"""What differs between the families: who waits for whose locks, how a transaction ends with its
connection, what names a place in a replica's binlog, and how rows of whole tables get in."""
BETWEEN = ("two-way-failover",)
"""What runs between the families as well."""


def on(sites, names):
    """Parametrise by drill, in one world: its scope is the session's, that of names is not."""
    by_name = pytest.mark.parametrize("name", names)
    by_sites = pytest.mark.parametrize("sites", [sites], indirect=True, scope="session")
    return lambda test: pytest.mark.timeout(600)(pytest.mark.servers(by_sites(by_name(test))))


@on("mariadb", CATALOGUE)
def test_drill(sites, name, world, runner):
    rehearse(world, runner, name)


@on("mysql", ON_MYSQL)
def test_drill_on_mysql(sites, name, world, runner):
    rehearse(world, runner, name)


@on("mixed", BETWEEN)
def test_drill_between_families(sites, name, world, runner):
    rehearse(world, runner, name)


def rehearse(world, runner, name):
    result = runner.run_one(world, CATALOGUE[name], SEED)
    assert result.passed, "\n".join([*result.problems, f"logs: {result.folder}"])


def test_the_drills_on_mysql_are_drills():
    assert set(ON_MYSQL) | set(BETWEEN) <= set(CATALOGUE)
