"""Foreign keys with CASCADE and SET NULL, whose child rows a source does not log.

The oracle is the source itself, which has carried the actions out. MySQL logs these rows from 9.6
on, so there its rows say the same.
"""

import random
from contextlib import suppress

import pytest
from pymysql.err import MySQLError, ProgrammingError

from arbiter.values import PipelineId
from setl.channel.reading import parse_channel
from setl.errors import ConfigurationError, FatalError
from setl.model.load_request import LoadRequest
from setl.run.table_loads.requests import StoredLoadRequests
from tests.integration.pipelines import execute, fresh_name, mysql, on_both, one_way, rows
from tests.waiting import eventually

TABLES = {
    "p": "id INT PRIMARY KEY, v INT",
    "c": "id INT PRIMARY KEY, p INT, v INT, at TIMESTAMP(6) NULL ON UPDATE CURRENT_TIMESTAMP(6),"
    " CONSTRAINT {db}_cp FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE",
    "n": "id INT PRIMARY KEY, p INT, v INT, at TIMESTAMP(6) NULL ON UPDATE CURRENT_TIMESTAMP(6),"
    " CONSTRAINT {db}_np FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL ON UPDATE CASCADE",
    "g": "id INT PRIMARY KEY, c INT, v VARCHAR(20),"
    " CONSTRAINT {db}_gc FOREIGN KEY (c) REFERENCES c (id) ON DELETE CASCADE",
    "s": "id INT PRIMARY KEY, up INT, v INT,"
    " CONSTRAINT {db}_su FOREIGN KEY (up) REFERENCES s (id) ON DELETE CASCADE",
    "w": "a VARCHAR(20), b INT, v INT, PRIMARY KEY (a, b)",
    "x": "id INT PRIMARY KEY, a VARCHAR(20), b INT,"
    " CONSTRAINT {db}_xw FOREIGN KEY (a, b) REFERENCES w (a, b) ON DELETE CASCADE"
    " ON UPDATE SET NULL",
}


@pytest.fixture
def family(servers):
    """A database with related tables on both servers."""
    name = fresh_name("keys")
    for server in servers:
        execute(server, f"CREATE DATABASE {name}", f"USE {name}", *created(name))
    yield name
    for server in servers:
        execute(server, "SET foreign_key_checks = 0", f"DROP DATABASE {name}")


def created(db):
    return [f"CREATE TABLE {t} ({text.format(db=db)})" for t, text in TABLES.items()]


def everything(server, db):
    return {table: rows(server, f"{db}.{table}") for table in TABLES}


def pipeline(a, b, db, tables=None, **options):
    return one_way(a, mysql(b), tables or [{"from": f"{db}.*"}], **options)


def wait_for(server, db, running, number):
    def there():
        assert running.thread.is_alive(), running.error
        with suppress(ProgrammingError):  # the table is not there yet
            return execute(server, f"SELECT 1 FROM {db}.p WHERE id = {number}")

    eventually(there, 60)


def same(servers, db, running, number=1_000_000):
    """Wait until the target has all, and compare."""
    a, b = servers
    execute(a, f"INSERT INTO {db}.p VALUES ({number}, 0)")
    wait_for(b, db, running, number)
    assert everything(b, db) == everything(a, db)


def run(server, db, *statements):
    execute(server, f"USE {db}", *statements)


def test_actions_reach_children_and_theirs(servers, family, position):
    a, b = servers
    running = position.lead(pipeline(a, b, family)).runs()
    run(
        a, family,
        "INSERT INTO p VALUES (1, 0), (2, 0), (3, 0), (4, 0)",
        "INSERT INTO c (id, p, v) VALUES (1, 1, 0), (2, 1, 0), (3, 2, 0), (4, NULL, 0)",
        "INSERT INTO n VALUES (1, 1, 0, '2020-01-01'), (2, 3, 0, NULL)",
        "INSERT INTO g VALUES (1, 1, 'a'), (2, 3, 'b'), (3, 2, 'c')",
        "INSERT INTO s VALUES (1, NULL, 0), (2, 1, 0), (3, 2, 0), (4, NULL, 0)",
        "INSERT INTO w VALUES ('x', 1, 0), ('y', 1, 0)",
        "INSERT INTO x VALUES (1, 'x', 1), (2, 'y', 1), (3, 'X', 1)",
        # Within one transaction: what comes before a delete goes, what comes behind it stays.
        "BEGIN",
        "INSERT INTO c VALUES (5, 1, 0, NULL)",
        "INSERT INTO g VALUES (4, 5, 'd')",
        "UPDATE c SET p = 1 WHERE id = 3",
        "DELETE FROM p WHERE id = 1",
        "INSERT INTO p VALUES (1, 9)",
        "INSERT INTO c VALUES (1, 1, 9, NULL), (3, 1, 9, NULL)",
        "INSERT INTO g VALUES (1, 1, 'new')",
        "COMMIT",
        "UPDATE p SET id = 30 WHERE id = 3",
        "UPDATE p SET id = id + 100 ORDER BY id DESC",
        "UPDATE p SET v = 5",
        "DELETE FROM s WHERE id = 1",
        "UPDATE w SET a = 'z' WHERE a = 'x'",
        "DELETE FROM w WHERE a = 'y'",
        # No action runs, and children stay.
        "SET foreign_key_checks = 0",
        "DELETE FROM p WHERE id = 102",
        "UPDATE p SET id = 7 WHERE id = 101",
        "SET foreign_key_checks = 1",
        "REPLACE INTO p VALUES (7, 1)",
    )  # fmt: skip
    same(servers, family, running)
    assert execute(b, f"SELECT v FROM {family}.g WHERE id = 1") == (("new",),)


ACTS = pytest.mark.family("mariadb", why="MySQL logs what its foreign keys do, from 9.6 on")
PARENT = "CREATE TABLE p (id INT PRIMARY KEY, v INT)"
CHILD = (
    "CREATE TABLE c (id INT PRIMARY KEY, p INT, CONSTRAINT {db}_f FOREIGN KEY (p)"
    " REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)"
)
TWO_KEYS = (
    "ALTER TABLE d ADD FOREIGN KEY (parent) REFERENCES p (id) ON DELETE SET NULL,"
    " ADD FOREIGN KEY (id) REFERENCES p (id) ON DELETE CASCADE"
)
LIFE = (
    PARENT,
    CHILD,
    "INSERT INTO p VALUES (1, 0), (2, 0), (3, 0), (4, 0)",
    "INSERT INTO c VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
    "BEGIN", "INSERT INTO c VALUES (9, 1)", "DELETE FROM p WHERE id = 1", "COMMIT",
    "ALTER TABLE c RENAME COLUMN p TO parent",
    "UPDATE p SET id = 20 WHERE id = 2",
    "RENAME TABLE c TO d",
    "DELETE FROM p WHERE id = 20",
    "ALTER TABLE d DROP FOREIGN KEY {db}_f",
    "DELETE FROM p WHERE id = 3",
    "INSERT INTO p VALUES (3, 0)",
    "CREATE TABLE e (id INT PRIMARY KEY, d INT)",
    "INSERT INTO e VALUES (1, 4), (2, 3), (3, NULL)",
    TWO_KEYS,
    "ALTER TABLE e ADD FOREIGN KEY (d) REFERENCES d (id) ON DELETE CASCADE",
    "DELETE FROM p WHERE id = 3",
)  # fmt: skip


empty = on_both("keys")


@pytest.mark.parametrize("ahead", [False, True])
def test_keys_come_and_go_with_the_stream(servers, empty, position, ahead):
    """Also where the source has no such tables any more when the stream comes there."""
    a, b = servers
    statements = [text.format(db=empty) for text in LIFE]
    ends = ("DROP TABLE e, d", "DELETE FROM p") if ahead else ()
    file = pipeline(a, b, empty, ddl="pass")
    if ahead:
        run(a, empty, *statements, *ends)
    running = position.lead(file).runs()
    if not ahead:
        run(a, empty, *statements)
    execute(a, f"INSERT INTO {empty}.p VALUES (1000, 0)")
    wait_for(b, empty, running, 1000)
    for table in "p" if ahead else "pde":
        assert rows(b, f"{empty}.{table}") == rows(a, f"{empty}.{table}"), table


@ACTS
def test_keys_that_cannot_be_carried_out_are_refused(servers, empty, position):
    a, b = servers
    for server in servers:
        run(server, empty, PARENT)
    child = f"{empty}.c"
    some = [{"from": f"{empty}.p", "where": "id > 0"}, {"from": child}]
    start = pipeline(a, b, empty, some, ddl="pass")
    run(a, empty, CHILD.format(db=empty))
    error = position.lead(start).ends()
    assert isinstance(error, FatalError)
    assert f"setl cannot carry it out ({empty}.p: its mapping has where" in error.message
    run(b, empty, CHILD.format(db=empty))
    for file, reason in (
        (pipeline(a, b, empty, [{"from": child}]), f"{empty}.p: no table is mapped to it"),
        (pipeline(a, b, empty, some), f"{empty}.p: its mapping has where"),
    ):
        error = position.lead(file).ends()
        assert isinstance(error, ConfigurationError)
        assert reason in error.message
        assert f"foreign-key-action@{child}" in error.hint
    accepting = pipeline(a, b, empty, [{"from": child}], accept=[f"foreign-key-action@{child}"])
    position.lead(accepting).runs().stop()
    # Only the parent is mapped: nothing is to be done.
    position.lead(pipeline(a, b, empty, [{"from": f"{empty}.p"}])).runs().stop()


@ACTS
def test_keys_of_the_target_that_the_source_has_not_do_nothing(servers, empty, position):
    a, b = servers
    for server in servers:
        run(server, empty, *(text.format(db=empty) for text in LIFE[:2]))
    run(a, empty, f"ALTER TABLE c DROP FOREIGN KEY {empty}_f")
    running = position.lead(pipeline(a, b, empty, ddl="pass")).runs()
    run(a, empty, "INSERT INTO p VALUES (1, 0)", "INSERT INTO c VALUES (1, 1)", "DELETE FROM p")
    running.applied(3)
    assert rows(b, f"{empty}.c") == rows(a, f"{empty}.c") == ((1, 1),)
    # Had the source had it after all, when the stream was there, rows would be wrong by now.
    run(b, empty, "SET foreign_key_checks = 0", f"ALTER TABLE c DROP FOREIGN KEY {empty}_f")
    run(a, empty, "ALTER TABLE c ADD COLUMN more INT")
    error = running.ends()
    assert isinstance(error, FatalError)
    assert "is gone, whose actions were not carried out" in error.message


@ACTS
def test_tables_under_other_names(servers, family, position):
    a, b = servers
    other = fresh_name("other")
    execute(b, f"CREATE DATABASE {other}", f"USE {other}", *created(other))
    running = position.lead(
        pipeline(a, b, family, [{"from": f"{family}.*", "to": f"{other}.*"}])
    ).runs()
    History(a, family, 5).write(150)
    execute(a, f"INSERT INTO {family}.p VALUES (1000, 0)")
    wait_for(b, other, running, 1000)
    assert everything(b, other) == everything(a, family), running.error
    execute(b, "SET foreign_key_checks = 0", f"DROP DATABASE {other}")


class History:
    """Random statements on the tables; some fail, as they may."""

    def __init__(self, server, db, seed):
        self.server, self.db, self.random = server, db, random.Random(seed)

    def key(self):
        return self.random.randrange(12)

    def statement(self):
        k, m, n = self.key, self.key(), self.key()
        table = self.random.choice("pppcccnngggsssswwxx")
        insert, change = self.random.random() < 0.5, self.random.random() < 0.4
        verb = self.random.choice(("INSERT IGNORE", "REPLACE"))
        if insert:
            values = {
                "p": f"({m}, {n})",
                "c": f"({m}, {n}, {k()}, NULL)",
                "n": f"({m}, {n}, {k()}, NULL)",
                "g": f"({m}, {n}, '{k()}')",
                "s": f"({m}, {self.random.choice((n, 'NULL'))}, {k()})",
                "w": f"('{'abAB'[m % 4]}', {n % 3}, {k()})",
                "x": f"({m}, '{'abAB'[n % 4]}', {k() % 3})",
            }[table]
            return f"{verb} INTO {table} VALUES {values}"
        if not change:
            where = f"a = '{'ab'[m % 2]}' AND b = {n % 3}" if table == "w" else f"id = {m}"
            where = self.random.choice((where, where, f"v BETWEEN {m} AND {m + 1}"))
            return f"DELETE FROM {table} WHERE {where if table != 'x' else f'id = {m}'}"
        return self.random.choice([
            f"UPDATE p SET id = {n} WHERE id = {m}",
            f"UPDATE p SET id = id + 1 WHERE id > {m} ORDER BY id DESC",
            f"UPDATE p SET v = {n} WHERE id < {m}",
            f"UPDATE c SET p = {n}, v = {m} WHERE id = {k()}",
            f"UPDATE c SET v = v + 1 WHERE p = {m}",
            f"UPDATE n SET p = {n} WHERE id = {m}",
            f"UPDATE g SET c = {n} WHERE id = {m}",
            f"UPDATE s SET up = {n} WHERE id = {m}",
            f"UPDATE w SET b = {n % 3} WHERE a = 'a' AND b = {m % 3}",
        ])  # fmt: skip

    def write(self, count):
        with self.server.connect(database=self.db) as connection, connection.cursor() as cursor:
            inside = False
            for _ in range(count):
                if self.random.random() < 0.2:
                    cursor.execute("COMMIT" if inside else "BEGIN")
                    inside = not inside
                if self.random.random() < 0.02:
                    cursor.execute(
                        f"SET foreign_key_checks = {self.random.choice((0, 1, 1, 1, 1))}"
                    )
                try:
                    cursor.execute(self.statement())
                except MySQLError as error:
                    if error.args[0] in (1213, 1205):
                        inside = False
            cursor.execute("COMMIT")


@ACTS
@pytest.mark.parametrize("seed", [1])
def test_any_history_while_leaders_die(servers, family, position, seed):
    a, b = servers
    file = pipeline(a, b, family, batch_rows=40)
    history = History(a, family, seed)
    lead, running = random.Random(seed), None
    for life in range(4):
        history.write(60)
        least = lead.randrange(1, 8)
        running = position.lead(
            file, dies_when=None if life == 3 else lambda f, n=least: f.batches >= n
        )
        if life < 3:
            history.write(60)
            running.thread.join(30)
            running.abort()
    same(servers, family, running)


@ACTS
@pytest.mark.parametrize("seed", [1])
def test_rows_that_a_load_has_read_ahead_of_the_stream(servers, family, position, seed):
    """Of tables that are no grandchildren; where others may be wrong, the load says so."""
    a, b = servers
    history = History(a, family, seed)
    history.write(150)
    source = {**mysql(a), "start": "latest", "heartbeat": 0.2}
    file = parse_channel({"channel": fresh_name("loaded"), "pipelines": [
        {"name": "p", "source": source, "target": mysql(b), "tables": [{"from": f"{family}.*"}]},
    ]})  # fmt: skip
    running = position.lead(file).runs()
    requests = StoredLoadRequests(position.arbiter, PipelineId(file.channel, "p"))
    for _ in range(3):
        requests.add(LoadRequest())
        running.run.look_at_loads()
        history.write(60)

    def ended():
        assert running.thread.is_alive(), running.error
        return all(request.ended for request in requests.all())

    eventually(ended, 120)
    execute(a, f"INSERT INTO {family}.p VALUES (1000, 0)")
    wait_for(b, family, running, 1000)
    there, here = everything(b, family), everything(a, family)
    wrong = {table for table in TABLES if there[table] != here[table]}
    said = " ".join(request.answer for request in requests.all())
    assert not wrong & {"p", "n", "w"}
    assert all(f"--table {family}.{table}" in said for table in wrong), (wrong, said)
