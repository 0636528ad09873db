"""Pipelines of servers whose binlog files have numbers of seven digits."""

from typing import Any

import pytest

from arbiter.values import PipelineId
from setl.model.checkpoint import Checkpoint
from setl_embedded import MySql
from tests.integration.pipelines import (
    execute,
    fresh_name,
    install_system_tables,
    mysql,
    one_way,
    rows,
)
from tests.integration.search.test_pipeline_search import Index, elasticsearch_target

pytestmark = pytest.mark.servers

TWO_POW_20 = 1_048_576


@pytest.fixture
def own(another_server, tmp_path):
    with another_server(tmp_path, "own", 231) as server:
        yield server


def reset_to(server, number):
    """Have the next binlog file be the one with this number."""
    statement = "RESET BINARY LOGS AND GTIDS" if isinstance(server, MySql) else "RESET MASTER"
    execute(server, f"{statement} TO {number}")


def stored(position, file) -> Any:
    value, _ = position.arbiter.positions.read(PipelineId(file.channel, "p"))
    return Checkpoint.from_json(value["checkpoint"])


def test_files_go_on_behind_seven_digits(own, site_b, elasticsearch, position):
    install_system_tables(site_b)
    for first, flushes in ((TWO_POW_20 - 1, 2), (1_103_860, 1)):
        name = fresh_name("many")
        create = (f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT)")
        execute(site_b, *create)
        reset_to(own, first)
        execute(own, *create)
        index = Index(elasticsearch, f"{name}-t")
        mapping = {"from": f"{name}.t", "to": f"{name}-t"}
        files = (
            one_way(own, elasticsearch_target(elasticsearch), [mapping]),
            one_way(own, mysql(site_b), [{"from": f"{name}.t"}]),
        )
        running = [position.lead(file) for file in files]
        done = 0
        for number in range(flushes + 1):
            if number:
                execute(own, "FLUSH BINARY LOGS")
            execute(
                own,
                f"INSERT INTO {name}.t VALUES ({number}, 0), ({number + 100}, 0)",
                f"UPDATE {name}.t SET v = v + 1 WHERE id < 100",
                f"DELETE FROM {name}.t WHERE id = {number + 99}",
            )
            done += 2 + (number + 1) + (number > 0)
            for one in running:
                one.applied(done)
                assert one.figures.stale == 0
            assert stored(position, files[0]).generation == 1
        # Whoever takes over goes on, and writes more than what is there.
        for one in running:
            one.stop()
        running = [position.lead(file) for file in files]
        execute(own, f"UPDATE {name}.t SET v = v + 10 WHERE id < 100")
        expected = execute(own, f"SELECT * FROM {name}.t ORDER BY id")
        for one in running:
            one.applied(done + flushes + 1)
            assert one.figures.stale == 0
            one.stop()
        assert rows(site_b, f"{name}.t") == tuple(expected)
        assert [index.document(id_)["v"] for id_, _ in expected] == [v for _, v in expected]
        assert index.document(99) is None
        assert int(stored(position, files[0]).resume.file.rpartition(".")[2]) >= TWO_POW_20
