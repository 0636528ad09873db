"""A pipeline that is verified while it runs: what differs is found, told, repaired, and no more."""

import logging
import threading
from contextlib import contextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from arbiter.values import PipelineId
from setl.channel.fields.standing_verification import StandingVerification
from setl.channel.reading import parse_channel
from setl.node.metrics import NodeCollector
from setl.node.status import NodeStatus, PipelineStatus
from setl.run.verification.store import StoredVerification
from tests.integration.pipelines import binlog_end, execute, fresh_name, mysql, rows, two_way
from tests.integration.search.test_pipeline_search import Index, elasticsearch_target
from tests.integration.table_loads.test_table_load import fill
from tests.waiting import eventually

VERIFY = {"every": "1s", "rate": 200_000}


def verified(source, target, tables, **verify):
    """A channel from where the source's binlog ends now."""
    pipeline = {
        "name": "p",
        "source": {**mysql(source), "start": binlog_end(source), "heartbeat": 0.2},
        "target": target,
        "tables": tables,
        "verify": {**VERIFY, **verify},
    }
    return parse_channel({"channel": fresh_name("verified"), "pipelines": [pipeline]})


def when(running, so, timeout=180):
    """Wait until something is so of what standing verification tells; returns that."""

    def is_so():
        if not running.thread.is_alive():
            raise RuntimeError(f"the run ended: {running.error}")
        reported = running.figures.verification
        assert reported is not None
        assert so(reported), reported
        return reported

    return eventually(is_so, timeout, message="verification has come there")


def passes(running, number=1):
    """Wait for so many further whole passes."""
    reported = running.figures.verification
    now = reported.last.number if reported is not None and reported.last is not None else 0
    # A pass that is under way may have been before what has happened since.
    return when(running, lambda t: t.last is not None and t.last.number > now + number)


@contextmanager
def writing(server, table, first):
    """Fifty rows from this key on change all the time: they come, change and go."""
    stopping = threading.Event()
    written = 0

    def write():
        nonlocal written
        with server.connect() as connection, connection.cursor() as cursor:
            # Some are always under way; more of them take processor time and show no more.
            while not stopping.wait(0.05):
                key = first + written % 50
                if written % 7:
                    cursor.execute(
                        f"INSERT INTO {table} (id, name) VALUES (%s, %s) ON DUPLICATE KEY"
                        " UPDATE name = VALUES(name)",
                        (key, f"n{written}"),
                    )
                else:
                    cursor.execute(f"DELETE FROM {table} WHERE id = %s", (key,))
                written += 1

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
        eventually(lambda: written > 100, 60)
    finally:
        stopping.set()
        thread.join(30)


def metrics_of(running) -> Any:
    line = PipelineStatus("c", "p", "n1", 1, True, "leads", running.figures)
    registry = CollectorRegistry()
    registry.register(NodeCollector(lambda: NodeStatus("n1", "1", "", True, 0.0, (line,))))

    def value(name) -> Any:
        return registry.get_sample_value(name, {"channel": "c", "pipeline": "p"})

    return value


def lines_of(caplog, message):
    return [r.__dict__["setl"] for r in list(caplog.records) if r.getMessage() == message]


@pytest.mark.family("mariadb", why="test_verify_damage finds and repairs it on both, in flight too")
def test_what_is_damaged_by_hand_is_found_reported_and_repaired_while_a_writer_writes(
    servers, db, position, caplog
):
    a, b = servers
    caplog.set_level(logging.INFO, logger="setl.run.verification")
    running = position.lead(verified(a, mysql(b), [{"from": f"{db}.*"}], repair=True))
    fill(a, f"{db}.orders", 3000)
    running.applied(3000)
    with writing(a, f"{db}.orders", 0):
        reported = passes(running)
        assert (reported.differences, reported.counters.found, reported.error) == (0, 0, "")
        assert reported.last.rows > 2000
        execute(
            b,
            f"UPDATE {db}.orders SET name = 'wrong' WHERE id = 1000",
            f"DELETE FROM {db}.orders WHERE id = 2999",
            f"INSERT INTO {db}.orders (id, name) VALUES (5000, 'extra')",
        )
        reported = when(running, lambda t: t.counters.repaired >= 3)
        reported = passes(running)
        assert (reported.differences, reported.counters.found, reported.counters.repaired) == (
            0,
            3,
            3,
        )
    assert lines_of(caplog, "verification found differences")
    found = [line["keys"] for line in lines_of(caplog, "verification found differences")]
    assert {key for keys in found for key in keys.split("; ")} <= {
        "1000 different", "2999 missing", "5000 extra",
    }  # fmt: skip
    value = metrics_of(running)
    assert value("setl_verification_differences") == 0
    assert value("setl_verification_found_total") == 3
    assert value("setl_verification_repaired_total") == 3
    assert value("setl_verification_rows_total") > 9000
    assert value("setl_verification_age_seconds") < 60
    eventually(lambda: rows(b, f"{db}.orders") == rows(a, f"{db}.orders"), 60)


@pytest.mark.family("mariadb", why="what is stored of it is setl's own")
def test_the_position_survives_a_change_of_leader_and_what_differs_stays_reported(
    servers, db, position
):
    a, b = servers
    fill(a, f"{db}.orders", 4000)
    slow = verified(a, mysql(b), [{"from": f"{db}.*"}], rate=100, every="1h")
    fill(b, f"{db}.orders", 4000)
    execute(b, f"DELETE FROM {db}.orders WHERE id = 10")
    store = StoredVerification(position.arbiter, PipelineId(slow.channel, "p"))
    running = position.lead(slow)
    when(running, lambda t: t.differences == 1 and t.rows)
    eventually(lambda: store.load().now.rows, 60)
    running.stop()
    stored = store.load()
    assert (stored.now.number, stored.under_way) == (1, True)
    assert stored.position is not None
    assert stored.position.after is not None
    settings = StandingVerification(every=3600, rate=200_000)
    quick = slow.pipelines[0].model_copy(update={"verify": settings})
    running = position.lead(slow.model_copy(update={"pipelines": [quick]}))
    reported = when(running, lambda t: t.rows)
    assert (reported.number, reported.differences) == (1, 1)
    assert reported.rows >= stored.now.rows
    reported = when(running, lambda t: t.last is not None)
    assert (reported.last.rows, reported.last.differences, reported.coverage) == (4000, 1, 1.0)
    assert reported.counters.rows == 4000 - stored.now.rows, "this leader began where the other was"
    assert (reported.findings[0].missing, reported.findings[0].rows[0].key) == (1, "10")


@pytest.mark.family("mariadb", why="when rows are looked at again is setl's own")
def test_rows_on_their_way_in_the_other_direction_are_no_differences(servers, db, position):
    a, b = servers
    file = two_way(a, b, [{"from": f"{db}.*"}], channel={"verify": VERIFY})
    runs = {name: position.lead(file, name) for name in ("ab", "ba")}
    fill(a, f"{db}.orders", 500)
    eventually(lambda: len(rows(b, f"{db}.orders")) == 500, 60)
    # Each site has rows of its own.
    with writing(a, f"{db}.orders", 10_000), writing(b, f"{db}.orders", 20_000):
        for running in runs.values():
            reported = passes(running)
            assert (reported.differences, reported.counters.found, reported.error) == (0, 0, ""), (
                reported
            )
    with b.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(f"DELETE FROM {db}.orders WHERE id = 7")
    reported = when(runs["ab"], lambda t: t.differences == 1)
    assert (reported.findings[0].missing, reported.repaired) == (1, 0)


@pytest.mark.family("mariadb", why="what is about Elasticsearch is the same for both")
def test_a_document_that_somebody_changed_is_repaired(site_a, servers, elasticsearch, db, position):
    name = fresh_name("verified")
    index, target = Index(elasticsearch, name), elasticsearch_target(elasticsearch)
    running = position.lead(
        verified(site_a, target, [{"from": f"{db}.orders", "to": name}], repair=True)
    )
    fill(site_a, f"{db}.orders", 50)
    running.applied(50)
    assert passes(running).differences == 0
    index.call("POST", "/_update/7?refresh=true", {"doc": {"name": "wrong"}})
    reported = when(running, lambda t: t.counters.repaired == 1)
    reported = passes(running)
    assert (reported.differences, reported.counters.found) == (0, 1)
    assert index.document(7)["name"] == "näme 7"
