"""A pipeline that goes back in its stream, over values that have moved from row to row since."""

from setl.channel.reading import parse_channel
from setl.errors import FatalError
from tests.integration.pipelines import execute, mysql, on_both, one_way
from tests.waiting import eventually

ROWS = 6


db = on_both(
    "back",
    "CREATE TABLE {db}.t (id INT PRIMARY KEY, code INT NULL UNIQUE)",
    "CREATE TABLE {db}.other (id INT PRIMARY KEY)",
)


def test_unique_values_that_moved_on(servers, db, position):
    a, b = servers
    small = {"batch_rows": 2, "window": 2, "batch_wait": 0.01}
    file = one_way(a, mysql(b), [{"from": f"{db}.*"}], **small)
    running = position.lead(file)
    changes = []
    for i in range(ROWS):
        # Changes of another table between those of this one: what follows another is joined.
        changes += [
            f"INSERT INTO {db}.t VALUES ({i}, {i})",
            f"INSERT INTO {db}.other VALUES ({i})",
        ]
    for turn in range(8):
        changes += [
            f"UPDATE {db}.t SET code = code + 1000",
            f"UPDATE {db}.t SET code = (id + {turn}) % {ROWS}",
        ]
    execute(a, *changes)
    want = execute(a, f"SELECT * FROM {db}.t ORDER BY id")
    eventually(lambda: execute(b, f"SELECT * FROM {db}.t ORDER BY id") == want, 120)
    running.stop()
    again = file.model_dump(by_alias=True)
    again["pipelines"][0]["generation"] = 2
    running = position.lead(parse_channel(again))
    execute(a, f"INSERT INTO {db}.t VALUES (100, NULL)")
    eventually(
        lambda: (
            not running.error
            and execute(b, f"SELECT COUNT(*) FROM {db}.t WHERE id = 100") == ((1,),)
        ),
        120,
    )
    assert running.error is None
    # Rows are counted a moment after they can be seen.
    eventually(lambda: running.figures.rows_applied > 16 * ROWS, 10, message="all came again")
    assert execute(b, f"SELECT * FROM {db}.t WHERE id < 100 ORDER BY id") == want


def test_a_target_that_was_set_back_and_its_checkpoint_was_not(servers, db, position):
    a, b = servers
    file = one_way(a, mysql(b), [{"from": f"{db}.t"}], checkpoint="zookeeper")
    for id_ in (1, 2):
        execute(a, f"INSERT INTO {db}.t VALUES ({id_}, NULL)")
        running = position.lead(file)
        running.applied(id_)
        running.stop()
    of = f"WHERE pipeline = '{file.channel}/p'"
    # As a backup from the first leader's time has it.
    execute(b, f"DELETE FROM {db}.t WHERE id = 2")
    execute(b, f"UPDATE retl.setl_fence SET epoch = epoch - 1 {of}")
    error = position.lead(file).ends()
    assert isinstance(error, FatalError), error
    assert "the target was set back" in str(error)
