"""Rows on their way from one server to another, for tests of how they are sent."""

from contextlib import closing
from itertools import islice

from setl.model.change import TargetChanges
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.connection import connect
from setl.systems.mysql.reading.table_reader import TableReader
from setl.transform.columns import ColumnPlan
from tests.integration.pipelines import execute, fresh_name
from tests.integration.types.test_types_mysql import LENIENT
from tests.loading import create_system_tables, endpoint_of, fence_for, sink_on, ticket_for

# Parts of the names of types that are never passed so.
OTHERWISE = ("shape_", "point", "linestring", "polygon", "geometry",
             "inet", "uuid", "vector")  # fmt: skip
ALONE = ("enum_error", "longblob_large", "longtext_large", "json", "json_numbers")


class Forwarding:
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
        """How many rows arrived; None if they were not replicated as text."""
        reader = self.reader(name)
        (whole,) = reader.ranges(None, 10**6, 1)
        plan = ColumnPlan.build(reader.schema, _AsItIs())
        change = TargetChanges((self.schema, name), plan.columns, plan.key)

        def read(form, positions):
            asked = [reader.schema.columns[i] for i in positions]
            return reader.rendered(form, asked, whole.part) if reader.renders(form, asked) else None

        loaded = self.sink.apply_rendered(ticket or self.ticket, change, read)
        return None if loaded is None else loaded.upserts

    @property
    def carried_out(self):
        """Of each kind of statement, how many came over the sink's own connection."""
        with self.sink._writer.open().cursor() as cursor:
            cursor.execute("SHOW SESSION STATUS LIKE 'Com\\_%'")
            return {name: int(number) for name, number in cursor.fetchall()}

    def there(self, what="*", name="t"):
        return list(
            execute(self.servers[1], f"SELECT {what} FROM {self.schema}.`{name}` ORDER BY 1")
        )


class _AsItIs:
    """The rules of a mapping that changes nothing."""

    index, include, exclude, renames, expressions = 0, None, (), {}, {}
    key, routing = (), None


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
