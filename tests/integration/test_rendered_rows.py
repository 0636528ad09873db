"""Rows that pass from server to server as text: each type arrives as it is, or is not passed so."""

from contextlib import closing
from dataclasses import replace
from itertools import islice

import pytest

from setl.errors import FencedError, TransientError
from setl.model.change import TargetChanges
from setl.systems.mysql import row_text
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.connection import connect
from setl.systems.mysql.row_text import NotRenderedError, can_render
from setl.systems.mysql.table_reader import TableReader
from setl.transform.columns import ColumnPlan
from tests.integration.pipelines import execute, fresh_name
from tests.integration.test_types_mysql import LENIENT, on_all, same
from tests.integration.type_catalogue import columns
from tests.loading import create_system_tables, endpoint_of, fence_for, sink_on, ticket_for

# Parts of the names of types that are never passed so.
OTHERWISE = ("shape_", "point", "linestring", "polygon", "geometry",
             "inet", "uuid", "vector")  # fmt: skip
ALONE = ("enum_error", "longblob_large", "longtext_large", "json", "json_numbers")


class Passage:
    """Tables of a schema on two servers, and a sink that writes into the second."""

    def __init__(self, servers):
        self.servers = servers
        self.schema = fresh_name("passed")
        self.ticket = ticket_for(self.schema)
        self.sink = sink_on(servers[1], lock_wait=2)
        create_system_tables(servers[1])
        fence_for(servers[1], self.ticket).raise_to(1, "n1")
        for server in servers:
            execute(server, f"CREATE DATABASE {self.schema} CHARACTER SET utf8mb4")

    def create(self, definition, there=None, name="t"):
        for server, text in zip(self.servers, (definition, there or definition), strict=True):
            execute(server, LENIENT, f"CREATE TABLE {self.schema}.`{name}` ({text})")

    def insert(self, *rows, name="t"):
        into = f"INSERT INTO {self.schema}.`{name}` VALUES "
        execute(self.servers[0], LENIENT, *(f"{into}({row})" for row in rows))

    def reader(self, name="t"):
        endpoint = endpoint_of(self.servers[0])
        with closing(connect(endpoint)) as connection:
            schema = read_table(connection, self.schema, name)
        assert schema is not None
        return TableReader(endpoint, schema)

    def passes(self, name="t", ticket=None):
        """How many rows arrived; None if they were not passed on as text."""
        reader = self.reader(name)
        (whole,) = reader.ranges(None, 10**6, 1)
        plan = ColumnPlan.build(reader.schema, _AsItIs())
        change = TargetChanges((self.schema, name), plan.columns, plan.key)

        def read(form, places):
            asked = [reader.schema.columns[i] for i in places]
            return reader.rendered(form, asked, whole.part) if reader.renders(form, asked) else None

        loaded = self.sink.apply_rendered(ticket or self.ticket, change, read)
        return None if loaded is None else loaded.upserts

    def there(self, what="*", name="t"):
        return list(
            execute(self.servers[1], f"SELECT {what} FROM {self.schema}.`{name}` ORDER BY 1")
        )


class _AsItIs:
    """The rules of a mapping that changes nothing."""

    index, include, exclude, renames, expressions = 0, None, (), {}, {}
    key, routing = (), None


@pytest.fixture(params=["data", "statements"])
def passage(servers, request):
    """Rows go with LOAD DATA LOCAL, or, where the server takes none, with INSERT."""
    (before,) = execute(servers[1], "SELECT @@GLOBAL.local_infile")[0]
    execute(servers[1], f"SET GLOBAL local_infile = {int(request.param == 'data')}")
    made = Passage(servers)
    yield made
    made.sink.close()
    execute(servers[1], f"SET GLOBAL local_infile = {before}")
    for server in servers:
        execute(server, f"DROP DATABASE {made.schema}")


@pytest.fixture
def sends_data(passage, request):
    """Whether it goes with LOAD DATA LOCAL."""
    return request.node.callspec.params["passage"] == "data"


def loads_of(server):
    """How many LOAD DATA the server has carried out, and how many were taken back."""
    names = ("Com_load", "Com_rollback_to_savepoint")
    shown = dict(execute(server, "SHOW GLOBAL STATUS LIKE 'Com%'"))
    return [int(shown[name]) for name in names]


def test_every_type_arrives_as_it_is_or_is_left_to_others(passage, sends_data):
    before = loads_of(passage.servers[1])
    found = on_all(passage.servers, columns)
    texts = {n: found[n] for n in found if not is_left(n, *found[n])}
    assert len(texts) > 80
    tables = 0
    for name, count in each_type(passage, texts):
        tables += 1
        assert passage.passes(name) == count, name
        same(passage.servers, f"`{passage.schema}`.`{name}`")
    loads, back = (n - b for n, b in zip(loads_of(passage.servers[1]), before, strict=True))
    assert (loads, back) == (tables * sends_data, 0)
    others = [(n, found[n]) for n in found if is_left(n, *found[n]) and n not in ALONE]
    passage.create(definitions(others), name="others")
    unsure = [c.name for c in passage.reader("others").schema.columns[1:] if can_render([c])]
    assert unsure == []


@pytest.mark.parametrize("name", ALONE)
def test_values_that_the_target_may_refuse(passage, name):
    """What is no label, what is as long as a packet, JSON, which is text to MariaDB."""
    definition, values = on_all(passage.servers, columns)[name]
    passage.create(f"id INT PRIMARY KEY, v {definition}")
    passage.insert(*(f"{i}, {value}" for i, value in enumerate(values)))
    if passage.passes() is None:
        assert passage.there() == []
    else:
        same(passage.servers, f"`{passage.schema}`.`t`")


def is_left(name, definition, _):
    # Of a label with such a character nobody knows how it is written.
    odd = definition.startswith(("ENUM", "SET")) and any(ord(c) > 0xFFFF for c in definition)
    return odd or any(part in name for part in (*OTHERWISE, *ALONE))


def batched(items, count):
    items = iter(items)
    while some := list(islice(items, count)):
        yield some


def each_type(passage, found):
    """Tables of these types, filled at the source: the name of each, and how many rows it has."""
    for number, some in enumerate(batched(found.items(), 20)):
        name, count = f"types_{number}", max(len(values) for _, (_, values) in some)
        passage.create(definitions(some), name=name)
        passage.insert(*(row(i, some) for i in range(count)), name=name)
        passage.insert(f"{count}{', NULL' * len(some)}", name=name)
        yield name, count + 1


def definitions(some):
    return "id INT PRIMARY KEY, " + ", ".join(f"`{name}` {text}" for name, (text, _) in some)


def row(number, some):
    values = ", ".join(values[number % len(values)] for _, (_, values) in some)
    return f"{number}, {values}"


def test_text_that_could_end_its_quotes_does_not(passage):
    passage.create("id INT PRIMARY KEY, v VARCHAR(60), b VARBINARY(60), e ENUM('it''s','\\\\')")
    odd = r"'\\\'); DROP TABLE t; -- \0\Z\n\'\"%s%%`'"
    passage.insert(f"1, {odd}, {odd}, 'it''s'", r"2, '\\', '\\', '\\'", "3, '', '', NULL")
    assert passage.passes() == 3
    same(passage.servers, f"`{passage.schema}`.`t`")


def test_a_row_that_no_text_says_is_left_to_others(passage, monkeypatch):
    """Of what a server cannot write it makes NULL, and of a row with a NULL in it, too."""
    passage.create("id INT PRIMARY KEY, v VARCHAR(20)")
    passage.insert("1, 'a'", "2, 'b'")
    real = row_text.rendering
    monkeypatch.setattr(
        "setl.systems.mysql.table_reader.rendering",
        lambda columns: f"IF(id = 2, NULL, {real(columns)})",
    )
    reader = passage.reader()
    (whole,) = reader.ranges(None, 10, 1)
    with pytest.raises(NotRenderedError):
        list(reader.rendered(row_text.VALUES, reader.schema.columns, whole.part))
    assert passage.passes() is None
    assert passage.there() == []


def test_a_row_longer_than_the_sources_packet_is_left_to_others(passage):
    passage.create("id INT PRIMARY KEY, v LONGBLOB")
    (packet,) = execute(passage.servers[0], "SELECT @@max_allowed_packet")[0]
    passage.insert("1, 'a'", f"2, REPEAT('x', {packet // 2 + 10})")  # in hex it is twice as long
    assert passage.passes() is None
    assert passage.there() == []


DIFFERENT = [
    ("VARCHAR(20)", "VARCHAR(10)"),
    ("VARCHAR(20)", "VARCHAR(20) CHARACTER SET latin1"),
    ("DECIMAL(10,3)", "DECIMAL(10,2)"),
    ("DATETIME(6)", "DATETIME"),
    ("INT", "DOUBLE"),
    ("BINARY(4)", "BINARY(8)"),
    ("ENUM('a','B')", "ENUM('a','b')"),
    ("INT", "BIT(32)"),
]


@pytest.mark.parametrize(("here", "there"), DIFFERENT)
def test_columns_that_differ_are_left_to_others(passage, here, there):
    passage.create(f"id INT PRIMARY KEY, v {here}", f"id INT PRIMARY KEY, v {there}")
    passage.insert("1, NULL")
    assert passage.passes() is None


@pytest.mark.parametrize(
    "keys", ["PRIMARY KEY (id), UNIQUE (v)", "UNIQUE (v)", "KEY (id)", "PRIMARY KEY (v)"]
)
def test_other_keys_are_left_to_others(passage, keys):
    shape = "id INT NOT NULL, v INT NOT NULL"
    passage.create(f"{shape}, PRIMARY KEY (id)", f"{shape}, {keys}")
    passage.insert("1, 1")
    assert passage.passes() is None


def test_what_is_there_already_is_changed_and_nothing_else(passage, sends_data):
    shape = "id INT PRIMARY KEY, v VARCHAR(20), g INT AS (id + 1)"
    passage.create(shape, f"{shape}, own INT DEFAULT 7")
    execute(passage.servers[0], f"INSERT INTO {passage.schema}.t (id, v) VALUES (1, 'a'), (2, 'b')")
    execute(
        passage.servers[1],
        f"INSERT INTO {passage.schema}.t (id, v, own) VALUES (2, 'old', 1), (3, 'stays', 1)",
    )
    before = loads_of(passage.servers[1])
    for _ in range(2):
        assert passage.passes() == 2
        assert [tuple(row) for row in passage.there("id, v, g, own")] == [
            (1, "a", 2, 7),
            (2, "b", 3, 1),
            (3, "stays", 4, 1),
        ]
    # LOAD DATA passes over rows that are there. It is not tried again for a while.
    loads, back = (n - b for n, b in zip(loads_of(passage.servers[1]), before, strict=True))
    assert (loads, back) == (sends_data, sends_data)


def test_no_value_is_made_up_for_a_column_that_has_no_default(passage):
    shape = "id INT PRIMARY KEY, v INT"
    passage.create(shape, f"{shape}, own INT NOT NULL")
    passage.insert("1, 1", "2, 2")
    assert passage.passes() is None
    assert passage.there() == []


def test_rows_are_refused_as_a_whole_and_nothing_stays(passage):
    """A number out of range is seen by the server; who writes rows one by one says which it is."""
    passage.create("id INT PRIMARY KEY, v INT UNSIGNED", "id INT PRIMARY KEY, v INT")
    passage.insert(*(f"{i}, 1" for i in range(5)), "9, 4294967295")
    passage.sink.close()
    passage.sink = sink_on(passage.servers[1], statement_size=30)  # several statements
    assert passage.passes() is None
    assert passage.there() == []
    passage.sink.close()


def test_a_stale_leader_passes_nothing(passage):
    passage.create("id INT PRIMARY KEY, v INT")
    passage.insert("1, 1")
    fence_for(passage.servers[1], passage.ticket).raise_to(2, "n2")
    with pytest.raises(FencedError):
        passage.passes()
    assert passage.there() == []


def test_tables_with_dead_letters_are_left_to_others(passage):
    passage.create("id INT PRIMARY KEY, v INT")
    passage.insert("1, 1")
    lettered = replace(passage.ticket, lettered=frozenset({f"{passage.schema}.t"}))
    assert passage.passes(ticket=lettered) is None


def test_a_source_that_is_gone_may_come_back(passage, monkeypatch):
    passage.create("id INT PRIMARY KEY, v INT")
    passage.insert("1, 1")
    monkeypatch.setattr(
        "setl.systems.mysql.table_reader.rendering", lambda _: "(SELECT 1 FROM t WHERE KILL)"
    )
    reader = passage.reader()
    (whole,) = reader.ranges(None, 10, 1)
    broken = replace(reader, endpoint=replace(reader.endpoint, port=1))
    with pytest.raises(TransientError):
        list(broken.rendered(row_text.VALUES, reader.schema.columns, whole.part))
