"""Every drill once, with a fixed seed; `setl drill run all --seeds 20` is the long form."""

import pytest

from setl_drills.catalogue import CATALOGUE

SEED = 1
SAME = {
    # The same instruction, in a larger load. By hand, it is the driver's line in the matrix.
    "matrix-stream-driver": "crash-at-task.before_load",
    # Nothing is written at either target yet, and what is in memory goes with the process.
    "crash-at-select.batch": "crash-at-load.before_job",
    "crash-at-extract.done": "crash-at-load.before_job",
    "relay-crash-at-load.before_job": "relay-crash-at-take.after_fence",
    # The checkpoint is stored, and an acknowledgement is in memory alone.
    "crash-at-batch.acked": "crash-at-checkpoint.stored",
    "relay-crash-at-batch.acked": "relay-crash-at-checkpoint.stored",
}
"""Not here, since another drill leaves the same state behind and looks for the same."""
ON_MYSQL = (
    "switchover",
    "freeze-in-transaction",
    "source-replaced",
    "load-task-dies",
    "two-way-failover",
)
"""What differs between the families: who waits for whose locks, how a transaction ends with its
connection, what names a position in a replica's binlog, and how rows of whole tables get in; and
all that a server has to do when a node is killed that reads it, and one that writes to it.

A load whose Select or driver dies is left to MariaDB: no server takes part in that. What goes from
one family to the other is in the tests of whole pipelines, leaders that die included."""


def on(sites, names):
    """Parametrise by drill, in one world: its scope is the session's, that of names is not."""
    by_name = pytest.mark.parametrize("name", names)
    by_sites = pytest.mark.parametrize("sites", [sites], indirect=True, scope="session")
    return lambda test: pytest.mark.timeout(600)(pytest.mark.servers(by_sites(by_name(test))))


@on("mariadb", [name for name in CATALOGUE if name not in SAME])
def test_drill(sites, name, world, runner):
    rehearse(world, runner, name)


@on("mysql", ON_MYSQL)
def test_drill_on_mysql(sites, name, world, runner):
    rehearse(world, runner, name)


def rehearse(world, runner, name):
    result = runner.run_one(world, CATALOGUE[name], SEED)
    assert result.passed, "\n".join([*result.problems, f"logs: {result.folder}"])


def test_the_drills_that_are_named_are_drills():
    assert {*ON_MYSQL, *SAME, *SAME.values()} <= set(CATALOGUE)
    assert not set(SAME.values()) & set(SAME)
