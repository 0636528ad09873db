"""One load of rows that both sites write, against a real server."""

import pymysql
import pytest

from setl.errors import ConfigurationError, DataError, FencedError
from setl.load.mysql.sink import MysqlSink, MysqlSinkSettings
from setl.model.change import ABSENT
from setl.model.conflict import ConflictPolicy, History, Step
from tests.loading import (
    MARK,
    create_system_tables,
    endpoint_of,
    execute,
    fence_for,
    nonces,
    rows_of,
    ticket_for,
    unique,
)


class Place:
    """A table of its own, and a sink that writes there."""

    def __init__(self, server):
        self.server = server
        self.schema = unique("settle")
        self.ticket = ticket_for(self.schema)
        self.nonce = nonces()
        settings = MysqlSinkSettings(endpoint_of(server), MARK, lock_wait=2)
        self.sink = MysqlSink(settings, self.next_nonce)
        create_system_tables(server)
        execute(server, f"CREATE DATABASE {self.schema}")
        self.table("id INT PRIMARY KEY, name VARCHAR(20), more INT DEFAULT 7")
        fence_for(server, self.ticket).raise_to(1, "n1")

    def next_nonce(self):
        return self.nonce()

    def table(self, definition):
        drop = f"DROP TABLE IF EXISTS {self.schema}.t"
        execute(self.server, drop, f"CREATE TABLE {self.schema}.t ({definition})")

    def settle(self, *steps, columns=("id", "name"), newest="", epoch=1):
        policy = ConflictPolicy(newest, from_home=True)
        history = History((self.schema, "t"), policy, newest, columns, ("id",), list(steps))
        ticket = ticket_for(self.schema, epoch=epoch)
        return self.sink.settle(ticket, [history])

    def rows(self):
        return rows_of(self.server, f"SELECT * FROM {self.schema}.t ORDER BY 1")

    def told(self, what="winner"):
        of_pipeline = f"pipeline = '{self.ticket.pipeline_key}'"
        return rows_of(self.server, f"SELECT {what} FROM retl.setl_conflict WHERE {of_pipeline}")

    def questions(self):
        of_pipeline = f"pipeline = '{self.ticket.pipeline_key}'"
        return rows_of(self.server, f"SELECT asks FROM retl.setl_question WHERE {of_pipeline}")


@pytest.fixture
def place(site_a):
    place = Place(site_a)
    yield place
    place.sink.close()
    execute(site_a, f"DROP DATABASE {place.schema}")


def step(version, before, after, **more):
    key = (before or after)[:1]
    return Step(version, key, before, after, **more)


def test_all_changes_of_a_key_are_one_write_and_each_is_taken_once(place):
    steps = [step(1, None, (1, "a")), step(2, (1, "a"), (1, "b")), step(3, None, (2, "x"))]
    loaded = place.settle(*steps)
    assert (loaded.upserts, loaded.deletes, place.rows()) == (2, 0, [(1, "b", 7), (2, "x", 7)])
    execute(place.server, f"DELETE FROM {place.schema}.t WHERE id = 1")
    again = place.settle(*steps, step(4, (2, "x"), None))
    assert (again.upserts, again.deletes, place.rows(), place.told()) == (0, 1, [], [])


def test_a_row_that_appears_between_reading_and_writing_is_read_again(place):
    execute(place.server, f"INSERT INTO {place.schema}.t (id, name) VALUES (2, 'z')")
    numbers = nonces()

    def while_it_decides():
        number = numbers()
        if number == "n2":  # the first is for the mark, this for the question about row 2
            execute(place.server, f"INSERT INTO {place.schema}.t (id, name) VALUES (1, 'own')")
        return number

    place.nonce = while_it_decides
    loaded = place.settle(step(1, None, (1, "a")), step(2, (2, "x"), (2, "y")))
    assert place.rows() == [(1, "a", 7), (2, "y", 7)]
    assert loaded.conflicts_source == 2
    assert len(place.told()) == len(place.questions()) == 2


def test_rows_that_are_decided_about_do_not_change_meanwhile(place):
    execute(place.server, f"INSERT INTO {place.schema}.t (id, name) VALUES (1, 'a'), (2, 'z')")
    numbers, refused = nonces(), []

    def while_it_decides():
        number = numbers()
        if number == "n2":
            with pytest.raises(pymysql.err.OperationalError) as caught:
                execute(
                    place.server,
                    "SET SESSION innodb_lock_wait_timeout = 1",
                    f"UPDATE {place.schema}.t SET name = 'own' WHERE id = 1",
                )
            refused.append(caught.value.args[0])
        return number

    place.nonce = while_it_decides
    place.settle(step(1, (1, "a"), (1, "b")), step(2, (2, "x"), (2, "y")))
    assert refused == [1205]
    assert place.rows() == [(1, "b", 7), (2, "y", 7)]


def test_a_question_is_open_until_it_is_answered(place):
    execute(place.server, f"INSERT INTO {place.schema}.t (id, name) VALUES (1, 'z')")
    place.settle(step(1, (1, "x"), (1, "y")))
    ((asks,),) = place.questions()
    place.settle(step(2, (1, "y"), (1, "not yet")))
    assert place.rows() == [(1, "y", 7)]
    place.settle(step(3, (1, "y"), (1, "answer"), answers=asks), step(4, (1, "answer"), None))
    assert (place.rows(), place.questions()) == ([], [])


def test_columns_that_the_source_does_not_have_keep_their_values(place):
    execute(place.server, f"INSERT INTO {place.schema}.t VALUES (1, 'a', 5)")
    place.settle(step(1, (1, "a"), (1, "b")), step(2, None, (3, ABSENT)))
    assert place.rows() == [(1, "b", 5), (3, None, 7)]


def test_a_former_leader_writes_nothing(place):
    fence_for(place.server, place.ticket).raise_to(2, "n2")
    with pytest.raises(FencedError):
        place.settle(step(1, None, (1, "a")))
    assert place.rows() == []


def test_a_row_that_the_target_refuses_is_named_and_nothing_is_written(place):
    with pytest.raises(DataError) as caught:
        place.settle(step(1, None, (1, "a")), step(2, None, (2, "x" * 30)))
    assert caught.value.where["key"] == "2"
    assert place.rows() == []
    assert place.settle(step(1, None, (1, "a"))).upserts == 1


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("id INT PRIMARY KEY, name VARCHAR(20) UNIQUE", "has a unique key besides"),
        ("id INT, name VARCHAR(20)", "has no primary key"),
        ("id INT, name VARCHAR(20), more INT, PRIMARY KEY (id, more)", "not all of the key"),
    ],
)
def test_tables_that_cannot_have_a_policy_are_refused(place, definition, message):
    place.table(definition)
    with pytest.raises(ConfigurationError, match=message):
        place.settle(step(1, None, (1, "a")))


def test_a_column_that_cannot_be_compared_is_refused(place):
    with pytest.raises(ConfigurationError, match="does not say which row is newer"):
        place.settle(step(1, None, (1, "a")), newest="name")
