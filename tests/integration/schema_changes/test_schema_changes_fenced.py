"""Which leadership may change tables, and in which order things are written down."""

import threading
from dataclasses import dataclass

import pytest

from setl.channel.routes.routing import Router
from setl.errors import FatalError, FencedError, SetlError, TransientError
from setl.load.sink import LoadTicket, SchemaChange
from setl.model.leadership import Leadership
from setl.model.session import MODES, StatementSession
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.ddl.ledger import MAX_DONE
from setl.systems.mysql.ddl.replicating import MysqlDdl
from setl.systems.mysql.load.fence import MysqlFence
from tests.held_points import held
from tests.integration.pipelines import execute, fresh_name, mysql, one_way
from tests.waiting import eventually


@dataclass
class Target:
    """A target with one table, and schema changes for it under any epoch."""

    server: object
    db: str
    pipeline: str
    ddl: MysqlDdl
    fence: MysqlFence

    def change(self, epoch, statement, *, ident="1-1-1", generation=1, session=None):
        ticket = LoadTicket(Leadership("c", self.pipeline, "n", epoch), 1, 0, through=5)
        session = session or StatementSession(self.db)
        return self.ddl.apply(ticket, SchemaChange(ident, statement, session, generation, 5))

    def columns(self):
        return [row[0] for row in execute(self.server, f"SHOW COLUMNS FROM {self.db}.t")]

    def states(self):
        return execute(
            self.server,
            "SELECT step, state FROM retl.setl_ddl"
            f" WHERE pipeline = 'c/{self.pipeline}' ORDER BY at, step",
        )


@pytest.fixture
def target(servers, request):
    _, server = servers
    db, pipeline = fresh_name("ddl"), fresh_name("p")
    execute(server, f"CREATE DATABASE {db}", f"CREATE TABLE {db}.t (id INT PRIMARY KEY, a INT)")
    endpoint = MysqlEndpoint(server.host, server.port, server.user, server.password)
    mapping = getattr(request, "param", {})
    file = one_way(server, mysql(server) | {"port": 1}, [{"from": f"{db}.*", **mapping}])
    nonces = iter(range(1000))
    ddl = MysqlDdl(
        endpoint, 17, Router(file.pipelines[0]), lambda: str(next(nonces)), marked_drops=False
    )
    target = Target(server, db, pipeline, ddl, MysqlFence(endpoint, f"c/{pipeline}", 1.0))
    target.fence.raise_to(5, "n")
    yield target
    execute(server, f"DROP DATABASE {db}")


def test_a_change_is_done_once(target):
    assert target.change(5, "ALTER TABLE t ADD b INT")[0].startswith("/*setl:17*/ ALTER TABLE")
    assert target.change(5, "ALTER TABLE t ADD b INT")[0].startswith("done before")
    assert target.columns() == ["id", "a", "b"]
    assert target.states() == ((0, "done"),)


def test_a_stale_leader_changes_nothing(target):
    target.fence.raise_to(6, "other")
    with pytest.raises(FencedError):
        target.change(5, "ALTER TABLE t ADD b INT")
    assert target.columns() == ["id", "a"]
    assert target.states() == ()


def in_thread(work):
    failures = []

    def run():
        try:
            work()
        except SetlError as error:
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread, failures


def test_a_leader_that_froze_before_its_statement_does_not_run_it(target):
    with held("ddl.begun") as there:
        thread, failures = in_thread(lambda: target.change(5, "ALTER TABLE t ADD b INT"))
        assert there.wait(20)
        target.fence.raise_to(6, "other")
    thread.join(30)
    assert isinstance(failures[0], TransientError)
    assert target.columns() == ["id", "a"]
    target.change(6, "ALTER TABLE t ADD b INT")
    assert target.columns() == ["id", "a", "b"]


def test_the_statement_of_a_former_leader_is_ended(target):
    with target.server.connect(autocommit=False) as reader, reader.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {target.db}.t")  # holds the table until it commits
        thread, failures = in_thread(lambda: target.change(5, "ALTER TABLE t ADD b INT"))
        eventually(lambda: altering(target), 20)
        target.fence.raise_to(6, "other")
        assert not altering(target)
        reader.rollback()
    thread.join(30)
    assert isinstance(failures[0], TransientError)
    assert target.columns() == ["id", "a"]


def altering(target):
    """Connections that run an ALTER of the table; one that was killed is listed for a moment."""
    found = execute(target.server, "SHOW FULL PROCESSLIST")
    running = (row for row in found if row[4] != "Killed")
    return [row for row in running if f"ALTER TABLE `{target.db}`" in str(row[7])]


def test_what_the_target_refuses_is_written_down_and_can_be_mended(target):
    execute(target.server, f"INSERT INTO {target.db}.t VALUES (1, 100000)")
    strict = StatementSession(target.db, MODES["STRICT_ALL_TABLES"])
    statement = "ALTER TABLE t MODIFY a TINYINT"
    with pytest.raises(FatalError, match=r"refuses a schema change.*Out of range"):
        target.change(5, statement, session=strict)
    assert target.states() == ((0, "failed"),)
    execute(target.server, f"UPDATE {target.db}.t SET a = 1")
    target.change(5, statement, session=strict)
    assert target.states() == ((0, "done"),)


def test_what_was_done_by_hand_is_passed_over(target):
    with pytest.raises(FatalError) as caught:
        target.change(5, "ALTER TABLE t ADD a INT")
    execute(target.server, caught.value.hint.partition("run there: ")[2].partition(";")[0])
    assert target.change(5, "ALTER TABLE t ADD a INT")[0].startswith("done before")


def test_a_pipeline_that_went_back_takes_what_is_so_already(target):
    target.change(5, "ALTER TABLE t ADD b INT")
    target.change(5, "ALTER TABLE t ADD b INT", generation=2)
    assert target.columns() == ["id", "a", "b"]
    with pytest.raises(FatalError):
        target.change(5, "ALTER TABLE t ADD b INT", ident="1-1-2")


@pytest.mark.parametrize(
    "target", [{"exclude": ["secret"]}, {"include": ["id", "a", "b"]}], indirect=True
)
def test_columns_that_do_not_pass_are_passed_over(target):
    more = "ALTER TABLE t ADD secret INT, ADD b INT AFTER secret, ADD KEY (secret)"
    said = target.change(5, more)
    assert "secret does not reach the target" in said[0]
    for n, text in enumerate((
        "MODIFY secret BIGINT",
        "DROP KEY secret, ALGORITHM=COPY",
        "ADD CONSTRAINT positive CHECK (secret > 0)",
        "DROP CONSTRAINT positive",
        "DROP secret",
    )):  # fmt: skip
        said = target.change(5, f"ALTER TABLE t {text}", ident=f"1-2-{n}")
        assert said[0].startswith("nothing to do (")
    assert target.columns() == ["id", "a", "b"]
    with pytest.raises(FatalError):
        target.change(5, "ALTER TABLE t MODIFY b INT AS (secret + 1)", ident="1-1-3")


def test_a_session_is_taken_along(target):
    ansi = StatementSession(target.db, MODES["ANSI_QUOTES"] | MODES["NO_BACKSLASH_ESCAPES"])
    target.change(
        5, r"""ALTER TABLE "t" ADD "b c" VARCHAR(9) DEFAULT '\' COMMENT 'x\'""", session=ansi
    )
    assert target.columns() == ["id", "a", "b c"]


def test_old_changes_are_forgotten(target):
    key = f"c/{target.pipeline}"
    with target.server.connect() as connection, connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO retl.setl_ddl (pipeline, id, step, generation, version, state, statement,"
            " epoch) VALUES (%s, %s, 0, 1, %s, 'done', '', 1)",
            [(key, f"old-{n}", n) for n in range(MAX_DONE + 5)],
        )
    ticket = LoadTicket(Leadership("c", target.pipeline, "n", 5), 1, 0)
    change = SchemaChange("new", "ALTER TABLE t ADD b INT", StatementSession(target.db), 1, 9999)
    target.ddl.apply(ticket, change)
    assert len(target.states()) == MAX_DONE
