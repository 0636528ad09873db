"""What tests of whole pipelines, and of the commands, have in common."""

from unittest.mock import patch

import pytest

from setl.transform.spark_on_demand import SparkOnDemand
from setl_drills.nodes import Cluster
from setl_embedded import ZooKeeper
from setl_embedded.ports import free_port
from tests.integration.pipelines import ORDERS, install_system_tables, on_both, site
from tests.integration.two_nodes import TOKEN, Channel, command, is_warm
from tests.waiting import eventually


@pytest.fixture(scope="module")
def servers(site_a, site_b):
    """Two servers with setl's system tables."""
    install_system_tables(site_a)
    install_system_tables(site_b)
    return site_a, site_b


@pytest.fixture
def position(spark):
    """Where runs are started; what is left of them is stopped."""
    with site(spark) as position:
        yield position


db = on_both("shop", ORDERS)
"""A database with one table of many types, on both servers."""


@pytest.fixture(scope="package")
def zookeeper_of_cluster(tmp_path_factory):
    """Not the shared one: it is stopped, and its data are deleted."""
    with ZooKeeper(tmp_path_factory.mktemp("zookeeper") / "zookeeper") as server:
        yield server


@pytest.fixture(scope="package")
def cluster(zookeeper_of_cluster, site_a, site_b, tmp_path_factory):
    install_system_tables(site_a)
    install_system_tables(site_b)
    environment = {"SITE_A_PASSWORD": site_a.password, "SITE_B_PASSWORD": site_b.password}
    environment["SETL_HTTP_TOKEN"] = TOKEN
    cluster = Cluster(tmp_path_factory.mktemp("nodes"), zookeeper_of_cluster.hosts, environment)
    try:
        for nid in ("n1", "n2"):
            cluster.start_node(nid, free_port(), master="local[1]")
        eventually(lambda: all(is_warm(cluster, nid) for nid in cluster.nodes), 280, interval=0.2)
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def channel(cluster, site_a, site_b):
    eventually(lambda: all(is_warm(cluster, nid) for nid in cluster.nodes), 280)
    channel = Channel(cluster, site_a, site_b)
    command(cluster, "apply", str(channel.file))
    command(cluster, "start", channel.name)
    yield channel
    command(cluster, "stop", channel.name, check=False)


@pytest.fixture
def spark_command(spark):
    """As `command`, for those that start Spark: they get the session of the tests, which stays.

    A session of a command's own takes six seconds of processor time; test_spark_process is about
    those, and one command of each kind here is a process all the same.
    """

    def given(_):
        return spark.sparkContext

    with (
        patch("setl.cli.rows.comparing.start_context", given),
        patch("setl.run.spark.session.start_context", given),
        patch.object(SparkOnDemand, "stop", lambda _: None),
    ):
        yield command
