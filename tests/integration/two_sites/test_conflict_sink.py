"""One load of rows that both sites write, against a real server."""

import pymysql
import pytest

from setl.errors import ConfigurationError, DataError, FencedError
from setl.model.change import ABSENT
from setl.model.conflict import (
    RECENT_TABLE,
    ConflictPolicy,
    History,
    Mark,
    ReturningColumns,
    SiteWrites,
    Step,
    WritesSeen,
)
from setl.systems.mysql.conflicts import recent, resolving
from setl.systems.mysql.conflicts.agreement import row_outcome
from setl.systems.mysql.sink.sink import MysqlSink, MysqlSinkSettings
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


class StartPoint:
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

    def resolve(
        self, *steps, columns=("id", "name"), newest="", epoch=1, heard=(), marks=(), returning=None
    ):
        policy = ConflictPolicy(newest, from_home=True)
        history = History(
            (self.schema, "t"),
            policy,
            newest,
            columns,
            ("id",),
            list(steps),
            list(heard),
            returning=returning,
        )
        reported = History(RECENT_TABLE, policy, "", (), (), marks=list(marks))
        ticket = ticket_for(self.schema, epoch=epoch)
        return self.sink.resolve_conflicts(ticket, [history, reported])

    def rows(self):
        return rows_of(self.server, f"SELECT * FROM {self.schema}.t ORDER BY 1")

    def reported(self, what="winner"):
        of_pipeline = f"pipeline = '{self.ticket.pipeline_key}'"
        return rows_of(self.server, f"SELECT {what} FROM retl.setl_conflict WHERE {of_pipeline}")

    def stored(self, what="row_key"):
        """What is kept until the other site has passed it."""
        of_pipeline = f"pipeline = '{self.ticket.pipeline_key}' AND kept IS NOT NULL"
        return rows_of(self.server, f"SELECT {what} FROM retl.setl_recent WHERE {of_pipeline}")


@pytest.fixture
def position(site_a):
    position = StartPoint(site_a)
    yield position
    position.sink.close()
    execute(site_a, f"DROP DATABASE {position.schema}")


def step(version, before, after):
    key = (before or after)[:1]
    return Step(version, key, before, after)


def test_all_changes_of_a_key_are_one_write_and_each_is_taken_once(position):
    steps = [step(1, None, (1, "a")), step(2, (1, "a"), (1, "b")), step(3, None, (2, "x"))]
    loaded = position.resolve(*steps)
    assert (loaded.upserts, loaded.deletes, position.rows()) == (2, 0, [(1, "b", 7), (2, "x", 7)])
    execute(position.server, f"DELETE FROM {position.schema}.t WHERE id = 1")
    again = position.resolve(*steps, step(4, (2, "x"), None))
    assert (again.upserts, again.deletes, position.rows(), position.reported()) == (0, 1, [], [])


@pytest.fixture
def while_it_decides(position, monkeypatch):
    """Does something at a client's once, between reading the rows and writing them."""

    def arrange(do):
        pending = [do]

        def met_meanwhile(*arguments):
            while pending:
                pending.pop()()
            return row_outcome(*arguments)

        monkeypatch.setattr(resolving, "row_outcome", met_meanwhile)

    return arrange


def test_a_row_that_appears_between_reading_and_writing_is_read_again(position, while_it_decides):
    execute(position.server, f"INSERT INTO {position.schema}.t (id, name) VALUES (2, 'z')")
    own = f"INSERT INTO {position.schema}.t (id, name) VALUES (1, 'own')"
    while_it_decides(lambda: execute(position.server, own))
    loaded = position.resolve(step(1, None, (1, "a")), step(2, (2, "x"), (2, "y")))
    assert position.rows() == [(1, "a", 7), (2, "y", 7)]
    assert loaded.conflicts_source == 2
    assert len(position.reported()) == len(position.stored()) == 2


def test_rows_that_are_decided_about_do_not_change_meanwhile(position, while_it_decides):
    execute(
        position.server, f"INSERT INTO {position.schema}.t (id, name) VALUES (1, 'a'), (2, 'z')"
    )
    refused = []

    def change():
        with pytest.raises(pymysql.err.OperationalError) as caught:
            execute(
                position.server,
                "SET SESSION innodb_lock_wait_timeout = 1",
                f"UPDATE {position.schema}.t SET name = 'own' WHERE id = 1",
            )
        refused.append(caught.value.args[0])

    while_it_decides(change)
    position.resolve(step(1, (1, "a"), (1, "b")), step(2, (2, "x"), (2, "y")))
    assert refused == [1205]
    assert position.rows() == [(1, "b", 7), (2, "y", 7)]


def test_what_is_taken_in_is_stored_until_the_other_site_has_passed_it(position):
    position.resolve(step(1, None, (1, "a")), step(2, None, (2, "b")), step(3, (1, "a"), None))
    stored = "number, through, passed, row_key, said"
    assert position.stored(stored) == [
        (1, 3, 0, '{"id": 1}', '{"news": [[3, null]], "seen": 0, "row": null}'),
        (2, 3, 0, '{"id": 2}', '{"news": [[2, null]], "seen": 0, "row": {"id": 2, "name": "b"}}'),
    ]
    position.resolve(marks=[Mark(4, 50, 0, 1)])
    assert position.stored("number") == [(2,)]
    position.resolve(step(6, (2, "b"), (2, "c")), marks=[Mark(5, 51, 77, 1)])
    assert position.stored(stored) == [
        (3, 6, 51, '{"id": 2}', '{"news": [[6, null]], "seen": 77, "row": {"id": 2, "name": "c"}}')
    ]
    position.resolve(marks=[Mark(7, 52, 0, 3)])
    assert position.stored() == []


@pytest.mark.parametrize(("value", "stays"), [(4, [(1, "y", 5)]), (6, [])])
def test_how_new_a_deleted_row_was_reports_the_other_site(position, value, stays):
    named = {"columns": ("id", "name", "more"), "newest": "more"}
    position.resolve(step(1, (1, "x", 1), (1, "y", 5)), **named)
    assert position.rows() == []
    reported = WritesSeen(2, (1,), SiteWrites(((9, value),), 0, None))
    position.resolve(heard=[reported], marks=[Mark(2, 20, 9, 1)], **named)
    assert position.rows() == stays
    # What was written then is to be passed, too.
    assert position.stored("number") == ([(2,)] if stays else [])
    position.resolve(marks=[Mark(3, 21, 0, 2)])
    assert (position.rows(), position.stored()) == (stays, [])


def test_a_table_that_is_not_written_any_more_is_looked_at_too(position):
    position.resolve(step(1, (1, "a"), (1, "b")), step(2, (1, "b"), (1, "c")))
    execute(position.server, f"UPDATE {position.schema}.t SET name = 'own'")
    position.resolve(step(3, (1, "c"), (1, "d")))
    assert position.rows() == [(1, "d", 7)]
    reported = [WritesSeen(4, (1,), SiteWrites(((9, None),), 2, (1, "own")))]
    position.resolve(heard=reported, marks=[Mark(4, 20, 9, 0)])
    marks = History(RECENT_TABLE, ConflictPolicy("", from_home=False), "", (), ())
    marks.marks.append(Mark(5, 21, 0, 2))
    position.sink.resolve_conflicts(position.ticket, [marks])
    assert (position.rows(), position.stored()) == ([(1, "d", 7)], [])


def test_a_table_that_is_gone_holds_nothing_up(position):
    execute(position.server, f"INSERT INTO {position.schema}.t VALUES (1, 'own', 7)")
    position.resolve(step(1, (1, "a"), (1, "b")))
    execute(position.server, f"DROP TABLE {position.schema}.t")
    marks = History(RECENT_TABLE, ConflictPolicy("", from_home=False), "", (), ())
    marks.marks.append(Mark(2, 21, 0, 1))
    assert position.sink.resolve_conflicts(position.ticket, [marks]).upserts == 0


def test_a_load_that_brings_nothing_new_is_answered_once(position):
    position.resolve(step(1, None, (1, "a")))
    of_pipeline = f"pipeline = '{position.ticket.pipeline_key}' AND kept IS NULL"
    for version in (2, 3):
        position.resolve(marks=[Mark(version, version, version, 0)])
        reported = rows_of(
            position.server, f"SELECT through, passed FROM retl.setl_recent WHERE {of_pipeline}"
        )
        assert reported == [(0, version)]
    position.resolve(marks=[Mark(4, 4, 0, 0)])
    assert rows_of(position.server, f"SELECT passed FROM retl.setl_recent WHERE {of_pipeline}") == [
        (3,)
    ]


def test_columns_that_the_source_does_not_have_keep_their_values(position):
    execute(position.server, f"INSERT INTO {position.schema}.t VALUES (1, 'a', 5)")
    position.resolve(step(1, (1, "a"), (1, "b")), step(2, None, (3, ABSENT)))
    assert position.rows() == [(1, "b", 5), (3, None, 7)]


def test_a_column_that_comes_while_rows_are_loaded_gets_its_values(position):
    position.resolve(step(1, None, (1, "a")))
    with pytest.raises(ConfigurationError, match="lacks the columns color"):
        position.resolve(step(2, None, (2, "b", "red")), columns=("id", "name", "color"))
    position.resolve(step(2, None, (2, "b")))
    execute(position.server, f"ALTER TABLE {position.schema}.t ADD color VARCHAR(20)")
    position.resolve(step(3, None, (3, "c", "blue")), columns=("id", "name", "color"))
    assert position.rows() == [(1, "a", 7, None), (2, "b", 7, None), (3, "c", 7, "blue")]
    execute(position.server, f"ALTER TABLE {position.schema}.t CHANGE color colour VARCHAR(20)")
    position.resolve(step(4, None, (4, "d", "red")), columns=("id", "name", "colour"))
    assert position.rows()[-1] == (4, "d", 7, "red")


@pytest.mark.parametrize(
    ("column", "value", "default"),
    [
        ("INT DEFAULT 7", 8, 7),
        ("INT NULL", 8, None),
        ("FLOAT NOT NULL DEFAULT 0.1", 3, 0.1),
        ("VARCHAR(9) CHARACTER SET latin1 DEFAULT 'é(%'", "'x'", "é(%"),
        ("BIT(5) NOT NULL DEFAULT b'101'", 1, b"\x05"),
    ],
)
def test_a_column_that_the_source_did_not_have_yet_has_its_default_there(
    position, column, value, default
):
    position.resolve(step(1, None, (1, "a")), step(2, None, (2, "b")))
    table = f"{position.schema}.t"
    execute(
        position.server,
        f"ALTER TABLE {table} DROP more",
        f"ALTER TABLE {table} ADD `new%` {column}, ADD own INT DEFAULT 1",
        f"UPDATE {table} SET `new%` = {value}, own = 2 WHERE id = 1",
    )
    goes_back = ReturningColumns(None, frozenset({"own"}))
    both = [step(3, (1, "a"), (1, "a2")), step(4, (2, "b"), (2, "b2")), step(5, None, (3, "c"))]
    position.resolve(*both, returning=goes_back)
    assert position.rows() == [(1, "a2", default, 2), (2, "b2", default, 1), (3, "c", default, 1)]


def test_a_column_without_a_default_is_named(position):
    execute(position.server, f"ALTER TABLE {position.schema}.t ADD new INT NOT NULL")
    goes_back = ReturningColumns(frozenset({"id", "name", "new"}), frozenset())
    with pytest.raises(ConfigurationError, match="column new, which has no default"):
        position.resolve(step(1, None, (1, "a")), returning=goes_back)


def test_a_former_leader_writes_nothing(position):
    fence_for(position.server, position.ticket).raise_to(2, "n2")
    with pytest.raises(FencedError):
        position.resolve(step(1, None, (1, "a")))
    assert position.rows() == []


def test_a_row_that_the_target_refuses_is_named_and_nothing_is_written(position):
    with pytest.raises(DataError) as caught:
        position.resolve(step(1, None, (1, "a")), step(2, None, (2, "x" * 30)))
    assert caught.value.where["key"] == "2"
    assert position.rows() == []
    assert position.resolve(step(1, None, (1, "a"))).upserts == 1


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("id INT PRIMARY KEY, name VARCHAR(20) UNIQUE", "has a unique key besides"),
        ("id INT, name VARCHAR(20)", "has no primary key"),
        ("id INT, name VARCHAR(20), more INT, PRIMARY KEY (id, more)", "not all of the key"),
    ],
)
def test_tables_that_cannot_have_a_policy_are_refused(position, definition, message):
    position.table(definition)
    with pytest.raises(ConfigurationError, match=message):
        position.resolve(step(1, None, (1, "a")))


def test_a_column_that_cannot_be_compared_is_refused(position):
    with pytest.raises(ConfigurationError, match="does not say which row is newer"):
        position.resolve(step(1, None, (1, "a")), newest="name")


def test_when_too_many_rows_wait_the_oldest_are_forgotten_with_a_word(position, monkeypatch):
    monkeypatch.setattr(recent, "COUNT_EVERY", 4)
    monkeypatch.setattr(recent.forget_old, "__defaults__", (3,))
    position.resolve(*(step(n, None, (n, "a")) for n in (1, 2, 3)))
    assert (position.reported(), len(position.stored())) == ([], 3)
    position.resolve(*(step(n, None, (n, "a")) for n in (4, 5)))
    assert position.stored("row_key") == [('{"id": 3}',), ('{"id": 4}',), ('{"id": 5}',)]
    assert position.reported("winner, held") == [("forgot", '{"rows forgotten": 2}')]


def test_a_row_too_large_to_be_reported_is_named(position):
    position.table("id INT PRIMARY KEY, name LONGTEXT")
    (packet,) = rows_of(position.server, "SELECT @@max_allowed_packet")[0]
    with pytest.raises(DataError, match="is too large") as caught:
        position.resolve(step(1, None, (1, "x" * (packet // 2))))
    assert caught.value.where["key"] == '{"id": 1}'
    position.resolve(step(1, None, (1, '"' * (packet // 8))))
    assert position.stored("row_key") == [('{"id": 1}',)]
