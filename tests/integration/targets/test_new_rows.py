"""Rows that are sent in other ways than as literals: which are, and that each type arrives.

MariaDB executes a statement for many rows at once. MySQL, if it is told to, takes new rows with
LOAD DATA. `test_mysql_sink.py` runs all of its tests in each way.
"""

import pymysql
import pytest

from setl.errors import DataError, FencedError, SetlError
from setl.model.change import TargetChanges
from setl.model.labels import is_numbered
from setl.systems.mysql.load.bulk_connection import BulkConnection
from tests.integration.passages import Forwarding, each_type, is_left
from tests.integration.pipelines import execute
from tests.integration.type_catalogue import columns
from tests.integration.types.test_types_mysql import on_all, same
from tests.loading import fence_for, sink_on

COUNTED = {"mariadb": "Com_stmt_execute", "mysql": "Com_load"}


class NewRows(Forwarding):
    """Reads rows from the first server, and writes them as new ones into the second."""

    def __init__(self, servers, family):
        super().__init__(servers)
        self.sink.close()
        self.sink = sink_on(servers[1], lock_wait=2, bulk_rows=1)
        self.counted = COUNTED[family]

    def passes(self, name="t", ticket=None):
        reader = self.reader(name)
        (whole,) = reader.ranges(None, 10**6, 1)
        given = [r for some in reader.read(reader.schema.columns, whole.part) for r in some]
        return self.writes(given, name=name, ticket=ticket, reader=reader)

    def writes(self, given, name="t", ticket=None, reader=None):
        schema = (reader or self.reader(name)).schema
        change = TargetChanges(
            (self.schema, name), tuple(schema.columns), schema.key, given, new=True
        )
        return self.sink.apply(ticket or self.ticket, [change]).upserts

    @property
    def sent(self):
        """How often the server took rows in the other way."""
        return self.carried_out[self.counted]

    @property
    def held(self):
        """How many prepared statements the sink's connection has had, and how many it has."""
        counted = self.carried_out
        prepared = counted["Com_stmt_prepare"]
        return prepared, prepared - counted["Com_stmt_close"]


@pytest.fixture
def passage(servers, server_pair):
    (before,) = execute(servers[1], "SELECT @@GLOBAL.local_infile")[0]
    execute(servers[1], "SET GLOBAL local_infile = 1")
    made = NewRows(servers, server_pair.b)
    yield made
    made.sink.close()
    execute(servers[1], f"SET GLOBAL local_infile = {before}")
    for server in servers:
        execute(server, f"DROP DATABASE {made.schema}")


def test_every_type_arrives_as_it_is(passage):
    before, found = passage.sent, on_all(passage.servers, columns)
    sure = {n: found[n] for n in found if not is_left(n, *found[n])}
    assert len(sure) > 80
    tables = 0
    for name, count in each_type(passage, sure):
        # Numbers of labels go as literals.
        tables += not any(map(is_numbered, passage.reader(name).schema.columns))
        assert passage.passes(name) == count, name
        same(passage.servers, f"`{passage.schema}`.`{name}`")
    assert tables > 5
    assert passage.sent >= before + tables  # long rows are divided


@pytest.mark.family("mysql", why="MariaDB has a way that changes rows, too")
def test_rows_that_are_there_are_changed_and_columns_of_the_targets_own_stay(passage):
    shape = "id INT PRIMARY KEY, v VARCHAR(20)"
    passage.create(shape, f"{shape}, own INT DEFAULT 7")
    passage.insert("1, 'a'", "2, 'b'")
    into = f"INSERT INTO {passage.schema}.t (id, v, own) VALUES"
    execute(passage.servers[1], f"{into} (2, 'old', 1), (3, 'stays', 1)")
    before = passage.sent
    for _ in range(2):
        assert passage.passes() == 2
        assert list(map(tuple, passage.there())) == [(1, "a", 7), (2, "b", 1), (3, "stays", 1)]
    # The server skips what is there. It is not asked again for a while.
    assert passage.sent == before + 1
    for start in range(10, 40):
        some = [(1000 * start + n, "new") for n in range(100)]
        assert passage.writes(some) == 100
    assert passage.sent > before + 1


@pytest.mark.family("mariadb", why="MySQL has nothing like it")
def test_a_server_that_cannot_execute_for_many_rows_gets_literals(passage, monkeypatch):
    passage.create("id INT PRIMARY KEY, v VARCHAR(20)")
    real = BulkConnection._execute_command

    def proxy(self, command, text):
        # A proxy between client and server that does not know the command.
        real(self, 0xF9 if command == 0xFA else command, text)

    monkeypatch.setattr(BulkConnection, "_execute_command", proxy)
    before = passage.sent
    for number in range(3):
        assert passage.writes([(number, "a")]) == 1
    assert len(passage.there()) == 3
    assert passage.sent == before


@pytest.mark.family("mariadb", why="MySQL has nothing like it")
def test_nothing_is_written_behind_an_error_that_may_have_ended_the_transaction(
    passage, monkeypatch
):
    """What is written then would have neither fence nor mark."""
    passage.create("id INT PRIMARY KEY, v INT")

    def ended(self, *_):
        self.rollback()
        raise pymysql.OperationalError(1020, "Record has changed since last read in table 't'")

    monkeypatch.setattr(BulkConnection, "execute_bulk", ended)
    with pytest.raises(SetlError):
        passage.writes([(1, 1)])
    assert passage.there() == []


@pytest.mark.family("mariadb", why="MySQL has nothing like it")
@pytest.mark.parametrize("keys", ["PRIMARY KEY (id)", "PRIMARY KEY (id), UNIQUE (v)"])
def test_a_server_that_passes_rows_over_is_noticed(passage, monkeypatch, keys):
    """As releases before 10.11.11 do where a trigger of the table writes rows itself."""
    passage.create(f"id INT, v INT, {keys}")
    real, cut = BulkConnection._execute_command, []

    def loses(self, command, text):
        if command == 0xFA:
            cut.append(len(text))
            text = text[: len(text) - 9 * 2 * 3]  # the last three rows of two numbers
        real(self, command, text)

    monkeypatch.setattr(BulkConnection, "_execute_command", loses)
    rows_ = [(n, n) for n in range(20)]
    assert passage.writes(rows_) == 20
    assert list(map(tuple, passage.there())) == rows_
    assert len(cut) == 1  # and then no more
    assert passage.writes([(n, n + 50) for n in range(20)]) == 20
    assert len(cut) == 1


@pytest.mark.family("mariadb", why="MySQL has nothing like it")
def test_triggers_that_write_rows_themselves(passage):
    passage.create("id INT PRIMARY KEY, v INT")
    schema = passage.schema
    execute(
        passage.servers[1],
        f"CREATE TABLE {schema}.audit (n INT AUTO_INCREMENT PRIMARY KEY, what CHAR(1), id INT)",
        *(
            f"CREATE TRIGGER {schema}.{when}_{what} {when} {what} ON {schema}.t FOR EACH ROW"
            f" INSERT INTO {schema}.audit (what, id) VALUES ('{when[0]}', NEW.id)"
            for when in ("BEFORE", "AFTER")
            for what in ("INSERT", "UPDATE")
        ),
    )
    for value in (1, 2):
        assert passage.writes([(n, value) for n in range(30)]) == 30
        assert list(map(tuple, passage.there())) == [(n, value) for n in range(30)]
    audit = execute(passage.servers[1], f"SELECT id, COUNT(*) FROM {schema}.audit GROUP BY id")
    assert {count for _, count in audit} == {5}


@pytest.mark.family("mariadb", why="MySQL has nothing like it")
def test_statements_of_many_tables_do_not_pile_up_at_the_server(passage):
    for number in range(120):
        passage.create("id INT PRIMARY KEY, v INT", name=f"t{number}")
    for _ in range(2):
        for number in range(120):
            assert passage.writes([(1, number)], name=f"t{number}") == 1
    prepared, left = passage.held
    assert prepared >= 240
    assert left <= 16


@pytest.mark.family("mariadb", why="MySQL has nothing like it")
def test_a_row_that_is_refused_is_named_and_its_statement_stays_of_use(passage):
    passage.create("id INT PRIMARY KEY, v VARCHAR(5)")
    for wrong in range(5):
        rows = [(n, "too long" if n == wrong else "ok") for n in range(50)]
        with pytest.raises(DataError, match="Data too long") as caught:
            passage.writes(rows)
        assert caught.value.where["key"] == str(wrong)
    assert passage.there() == []
    assert passage.held == (1, 1)


@pytest.mark.parametrize(
    ("here", "there", "value"),
    [
        ("VARCHAR(20)", "VARCHAR(10)", "short"),
        ("VARCHAR(20)", "VARCHAR(20) CHARACTER SET latin1", "café"),
        ("INT", "BIGINT", 7),
        ("DECIMAL(10,3)", "DECIMAL(12,3)", "1.500"),
    ],
)
def test_columns_that_hold_the_same_kind_need_not_be_alike(passage, here, there, value):
    passage.create(f"id INT PRIMARY KEY, v {here}", f"id INT PRIMARY KEY, v {there}")
    before = passage.sent
    passage.writes([(1, value)])
    assert passage.sent == before + 1
    assert str(passage.there("v")[0][0]) == str(value)


@pytest.mark.family("mysql", why="parameters become another kind as literals do")
@pytest.mark.parametrize(
    ("here", "there", "value", "stored"),
    [
        ("INT", "DOUBLE", 7, "7.0"),
        ("INT", "VARCHAR(20)", 7, "7"),
        ("DATETIME", "DATE", "2026-01-02 00:00:00.000000", "2026-01-02"),
        ("INT", "YEAR", 2026, "2026"),
    ],
)
def test_values_that_become_another_kind_are_inserted(passage, here, there, value, stored):
    passage.create(f"id INT PRIMARY KEY, v {here}", f"id INT PRIMARY KEY, v {there}")
    before = passage.sent
    passage.writes([(1, value)])
    assert passage.sent == before
    assert str(passage.there("v")[0][0]) == stored


@pytest.mark.parametrize("own", ["INT", "TIMESTAMP"])
def test_no_value_is_made_up_for_a_column_that_has_no_default(passage, own):
    shape = "id INT PRIMARY KEY, v INT"
    passage.create(shape, f"{shape}, own {own} NOT NULL")
    with pytest.raises(SetlError, match="own"):
        passage.writes([(n, n) for n in range(20)])
    assert passage.there() == []


def test_a_stale_leader_writes_nothing(passage):
    passage.create("id INT PRIMARY KEY, v INT")
    fence_for(passage.servers[1], passage.ticket).raise_to(2, "n2")
    with pytest.raises(FencedError):
        passage.writes([(1, 1)])
    assert passage.there() == []
