"""Foreign keys with CASCADE and SET NULL, whose child rows a source does not log.

The oracle is the source itself, which has carried the actions out. MySQL logs these rows from 9.6
on, so there its rows say the same.
"""

import random

import pytest

from setl.errors import ConfigurationError, FatalError
from tests.integration.pipelines import execute, fresh_name, mysql, one_way, rows

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
    " CONSTRAINT {db}_xw FOREIGN KEY (b, a) REFERENCES w (b, a) ON DELETE CASCADE"
    " ON UPDATE SET NULL",
}  # fmt: skip
TABLES["w"] += ", KEY (b, a)"
TABLES["x"] = TABLES["x"].replace("(b, a) REFERENCES w (b, a)", "(a, b) REFERENCES w (a, b)")


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


def caught_up(a, db, running, number):
    """Write a row behind everything, and wait until the target has it."""
    execute(a, f"INSERT INTO {db}.p VALUES ({number}, 0)")


def same(servers, db, running, number=1_000_000):
    """Wait until the target has all, and compare."""
    from tests.waiting import eventually

    a, b = servers
    execute(a, f"INSERT INTO {db}.p VALUES ({number}, 0)")

    def there():
        assert running.thread.is_alive(), running.error
        return execute(b, f"SELECT 1 FROM {db}.p WHERE id = {number}")

    eventually(there, 60)
    assert everything(b, db) == everything(a, db)


def run(server, db, *statements):
    execute(server, f"USE {db}", *statements)


def test_actions_reach_children_and_theirs(servers, family, place):
    a, b = servers
    running = place.lead(pipeline(a, b, family)).runs()
    run(
        a, family,
        "INSERT INTO p VALUES (1, 0), (2, 0), (3, 0), (4, 0)",
        "INSERT INTO c VALUES (1, 1, 0, NULL), (2, 1, 0, NULL), (3, 2, 0, NULL), (4, NULL, 0, NULL)",
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
                    cursor.execute(f"SET foreign_key_checks = {self.random.choice((0, 1, 1, 1, 1))}")
                try:
                    cursor.execute(self.statement())
                except Exception as error:  # noqa: BLE001 - of the server
                    if error.args[0] in (1213, 1205):
                        inside = False
            cursor.execute("COMMIT")


@pytest.mark.parametrize("seed", [1])
def test_any_history_while_leaders_die(servers, family, place, seed):
    a, b = servers
    file = pipeline(a, b, family, batch_rows=40)
    history = History(a, family, seed)
    lead = random.Random(seed)
    for life in range(4):
        history.write(60)
        least = lead.randrange(1, 8)
        running = place.lead(file, dies_when=None if life == 3 else lambda f, n=least: f.batches >= n)
        if life < 3:
            history.write(60)
            running.thread.join(30)
            running.abort()
    same(servers, family, running)
