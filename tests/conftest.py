"""Servers for the tests of one run, each started when the first test asks for it."""

import os

import pytest
from hypothesis import settings

from setl_embedded import Elasticsearch, Kafka, MariaDb, ZooKeeper
from tests.mysql_servers import VARIABLE, drop_new_databases, given_servers, prepare

# A property test that fails must fail again: examples come from the test's own code, and a
# busy machine makes none of them fail.
settings.register_profile("setl", derandomize=True, deadline=None)
settings.load_profile("setl")


def pytest_collection_modifyitems(items):
    """Mark tests that need a server, so that ``-m 'not servers'`` leaves them out."""
    servers = {"mariadb_a", "mariadb_b", "zookeeper", "kafka", "elasticsearch", "spark"}
    for item in items:
        if servers & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.servers)


@pytest.fixture(scope="session")
def stack_folder(tmp_path_factory):
    """Data and logs of this run's servers; pytest keeps those of the last three runs."""
    return tmp_path_factory.mktemp("stack")


def _database_server(folder, number):
    given = given_servers(os.environ.get(VARIABLE, ""))
    if given:
        server = given[number]
        before = prepare(server)
        yield server
        drop_new_databases(server, before)
        return
    name = f"mariadb-{'ab'[number]}"
    with MariaDb(folder / name, name, 101 + number, gtid_domain_id=1 + number) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_a(stack_folder):
    """A server of either product, see `tests.mysql_servers`."""
    yield from _database_server(stack_folder, 0)


@pytest.fixture(scope="session")
def mariadb_b(stack_folder):
    yield from _database_server(stack_folder, 1)


@pytest.fixture(scope="session")
def zookeeper(stack_folder):
    with ZooKeeper(stack_folder / "zookeeper") as server:
        yield server


@pytest.fixture(scope="session")
def kafka(stack_folder):
    with Kafka(stack_folder / "kafka") as server:
        yield server


@pytest.fixture(scope="session")
def elasticsearch(stack_folder):
    with Elasticsearch(stack_folder / "elasticsearch") as server:
        yield server


@pytest.fixture(scope="session")
def spark():
    """A session as a node starts it, so that tests see its settings and not Spark's own."""
    from setl.pipeline.spark_session import SparkSettings, start_session

    session = start_session(SparkSettings(master="local[2]", name="setl-tests"))
    yield session
    session.stop()
