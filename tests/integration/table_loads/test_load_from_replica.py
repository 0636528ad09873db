"""Tables are loaded from a replica, whose stream is read, while clients write to its primary."""

import pymysql
import pytest

from setl_embedded import MySql
from tests.integration.pipelines import (
    ORDERS,
    execute,
    fresh_name,
    install_system_tables,
    mysql,
    rows,
)
from tests.integration.replicas import points_at
from tests.integration.table_loads.test_table_load import (
    fill,
    loading,
    small_steps,  # noqa: F401 - a fixture
    wait_until_loaded,
    written,
)
from tests.waiting import eventually

_NOT_THERE = {1049, 1146}  # no such database, no such table


@pytest.fixture
def replicated(site_a, another_server, tmp_path):
    """A replica of site A that applies one database in several threads, and the database."""
    name = fresh_name("replicated")
    options = (f"--replicate-wild-do-table={name}.%", "--log-slave-updates=ON")
    if isinstance(site_a, MySql):
        options = (*options, "--replica-parallel-workers=4")
    else:
        options = (*options, "--slave-parallel-threads=4", "--slave-parallel-mode=optimistic")
    with another_server(tmp_path / "r", "replica", server_id=106, options=options) as server:
        install_system_tables(server)
        points_at(server, site_a)
        execute(server, "START REPLICA")
        yield server, name


def has_rows(replica, table, count):
    """Whether a replica has so many rows of a table; it may lack the table itself as yet."""
    try:
        return execute(replica, f"SELECT COUNT(*) FROM {table}") == ((count,),)
    except pymysql.MySQLError as error:
        if error.args[0] not in _NOT_THERE:
            raise
        return False


def test_a_replica_s_rows_arrive_while_its_primary_is_written(
    servers,
    replicated,
    position,
    small_steps,  # noqa: F811
):
    a, b = servers
    replica, name = replicated
    for server in servers:
        execute(server, f"CREATE DATABASE {name}", ORDERS.format(db=name))
    fill(a, f"{name}.orders", 1500)
    eventually(lambda: has_rows(replica, f"{name}.orders", 1500), 120)
    with written(a, f"{name}.orders", 1750):
        running = position.lead(loading(replica, mysql(b), [{"from": f"{name}.orders"}]))
        reported = wait_until_loaded(running)
    assert reported.rows > 500
    eventually(
        lambda: rows(b, f"{name}.orders") == rows(a, f"{name}.orders"),
        60,
        interval=0.3,
        message="the target is as the primary",
    )
    assert running.figures.rows_total > 0
    assert running.thread.is_alive(), running.error
