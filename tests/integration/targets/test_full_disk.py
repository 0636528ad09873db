"""A target that has no room: tried again with growing waits, and it shows.

A table in memory that may hold little, filled by a trigger, has the server answer with its error
1114, as it does when its disk is full.
"""

import pytest

from setl.clock import SystemClock
from setl.node.leading.stall_watch import StallWatch
from setl.run.measured.figures import RunState
from tests.integration.pipelines import execute, mysql, new_database, one_way, rows
from tests.waiting import eventually

pytestmark = pytest.mark.family(
    "mariadb", why="MySQL with GTIDs writes to no table in memory beside others"
)


@pytest.fixture
def full(servers):
    """A schema on both servers; on site B only some rows of `notes` find room."""
    table = "CREATE TABLE {db}.notes (id INT PRIMARY KEY, t VARCHAR(200))"
    with new_database(servers, "shop", table) as name:
        execute(
            servers[1],
            "SET SESSION max_heap_table_size = 16384",
            f"CREATE TABLE {name}.room (t CHAR(200)) ENGINE = MEMORY",
            f"CREATE TRIGGER {name}.takes_room AFTER INSERT ON {name}.notes FOR EACH ROW"
            f" INSERT INTO {name}.room VALUES (NEW.t)",
        )
        yield name


def write(server, table, first, count):
    values = ", ".join(f"({n}, 'note')" for n in range(first, first + count))
    execute(server, f"INSERT INTO {table} VALUES {values}")


def test_a_full_target_is_tried_again_ever_more_slowly(servers, full, position):
    a, b = servers
    table = f"{full}.notes"
    file = one_way(a, mysql(b), [{"from": table}])
    # What comes before the rows that fail is read again by each attempt, and is no success.
    end = file.pipelines[0].source.model_copy(update={"heartbeat": 0.1})
    pipeline = file.pipelines[0].model_copy(update={"source": end})
    running = position.lead(file.model_copy(update={"pipelines": [pipeline]}))
    watch = StallWatch(SystemClock(), limit=2.0)
    watch.follow(running.run.observed)
    watch.start()
    try:
        write(a, table, 0, 5)
        running.applied(5)
        samples = running.figures.lag_p50
        eventually(lambda: running.figures.lag_p50 not in {None, samples}, 60)
        write(a, table, 5, 1000)
        seen = []

        def attempt(number):
            figures = running.figures
            seen.append((figures.attempts, figures.state, "1114" in figures.error))
            return figures if figures.attempts >= number else None

        # A failure is counted a moment before the state and its error are told.
        eventually(lambda: attempt(1) and running.figures.state is RunState.RETRYING, 60)
        seen.clear()
        eventually(lambda: attempt(4), 60)
        assert {(state, reported) for _, state, reported in seen} == {(RunState.RETRYING, True)}
        assert sorted(seen, key=lambda each: each[0]) == seen, "they are counted on"
        figures = eventually(lambda: running.figures.stalled_reason and running.figures, 60)
        assert figures.stalled_reason == "retrying"
        assert "1114" in figures.stalled
        assert figures.lag > 1
        execute(b, f"DROP TRIGGER {full}.takes_room")
        running.applied(1005)
        eventually(lambda: running.figures.state is RunState.RUNNING, 60)
        eventually(lambda: not running.figures.stalled, 60)
        assert (running.figures.attempts, running.figures.error) == (0, "")
        assert rows(b, table) == rows(a, table)
    finally:
        running.abort()
        watch.stop()
