"""Every type of column, through the binlog and through a subscription, into documents."""

import base64
import ipaddress
import json
import math
import struct
import uuid
from datetime import date
from decimal import Decimal

import pytest
from elasticsearch import Elasticsearch

from setl.channel.reading import parse_channel
from setl.model.schema import Kind
from setl.run import assembly
from setl.systems.mysql.catalog import read_table
from tests.integration.every_type import run, sandbox_database
from tests.integration.kafka.test_relay import Topic, relay
from tests.integration.pipelines import execute, fresh_name, install_system_tables, one_way
from tests.integration.type_catalogue import columns
from tests.unit.codec.binlog_server import selected, utc_text

CALENDAR = {Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP}


class Source:
    """A database with a table for each type."""

    def __init__(self, server, connection, schema):
        self.server, self.connection, self.schema = server, connection, schema
        self.tables = columns(connection)
        for name, (definition, _) in self.tables.items():
            run(connection, f"CREATE TABLE `{name}` (id INT PRIMARY KEY, v {definition})")

    def fill(self):
        """Write all values and a row of NULL; returns how many rows."""
        count = 0
        for name, (_, values) in self.tables.items():
            rows = [*values, "NULL"]
            for i, value in enumerate(rows):
                run(self.connection, f"INSERT INTO `{name}` (id, v) VALUES ({i}, {value})")
            count += len(rows)
        return count

    def rows(self, cursor, name):
        """What the server says of a table, by id; and its columns."""
        described = read_table(self.connection, self.schema, name)
        assert described is not None
        found = selected(cursor, f"{self.schema}.`{name}`", described)
        return described, {str(row[0]): row for row in found}


@pytest.fixture
def source(site_a):
    install_system_tables(site_a)
    with sandbox_database(site_a) as (connection, schema):
        yield Source(site_a, connection, schema)


def documents(client, index):
    client.indices.refresh(index=index)
    hits = client.search(index=index, size=200)["hits"]["hits"]
    return {hit["_id"]: hit["_source"] for hit in hits}


def row_value(kind, value):
    """A document's value as the row had it: nothing may be lost on the way back."""
    if value is None:
        return None
    if kind in {Kind.BINARY, Kind.GEOMETRY}:
        return base64.b64decode(value, validate=True)
    if kind is Kind.SET:
        assert isinstance(value, list)
        return ",".join(value)
    if kind is Kind.DATETIME:
        return value.replace("T", " ")
    if kind is Kind.TIMESTAMP:
        assert value.endswith("Z")
        return value.replace("T", " ")[:-1]
    return value


def expected_value(kind, definition, value):
    if value is None:
        return None
    if definition.startswith("UUID"):
        # MariaDB logs its own types as bytes, of which nothing says what they mean.
        return uuid.UUID(value).bytes
    if definition.startswith("INET"):
        return ipaddress.ip_address(value).packed
    if kind is Kind.DECIMAL and "ZEROFILL" in definition:
        return f"{Decimal(value):f}"  # zeros in front are how the server shows it
    if kind in CALENDAR:
        try:
            date.fromisoformat(value[:10])
        except ValueError:
            return None  # `zero_dates: as_null`
    return value


def same(kind, definition, found, expected):
    if kind is Kind.FLOAT and None not in (found, expected):
        if definition.startswith("FLOAT"):
            # The server prints four bytes as a double, with the digits that widening adds.
            found, expected = (struct.unpack("<f", struct.pack("<f", v))[0]
                               for v in (found, expected))  # fmt: skip
        # The embedded server reads and writes doubles, and may lose the last of their bits.
        return abs(found - expected) <= 2 * max(math.ulp(found), math.ulp(expected))
    if kind is Kind.JSON and expected is not None:
        # The embedded server reads some integers as doubles, and see above.
        known = json.loads(expected)
        if isinstance(known, list) and len(known) > 100:
            pairs = zip(found, known, strict=True)
            return all(math.isclose(one, other, rel_tol=1e-15) for one, other in pairs)
        return found in (known, json.loads(expected, parse_int=float))
    return type(found) is type(expected) and found == expected


def compare(source, client, prefix):
    wrong, count = [], 0
    with utc_text(source.server) as cursor:
        for name, (definition, _) in source.tables.items():
            schema, rows = source.rows(cursor, name)
            found = documents(client, f"{prefix}-{name}")
            assert found.keys() == rows.keys(), name
            for key, row in rows.items():
                count += 1
                for column, value in zip(schema.columns, row, strict=True):
                    bytes_only = definition.startswith(("UUID", "INET")) and column.name == "v"
                    got = row_value(
                        Kind.BINARY if bytes_only else column.kind, found[key][column.name]
                    )
                    of = definition if column.name == "v" else ""
                    if not same(column.kind, of, got, expected_value(column.kind, of, value)):
                        wrong.append((name, key, column.name, repr(got)[:80], repr(value)[:80]))
    assert not wrong, wrong[:10]
    return count


def search_target(server):
    return {"type": "elasticsearch", "hosts": [server.url]}


@pytest.mark.parametrize("column_rows", [1, None], ids=["by column", "row by row"])
def test_every_type_reaches_documents_from_the_binlog(
    source, elasticsearch, position, monkeypatch, column_rows
):
    monkeypatch.setattr(assembly, "COLUMN_ROWS", column_rows)
    prefix = fresh_name("types")
    mapping = {"from": f"{source.schema}.*", "to": f"{prefix}-*", "zero_dates": "as_null"}
    file = one_way(source.server, search_target(elasticsearch), [mapping])
    count = source.fill()
    position.lead(file).applied(count, timeout=300)
    with Elasticsearch(elasticsearch.url) as client:
        assert compare(source, client, prefix) == count
        fields = client.indices.get_mapping(index=f"{prefix}-*")
        made = {
            name.removeprefix(f"{prefix}-"): described["mappings"]["properties"]["v"]["type"]
            for name, described in fields.items()
        }
    assert made["decimal_widest"] == made["double"] == "double"
    assert made["bigint_unsigned"] == made["bit64"] == "unsigned_long"
    assert made["datetime6"] == "date"


def test_every_type_reaches_documents_from_a_subscription(source, elasticsearch, kafka, position):
    prefix, topic = fresh_name("types"), Topic(kafka)
    writer = relay(source.server, topic, f"{source.schema}.*")
    with Elasticsearch(elasticsearch.url) as client:
        for name, (definition, _) in source.tables.items():
            if definition.startswith("BIGINT UNSIGNED") or name == "bigint_zerofill":
                # Records do not tell that a column has no sign, and `setl check` asks for this.
                fields = {"v": {"type": "unsigned_long"}}
                client.indices.create(index=f"{prefix}-{name}", mappings={"properties": fields})
        position.lead(writer, "r").runs()
        count = source.fill()
        mapping = {"from": f"{source.schema}.*", "to": f"{prefix}-*", "zero_dates": "as_null"}
        pipeline = {"name": "p", "source": topic.source(), "target": search_target(elasticsearch)}
        file = parse_channel(
            {"channel": fresh_name("reader"), "pipelines": [{**pipeline, "tables": [mapping]}]}
        )
        position.lead(file).applied(count, timeout=300)
        assert compare(source, client, prefix) == count


def test_spatial_values_can_be_searched_as_well_known_text(site_a, elasticsearch, position):
    install_system_tables(site_a)
    schema, index = fresh_name("geo"), fresh_name("geo")
    execute(site_a, f"CREATE DATABASE {schema}",
            f"CREATE TABLE {schema}.places (id INT PRIMARY KEY, at GEOMETRY NULL)")  # fmt: skip
    mapping = {"from": f"{schema}.places", "to": index, "geometry": "wkt"}
    file = one_way(site_a, search_target(elasticsearch), [mapping])
    execute(
        site_a,
        f"INSERT INTO {schema}.places VALUES (1, POINT(13.4, 52.5)), (2, POINT(500, -1000)),"
        " (3, NULL), (4, ST_GeomFromText('POLYGON((0 0,1 0,1 1,0 1,0 0))'))",
    )
    position.lead(file).applied(4)
    with Elasticsearch(elasticsearch.url) as client:
        assert {k: d["at"] for k, d in documents(client, index).items()} == {
            "1": "POINT (13.4 52.5)",
            "2": "POINT (500 -1000)",
            "3": None,
            "4": "POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0))",
        }
        (found,) = client.search(
            index=index, query={"geo_distance": {"distance": "10km", "at": [13.41, 52.51]}}
        )["hits"]["hits"]
        assert found["_id"] == "1"
        properties = client.indices.get_mapping(index=index)[index]["mappings"]["properties"]
        assert properties["at"] == {"type": "geo_shape", "ignore_malformed": True}
    execute(site_a, f"DROP DATABASE {schema}")
