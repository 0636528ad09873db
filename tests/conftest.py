"""Servers for the tests of one run, each started when the first test asks for it."""

import gc
import os
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis import settings
from osmem_server import OsmemServer

from setl_embedded import Elasticsearch, Kafka, ZooKeeper
from tests.databases import GIVEN, Databases, new_server
from tests.families import Pair, pair_of, pairs_of, suits
from tests.mysql_servers import given_servers, is_mariadb

# A property test that fails must fail again: examples come from the test's own code, and a
# busy machine makes none of them fail.
settings.register_profile("setl", derandomize=True, deadline=None)
settings.load_profile("setl")


# Python workers of Spark, and commands, find the target of another package as this process does.
_PLUGINS = str(Path(__file__).parent / "plugins")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.getenv("PYTHONPATH"), _PLUGINS)))

_SERVERS = {"databases", "zookeeper", "kafka", "elasticsearch", "opensearch", "spark"}


# Modules and collected tests stay until the end: looking through them for garbage, again and again
# while they grow and then beside whatever tests make, took a twentieth of a lane's processor time.
gc.set_threshold(10_000, 10, 10)


def pytest_collection_finish():
    """Leave what is there by now out of garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser):
    parser.addoption(
        "--family",
        choices=[str(pair) for pair in Pair],
        help="only tests on these database servers, and those that need none",
    )


def pytest_generate_tests(metafunc):
    """Run what talks to a database server on each pair of servers that `tests.families` names."""
    if "server_pair" in metafunc.fixturenames:
        pairs = pairs_of(metafunc.definition.nodeid.partition("::")[0], bool(GIVEN))
        metafunc.parametrize("server_pair", pairs, ids=str, indirect=True, scope="session")


def pytest_collection_modifyitems(config, items):
    """Mark what needs a server; drop what says nothing on the pair of servers it got."""
    wanted = config.getoption("--family")
    stored, dropped = [], []
    for item in items:
        pair = pair_of(item)
        if pair is not None or _SERVERS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.servers)
        only = [family for mark in item.iter_markers("family") for family in mark.args]
        one = item.get_closest_marker("not_mixed") is not None
        fits = pair is None or (suits(pair, only, one=one) and wanted in (None, str(pair)))
        (stored if fits else dropped).append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = stored


@cache
def _given_families():
    """Of which families the servers are that somebody else runs."""
    found = set()
    for server in given_servers(GIVEN):
        with server.connect() as connection:
            found.add("mariadb" if is_mariadb(connection) else "mysql")
    return found


def pytest_runtest_setup(item):
    """Skip what is about another family than that of the servers that somebody else runs."""
    if pair_of(item) is Pair.GIVEN and (marks := [*item.iter_markers("family")]):
        wanted = {family for mark in marks for family in mark.args}
        if not _given_families() <= wanted:
            pytest.skip("; ".join(mark.kwargs["why"] for mark in marks))


@pytest.fixture(scope="session")
def stack_folder(tmp_path_factory):
    """Data and logs of this run's servers; pytest keeps those of the last three runs."""
    return tmp_path_factory.mktemp("stack")


@pytest.fixture(scope="session")
def databases(stack_folder):
    servers = Databases(stack_folder, GIVEN)
    yield servers
    servers.close()


@pytest.fixture(scope="session")
def server_pair(request):
    """Of which families the two database servers are, see `tests.families`."""
    return request.param


@pytest.fixture(scope="session")
def site_a(databases, server_pair):
    """Site A, of either family."""
    return databases.site(server_pair, 0)


@pytest.fixture(scope="session")
def site_b(databases, server_pair):
    """Site B, of either family."""
    return databases.site(server_pair, 1)


@pytest.fixture(scope="session")
def another_server(server_pair):
    """Makes a further server of site A's family, for tests that stop or configure it.

    It takes the arguments of `tests.databases.new_server` behind the family, and is not started.
    """
    return partial(new_server, server_pair.a)


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
def opensearch():
    """An OpenSearch in memory, which starts in milliseconds; has `url`."""
    with OsmemServer.start(japanese=False) as server:
        yield server


@pytest.fixture(scope="session")
def spark():
    """A session as a node starts it, so that tests see its settings and not Spark's own."""
    from setl.run.spark.session import SparkSettings, start_session

    session = start_session(SparkSettings(master="local[2]", name="setl-tests"))
    yield session
    session.stop()
