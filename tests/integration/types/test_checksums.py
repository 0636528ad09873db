"""Checksums that servers compute: equal for equal rows between all families, and for no others."""

import struct
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pymysql
import pytest

from setl.bulk.checksumming import SummedTable, compare_checksums
from setl.bulk.checksums import Checksum, Form, Formed, Normal
from setl.bulk.chunks import Chunk, chunks_between
from setl.bulk.comparing import digest, forms
from setl.bulk.comparison_plan import common_form
from setl.errors import ConfigurationError
from setl.model.schema import Kind
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.reading.table_reader import TableReader
from tests.integration.pipelines import execute, on_both
from tests.integration.type_catalogue import columns, known
from tests.mysql_servers import is_mariadb

LENIENT = "SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION'"
UTC = "SET time_zone = '+00:00'"


fresh = on_both("sums", options="CHARACTER SET utf8mb4")
"""A database on both servers, empty."""


def table_reader(server, database, table) -> TableReader:
    with server.connect() as connection:
        schema: Any = read_table(connection, database, table)
    endpoint = MysqlEndpoint(server.host, server.port, server.user, server.password)
    return TableReader(endpoint, schema)


def rows_of(reader):
    found = [
        row
        for part in reader.parts(1000)
        for some in reader.read(reader.schema.columns, part)
        for row in some
    ]
    return sorted(found, key=lambda row: row[0])


class SameTable:
    """A table of an id and columns of some types, with the same rows on both servers."""

    def __init__(self, servers, database, number, types):
        self.servers, self.table = servers, f"{database}.t{number}"
        self.count = 1 + max(len(values) for _, values in types.values())
        columns = ", ".join(f"`{name}` {kind} NULL" for name, (kind, _) in types.items())
        rows = [
            [values[i] if i < len(values) else "NULL" for _, values in types.values()]
            for i in range(self.count)
        ]
        for server in servers:
            with server.connect() as connection, connection.cursor() as cursor:
                for statement in (
                    LENIENT,
                    UTC,
                    f"CREATE TABLE {self.table} (id INT PRIMARY KEY, {columns})",
                    *(
                        f"INSERT IGNORE INTO {self.table} VALUES ({', '.join([str(i), *row])})"
                        for i, row in enumerate(rows, start=1)
                    ),
                ):
                    cursor.execute(statement)
        self.readers = [table_reader(server, database, f"t{number}") for server in servers]
        # Once: every connection to MySQL has a handshake of TLS.
        self.rows = [rows_of(reader) for reader in self.readers]
        assert [len(rows) for rows in self.rows] == [self.count] * 2
        # Behind its own values, a column holds nothing but NULL; one of these is enough.
        self.reported = {name: 1 + len(values) for name, (_, values) in types.items()}

    def pairs(self):
        """Each column of both servers, with its position."""
        schemas = [reader.schema.columns for reader in self.readers]
        return list(enumerate(zip(*schemas, strict=True)))[1:]

    def values(self, side, position):
        """A column's values as they were at first, in the order of the key, down to a NULL."""
        name = self.readers[side].schema.columns[position].name
        values = [row[position] for row in self.rows[side]]
        assert set(values[self.reported[name] - 1 :]) == {None}, name
        return values[: self.reported[name]]

    def sums(self, side, column, form, count=None):
        """The checksum of each of these values by itself, without its key."""
        reader = self.readers[side]
        with reader.checksums([Formed(column, form)], reader.schema.columns[:1]) as checksum:
            return [
                checksum(Chunk((i,), (i + 1,))) for i in range(count or self.reported[column.name])
            ]

    def value(self, column):
        """What row 1 of site B has now."""
        reader = self.readers[1]
        (part,) = reader.parts_of_keys(reader.schema.columns[:1], [(1,)])
        (((value,),),) = reader.read([column], part)
        return value

    def put(self, column, value):
        """Set the value of row 1 at site B; False if the server refuses it."""
        with self.servers[1].connect() as connection, connection.cursor() as cursor:
            cursor.execute(LENIENT)
            cursor.execute(UTC)
            try:
                cursor.execute(
                    f"UPDATE {self.table} SET `{column.name}` = %s WHERE id = 1", (value,)
                )
            except pymysql.MySQLError:
                return False
        return True


def neighbour(column, value):
    """A value that differs in as little as it can; None if this one has none."""
    kind = column.kind
    if kind in {Kind.INTEGER, Kind.BIT, Kind.YEAR}:
        return value ^ 1
    if kind is Kind.DECIMAL:
        smallest = Decimal(1).scaleb(-column.scale)
        return Decimal(value) + (-smallest if Decimal(value) > 0 else smallest)
    if kind is Kind.FLOAT:
        code, number = ("f", "I") if column.capacity.type == "float" else ("d", "Q")
        (bits,) = struct.unpack(f"<{number}", struct.pack(f"<{code}", value))
        (next_to,) = struct.unpack(f"<{code}", struct.pack(f"<{number}", bits ^ 1))
        return repr(next_to)
    if kind is Kind.BINARY:
        return value[:-1] + bytes([value[-1] ^ 1]) if value else None
    if kind is Kind.TEXT:
        return value[:-1] + ("x" if value[-1] == "y" else "y") if value else None
    if kind in {Kind.DATE, Kind.TIME, Kind.DATETIME, Kind.TIMESTAMP}:
        # All six digits of a fraction are shown, and the column may have fewer.
        cut = 6 - (column.capacity.scale or 0) if "." in value else 0
        shown = value[: len(value) - cut].rstrip(".")
        return f"{shown[:-1]}{int(shown[-1]) ^ 1}"
    return None  # another label, another document: one of the other rows


def compared(column, values):
    """Values in the form in which rows are compared one by one."""
    (form,) = forms([column])
    return [None if value is None else form(value) for value in values]


def damaged(table, position, here, form, first):
    """Damage the value of row 1 at site B as little as can be; whether one sees it, if one can.

    Args:
        table: with the row.
        position: of the column.
        here: the column at site B.
        form: in which it is compared.
        first: the checksum of row 1.
    """
    values = table.values(1, position)
    before = compared(here, values[:1])
    for value in values:
        near = None if value is None else neighbour(here, value)
        if near is None or not table.put(here, near):
            continue
        if compared(here, [table.value(here)]) != before:
            return table.sums(1, here, form, 1)[0] != first
    return None


# What one family writes in another way than the other, so that rows have to be read: -0.
_UNLIKE = {"float_edges"}
_ONLY_OTHERS = (Kind.ENUM, Kind.SET, Kind.JSON, Kind.GEOMETRY)


def test_every_type(site_a, site_b, fresh):
    """A value never has the checksum of another, on whichever server, and equal ones have one."""
    with site_a.connect() as one, site_b.connect() as other:
        catalogue = known(columns(one), other)
        same = is_mariadb(one) == is_mariadb(other)
    by_rows, unlike, undamaged = set[str](), set[str](), set[str]()
    names = list(catalogue)
    for number, first in enumerate(range(0, len(names), 12)):
        some = {name: catalogue[name] for name in names[first : first + 12]}
        table = SameTable((site_a, site_b), fresh, number, some)
        for position, both in table.pairs():
            form, name = common_form(*both), both[0].name
            if form is None:
                by_rows.add(name)
                continue
            meaning = defaultdict[Checksum, set[bytes]](set)
            written = defaultdict[bytes, set[Checksum]](set)
            sums = [table.sums(side, column, form) for side, column in enumerate(both)]
            for side in range(2):
                values = compared(both[1], table.values(side, position))
                for value, checksum in zip(values, sums[side], strict=True):
                    assert checksum.rows == 1
                    meaning[checksum].add(digest([value]))
                    written[digest([value])].add(checksum)
            assert all(len(values) == 1 for values in meaning.values()), name
            if any(len(sums) > 1 for sums in written.values()):
                unlike.add(name)
            seen = damaged(table, position, both[1], form, sums[1][0])
            assert seen is not False, name
            if seen is None and both[0].kind not in _ONLY_OTHERS:
                undamaged.add(name)
    assert undamaged <= {"json", "json_numbers"}  # text that MariaDB checks
    assert by_rows <= ({"vector"} if same else {"json", "json_numbers"}), by_rows
    assert unlike <= (set() if same else _UNLIKE), unlike


@pytest.mark.parametrize(("charset", "none"), [("cp1250", "81"), ("gbk", "A140"), ("tis620", "A0")])
def test_bytes_that_are_no_character_are_no_question_mark(site_a, site_b, fresh, charset, none):
    """Nor another such byte: whoever reads the text gets the same for all of them."""
    for server in (site_a, site_b):
        execute(
            server,
            LENIENT,
            f"CREATE TABLE {fresh}.t (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET {charset})",
            f"INSERT INTO {fresh}.t VALUES (1, 'a?'), (2, CONVERT(x'61{none}' USING {charset})),"
            f" (3, CONVERT(x'61{none}{none}' USING {charset})), (4, 'a??'), (5, CONVERT(x'61'"
            f" USING {charset})), (6, NULL)",
        )
    readers = [table_reader(server, fresh, "t") for server in (site_a, site_b)]
    sums = list[list[Checksum]]()
    for reader in readers:
        id_, text = reader.schema.columns
        with reader.checksums([Formed(text, Form(Normal.TEXT))], [id_]) as checksum:
            sums.append([checksum(Chunk((i,), (i + 1,))) for i in range(6)])
    assert sums[0] == sums[1]
    assert len(set(sums[0])) == 6
    rows = [rows_of(reader) for reader in readers]
    assert rows[0] == rows[1]
    assert len({digest([value]) for _, value in rows[0]}) == 6


def orders(server, database, rows):
    """A table on a server, and what it is compared by."""
    execute(
        server,
        f"CREATE TABLE {database}.orders (id INT PRIMARY KEY, name VARCHAR(20) NULL)",
        f"INSERT INTO {database}.orders VALUES " + ", ".join(map(str, rows)),
    )
    reader = table_reader(server, database, "orders")
    id_, name = reader.schema.columns
    formed = [Formed(id_, Form(Normal.NUMBER)), Formed(name, Form(Normal.TEXT))]
    return SummedTable(reader, formed, [id_])


@pytest.mark.not_mixed(why="the checksum is that of every type above")
def test_chunks_hold_every_row_of_both_sides(site_a, site_b, fresh):
    rows = [(i, f"n{i}") for i in range(1, 101)]
    source = orders(site_a, fresh, rows)
    target = orders(site_b, fresh, rows)
    chunks = source.table.chunks(source.cut, 7)
    assert len(chunks) > 10
    seen = []
    found = compare_checksums(source, target, chunks, seen.append)
    assert (found.equal_rows, found.differing) == (100, [])
    assert sum(seen) == 200
    # Beyond both ends, and two rows that change places; all else stays equal.
    execute(
        site_b,
        f"INSERT INTO {fresh}.orders VALUES (-5, 'x'), (1000, 'y')",
        f"UPDATE {fresh}.orders SET name = IF(id = 50, 'n51', 'n50') WHERE id IN (50, 51)",
    )
    found = compare_checksums(source, target, chunks, seen.append)
    hit = [c for c in chunks if any(within(c, i) for i in (-5, 50, 51, 1000))]
    assert found.differing == hit
    assert found.equal_rows == sum(not any(within(c, i) for c in hit) for i, _ in rows)
    # The pieces of a chunk are the chunk.
    (first, *_, last) = hit
    for chunk in (first, last):
        pieces = source.table.chunks(source.cut, 2, chunk)
        assert (pieces[0].low, pieces[-1].high) == (chunk.low, chunk.high)
        assert all(one.high == two.low for one, two in pairwise(pieces))
        assert len(pieces) > 2
        assert len(compare_checksums(source, target, pieces, seen.append).differing) == 1


def within(chunk, key):
    return (chunk.low is None or key > chunk.low[0]) and (
        chunk.high is None or key <= chunk.high[0]
    )


@pytest.mark.not_mixed(why="it is about the keys of chunks")
def test_ranges_follow_each_other(site_a, fresh):
    source = orders(site_a, fresh, [(i, "") for i in range(10)])
    chunks, after = [], None
    while not chunks or after is not None:
        chunks.append(source.table.next_chunk(source.cut, after, 4))
        after = chunks[-1].high
    assert chunks == chunks_between([(3,), (7,)])


@pytest.mark.not_mixed(why="an error is one on both")
def test_the_first_error_of_a_server_ends_it(site_a, site_b, fresh):
    source = orders(site_a, fresh, [(1, "a")])
    target = orders(site_b, fresh, [(1, "a")])
    execute(site_b, f"ALTER TABLE {fresh}.orders DROP name")
    with pytest.raises(ConfigurationError, match="name"):
        compare_checksums(source, target, source.table.chunks(source.cut, 1), lambda _: None)


@pytest.mark.not_mixed(why="the limit is that of both")
def test_a_row_that_cannot_be_hashed_is_read(site_a, fresh):
    """A server makes NULL of what is longer than a packet; that must not count as equal."""
    execute(site_a, f"CREATE TABLE {fresh}.w (id INT PRIMARY KEY, "
                    + ", ".join(f"t{i} TEXT CHARACTER SET latin1" for i in range(40)) + ")",
            f"INSERT INTO {fresh}.w (id, "
            + ", ".join(f"t{i}" for i in range(40)) + ") VALUES (1, "
            + ", ".join(["REPEAT('x', 65000)"] * 40) + ")")  # fmt: skip
    old = execute(site_a, "SELECT @@GLOBAL.max_allowed_packet")[0][0]
    reader = table_reader(site_a, fresh, "w")
    formed = [Formed(c, Form(Normal.TEXT)) for c in reader.schema.columns[1:]]
    try:
        execute(site_a, f"SET GLOBAL max_allowed_packet = {1 << 20}")
        with reader.checksums(formed, reader.schema.columns[:1]) as checksum:
            sums = {checksum(Chunk()) for _ in range(3)}
    finally:
        execute(site_a, f"SET GLOBAL max_allowed_packet = {old}")
    assert len(sums) == 3
