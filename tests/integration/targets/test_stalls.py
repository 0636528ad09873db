"""What holds a pipeline up is named while it does, on real servers, and forgotten afterwards."""

import functools
import logging
import threading

import pytest

from setl.clock import SystemClock
from setl.node.leading.stall_watch import StallWatch
from setl.run.measured.figures import RunState
from setl.systems.mysql.sink.sink import MysqlSinkSettings
from tests.integration.pipelines import (
    execute,
    fresh_name,
    install_system_tables,
    mysql,
    one_way,
    rows,
)
from tests.waiting import eventually

LIMIT = 2.0
SOON = 60  # seconds in which anything has to be noticed on a busy machine


@pytest.fixture
def db(servers):
    name = fresh_name("shop")
    create(name, *servers)
    yield name
    for server in servers:
        execute(server, f"DROP DATABASE {name}")


def create(name, *servers):
    for server in servers:
        execute(
            server,
            f"CREATE DATABASE {name}",
            f"CREATE TABLE {name}.orders (id BIGINT PRIMARY KEY, name VARCHAR(40))",
        )


@pytest.fixture
def watched(position):
    """Leads a channel with a watch on it that loses patience quickly."""
    watches = []

    def lead(file, limit=LIMIT):
        watch = StallWatch(SystemClock(), limit=limit)
        watches.append(watch)
        watch.start()
        running = position.lead(file)
        watch.follow(running.run.observed)
        return running

    yield lead
    for watch in watches:
        watch.stop()


def stalls(running, reason, *words):
    """Wait until a reason is told, in words of which some are given; returns these figures."""

    def reported():
        figures = running.figures
        assert figures.stalled_reason == reason, figures
        assert all(word in figures.stalled for word in words), figures.stalled
        return figures

    return eventually(reported, SOON)


def goes_on(running):
    eventually(lambda: not running.figures.stalled, SOON)
    figures = running.figures
    assert (figures.stalled_stage, figures.stalled_reason) == ("", "")


def test_a_lock_on_a_row_is_named_with_who_holds_it(servers, db, watched, caplog):
    a, b = servers
    caplog.set_level(logging.INFO, "setl.node.leading.stall_watch")
    # Of the lock is told from the beginning of the stall on, if it was seen within half of this.
    running = watched(one_way(a, mysql(b), [{"from": f"{db}.orders"}]), limit=3 * LIMIT)
    execute(a, f"INSERT INTO {db}.orders VALUES (1, 'one'), (2, 'two')")
    running.applied(2)
    with b.connect(autocommit=False) as holder:
        with holder.cursor() as cursor:
            cursor.execute(f"UPDATE {db}.orders SET name = 'held' WHERE id = 1")
        execute(a, f"UPDATE {db}.orders SET name = 'wanted' WHERE id = 1")
        holds = f"connection {holder.thread_id()} ({b.user}@"
        idle = "idle in its transaction"
        figures = stalls(running, "waiting for lock", holds, f"{db}.orders", idle)
        assert figures.stalled_stage == "load"
        holder.rollback()
    running.applied(3)
    goes_on(running)
    assert rows(b, f"{db}.orders") == ((1, "wanted"), (2, "two"))
    # The log tells of the end right after the figures do.
    said = eventually(lambda: both_lines(caplog, figures.stalled_reason), SOON)
    assert said[0].setl["reason"] == said[1].setl["reason"] == "waiting for lock"
    assert said[0].setl["epoch"] == running.run.observed.leadership.epoch


def both_lines(caplog, reason):
    """The lines about a stall for this reason; the first load may have looked like one, too."""
    said = [r for r in list(caplog.records) if getattr(r, "setl", {}).get("reason") == reason]
    assert [record.getMessage() for record in said] == [
        "pipeline stalls",
        "pipeline goes on after a stall",
    ]
    return said


@pytest.mark.family("mariadb", why="who holds a lock is asked above; this is about attempts")
def test_attempts_that_give_up_on_a_lock_do_not_hide_it(servers, db, watched, monkeypatch):
    a, b = servers
    hasty = functools.partial(MysqlSinkSettings, lock_wait=1)
    monkeypatch.setattr("setl.systems.mysql.target_system.MysqlSinkSettings", hasty)
    # An attempt that reads for as long as this counts as one that got through: on a busy machine
    # it takes a while until the row is read again.
    running = watched(one_way(a, mysql(b), [{"from": f"{db}.orders"}]), limit=3 * LIMIT)
    execute(a, f"INSERT INTO {db}.orders VALUES (1, 'one')")
    running.applied(1)
    with b.connect(autocommit=False) as holder:
        with holder.cursor() as cursor:
            cursor.execute(f"UPDATE {db}.orders SET name = 'held' WHERE id = 1")
        execute(a, f"UPDATE {db}.orders SET name = 'wanted' WHERE id = 1")
        eventually(lambda: running.figures.retries >= 2, SOON)
        # Who holds the lock is told if somebody waited for it a moment ago, and not between two
        # attempts that are further apart.
        holds = f"connection {holder.thread_id()} "
        stalls(running, "waiting for lock", "attempts have failed", holds)
        # Not for a moment does it look as if it went on, whatever an attempt is doing.
        before = running.figures.retries
        while running.figures.retries < before + 1:
            assert running.thread.is_alive(), running.error
            assert running.figures.stalled_reason == "waiting for lock"
            threading.Event().wait(0.05)
        holder.rollback()
    running.applied(2)
    goes_on(running)


def test_a_lock_on_the_fence_holds_up_the_take_over(servers, db, watched):
    a, b = servers
    # One attempt has to wait for longer than the watch has patience.
    target = {**mysql(b), "fence_timeout": 5}
    file = one_way(a, target, [{"from": f"{db}.orders"}])
    key = f"{file.channel}/p"
    execute(b, f"INSERT INTO retl.setl_fence (pipeline, epoch, nid) VALUES ('{key}', 1, 'n0')")
    with b.connect(autocommit=False) as holder:
        with holder.cursor() as cursor:
            cursor.execute(f"SELECT * FROM retl.setl_fence WHERE pipeline = '{key}' FOR UPDATE")
        running = watched(file)
        holds = f"connection {holder.thread_id()} "
        figures = stalls(running, "waiting for lock", holds, "retl.setl_fence")
        assert figures.stalled_stage == "take over"
        holder.rollback()
    eventually(lambda: running.figures.state is RunState.RUNNING, SOON)
    goes_on(running)


def test_a_slow_statement_is_the_targets_fault_but_a_long_load_that_advances_is_none(
    servers, db, watched
):
    a, b = servers
    slow = f"CREATE TRIGGER {db}.slow BEFORE INSERT ON {db}.orders FOR EACH ROW DO SLEEP"
    execute(b, f"{slow}(0.02)")
    # The load has to be seen to advance twice in this time, by threads that want a core, too.
    limit = 2 * LIMIT
    running = watched(one_way(a, mysql(b), [{"from": f"{db}.orders"}]), limit)
    execute(a, f"INSERT INTO {db}.orders VALUES (0, 'n')")
    running.applied(1)  # so that a busy machine is done with beginning
    values = ", ".join(f"({i}, 'n')" for i in range(1, 500))
    execute(a, f"INSERT INTO {db}.orders VALUES {values}")
    seen = set()
    longest = 0.0
    while running.figures.rows_total < 500:
        assert running.thread.is_alive(), running.error
        seen.add(running.figures.stalled)
        longest = max(longest, running.figures.stage_seconds)
        threading.Event().wait(0.05)
    assert longest > 2 * limit, "the load was no long one"
    assert seen == {""}
    execute(b, f"DROP TRIGGER {db}.slow", f"{slow}(IF(NEW.id = 1000, 10, 0))")
    execute(a, f"INSERT INTO {db}.orders VALUES (1000, 'slow')")
    figures = stalls(running, "target slow")
    assert figures.stalled_stage == "load"
    assert "runs for" in figures.stalled
    running.applied(501)
    goes_on(running)


@pytest.mark.family("mariadb", why="of a server that is silent nothing can be told")
def test_a_frozen_target_does_not_answer(servers, another_server, watched, tmp_path):
    a, _ = servers
    db = fresh_name("shop")
    with another_server(tmp_path / "target", "target", server_id=301) as target:
        install_system_tables(target)
        create(db, a, target)
        running = watched(one_way(a, mysql(target), [{"from": f"{db}.orders"}]))
        execute(a, f"INSERT INTO {db}.orders VALUES (1, 'one')")
        running.applied(1)
        target.pause()
        try:
            execute(a, f"INSERT INTO {db}.orders VALUES (2, 'two')")
            figures = stalls(running, "target does not answer")
            assert figures.stalled_stage == "load"
            assert f"127.0.0.1:{target.port}" in figures.stalled
        finally:
            target.resume()
        running.applied(2)
        goes_on(running)
        running.abort()
    execute(a, f"DROP DATABASE {db}")


@pytest.mark.family("mariadb", why="what does not come is of no family")
def test_a_source_that_swallows_heartbeats_is_silent(servers, another_server, watched, tmp_path):
    _, b = servers
    db = fresh_name("shop")
    # Heartbeats are written, and by a mistake in its settings never get into the binlog.
    options = ["--binlog-ignore-db=retl"]
    with another_server(tmp_path / "source", "source", server_id=302, options=options) as source:
        install_system_tables(source)
        create(db, source, b)
        file = one_way(source, mysql(b), [{"from": f"{db}.orders"}])
        end = file.pipelines[0].source.model_copy(update={"heartbeat": 0.2})
        pipeline = file.pipelines[0].model_copy(update={"source": end})
        running = watched(file.model_copy(update={"pipelines": [pipeline]}))
        figures = stalls(running, "source silent")
        assert figures.stalled_stage == "select"
        assert "heartbeats were written" in figures.stalled
        execute(source, f"INSERT INTO {db}.orders VALUES (1, 'one')")
        running.applied(1)
        goes_on(running)
        running.abort()
    execute(b, f"DROP DATABASE {db}")
