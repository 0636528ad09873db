"""Nodes on a Spark cluster whose workers lack Python, get one in an archive, or end the session."""

import os
import signal
import tarfile

import pytest

from setl_drills.nodes import Cluster
from setl_embedded.ports import free_port
from tests.integration.pipelines import fresh_name
from tests.integration.spark_cluster import (
    executors_of,
    node_options,
    python_without_setl,
    spark_cluster,
)
from tests.integration.two_nodes import is_warm
from tests.waiting import eventually

pytestmark = pytest.mark.timeout(900)  # a node starts in a minute when the machine is busy


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    # Spark ends an application whose executors have failed ten times; here at the first time.
    options = "-Dspark.deploy.maxExecutorRetries=1"
    with spark_cluster(tmp_path_factory.mktemp("spark"), 1, options) as (master, (worker,)):
        yield master, worker


@pytest.fixture
def nodes(zookeeper, tmp_path):
    nodes = Cluster(tmp_path, zookeeper.hosts, {"SETL_ROOT": f"/{fresh_name()}"})
    yield nodes
    nodes.stop()


def start(nodes, cluster, environment, *options):
    master, _ = cluster
    options = (*node_options(), *options)
    node = nodes.start_node("n1", free_port(), master.url, environment, options)
    return node, node._child


def test_a_node_whose_workers_have_no_python_says_so_and_ends(nodes, cluster, tmp_path):
    node, child = start(nodes, cluster, {"PYSPARK_PYTHON": f"{tmp_path}/none/bin/python"})
    assert child.wait(280) == 2
    assert "Spark's workers cannot run setl's tasks: Cannot run program" in node.tail()
    assert "--archives" in node.tail()


def test_a_python_that_comes_in_an_archive_and_a_session_that_the_cluster_ends(
    nodes, cluster, tmp_path
):
    environment = tmp_path / "environment"
    python_without_setl(environment)
    with tarfile.open(tmp_path / "packed.tar.gz", "w:gz") as archive:
        archive.add(environment, ".")
    packed = f"{tmp_path}/packed.tar.gz#unpacked"
    node, child = start(nodes, cluster, {}, "--archives", packed)
    # Warm means that the tasks of a load have run there, and found what they import.
    eventually(lambda: is_warm(nodes, "n1"), 280)
    (executor,) = executors_of(cluster[1])
    os.kill(executor, signal.SIGKILL)
    assert child.wait(60) == 4
    assert "Spark has ended this node's session" in node.tail()
