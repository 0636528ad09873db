"""Columns of every type and character set that MariaDB has, with values, and their binlog."""

import uuid
from contextlib import contextmanager

import pytest

from tests.unit.codec.binlog_server import end_of, entries_between

MAX_TEXT = "'" + "é🙂x" * 3000 + "'"

# Definition of a column, and SQL of values; every column gets NULL as well.
TYPES = {
    "tinyint": ("TINYINT", ["-128", "0", "127"]),
    "tinyint_unsigned": ("TINYINT UNSIGNED", ["0", "128", "255"]),
    "boolean": ("BOOLEAN", ["TRUE", "FALSE"]),
    "smallint": ("SMALLINT", ["-32768", "-1", "32767"]),
    "smallint_unsigned": ("SMALLINT UNSIGNED", ["0", "65535"]),
    "mediumint": ("MEDIUMINT", ["-8388608", "-1", "8388607"]),
    "mediumint_unsigned": ("MEDIUMINT UNSIGNED", ["0", "8388608", "16777215"]),
    "int": ("INT", ["-2147483648", "-1", "2147483647"]),
    "int_unsigned": ("INT UNSIGNED", ["0", "2147483648", "4294967295"]),
    "bigint": ("BIGINT", ["-9223372036854775808", "9223372036854775807"]),
    "bigint_unsigned": (
        "BIGINT UNSIGNED",
        ["0", "9223372036854775808", "18446744073709551615"],
    ),
    "decimal": ("DECIMAL(12,2)", ["0", "-0.01", "9999999999.99", "-9999999999.99", "1.5"]),
    "decimal_scale_only": ("DECIMAL(9,9)", ["0", "0.123456789", "-0.000000001"]),
    "decimal_whole": ("DECIMAL(20,0)", ["0", "-1", "99999999999999999999"]),
    "decimal_widest": (
        "DECIMAL(65,30)",
        [
            f"{'9' * 35}.{'9' * 30}",
            f"-{'9' * 35}.{'9' * 30}",
            "0",
            "-1.000000000000000000000000000001",
        ],
    ),
    "decimal_odd": ("DECIMAL(31,11)", ["12345678901234567890.12345678901", "-0.00000000001"]),
    "float": ("FLOAT", ["0.1", "-1.5e-30", "3.4028234e38", "16777217", "0", "1.17549e-38"]),
    "double": ("DOUBLE", ["0.1", "-1.7976931348623157e308", "2.2250738585072014e-308", "0"]),
    "bit1": ("BIT(1)", ["b'0'", "b'1'"]),
    "bit9": ("BIT(9)", ["b'0'", "b'101010101'"]),
    "bit64": ("BIT(64)", ["0", "18446744073709551615"]),
    "year": ("YEAR", ["1901", "2155", "0"]),
    "date": (
        "DATE",
        ["'1000-01-01'", "'9999-12-31'", "'0000-00-00'", "'2024-02-29'", "'2026-00-00'"],
    ),
    "time": ("TIME", ["'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'"]),
    "time1": ("TIME(1)", ["'-00:00:00.1'", "'12:34:56.7'"]),
    "time3": ("TIME(3)", ["'-00:00:00.001'", "'-100:11:12.340'", "'100:11:12.999'"]),
    "time6": ("TIME(6)", ["'-838:59:58.999999'", "'-00:00:00.000001'", "'23:59:59.000001'"]),
    "datetime": ("DATETIME", ["'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "0"]),
    "datetime2": ("DATETIME(2)", ["'2026-01-02 03:04:05.67'"]),
    "datetime4": ("DATETIME(4)", ["'2026-01-02 03:04:05.6789'"]),
    "datetime6": ("DATETIME(6)", ["'2026-01-02 03:04:05.678901'", "'0000-00-00 00:00:00.000000'"]),
    "timestamp": ("TIMESTAMP NULL", ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "0"]),
    "timestamp3": ("TIMESTAMP(3) NULL", ["'2026-06-15 12:00:00.123'"]),
    "timestamp6": ("TIMESTAMP(6) NULL", ["'2026-06-15 12:00:00.000001'", "0"]),
    "char": ("CHAR(10)", ["''", "'ab'", "'ab   '", "'日本🙂'"]),
    "char_long": ("CHAR(255)", ["'x'", "REPEAT('🙂', 255)"]),
    "varchar": ("VARCHAR(40)", ["''", "'  a '", "'日本🙂'", r"'a\'b\\c\0d\n'"]),
    "varchar_long": ("VARCHAR(5000)", ["REPEAT('é', 5000)"]),
    "binary": ("BINARY(5)", ["''", r"'a\0'", "x'0000000000'", "x'ff00ff0000'"]),
    "binary_wide": ("BINARY(255)", ["x'00ff'"]),
    "varbinary": ("VARBINARY(300)", ["''", "x'00ff00'", "REPEAT('z', 300)"]),
    "tinytext": ("TINYTEXT", ["''", "'é'"]),
    "text": ("TEXT", ["'a'", MAX_TEXT]),
    "mediumtext": ("MEDIUMTEXT", ["REPEAT('x', 70000)"]),
    "longtext": ("LONGTEXT", ["'l'"]),
    "tinyblob": ("TINYBLOB", ["x'00'", "''"]),
    "blob": ("BLOB", ["x'c3280000'"]),
    "mediumblob": ("MEDIUMBLOB", ["REPEAT(x'00ff', 40000)"]),
    "longblob": ("LONGBLOB", ["x'80'"]),
    "json": ("JSON", ["""'{"a": [1, "é"]}'""", "'null'", "'[]'"]),
    "enum": ("ENUM('a','b,c','é','')", ["'a'", "'b,c'", "'é'", "''"]),
    "enum_latin1": ("ENUM('x','é') CHARACTER SET latin1", ["'é'"]),
    "enum_gbk": ("ENUM('汉','字') CHARACTER SET gbk", ["'字'"]),
    "enum_large": (
        "ENUM(" + ",".join(f"'v{i}'" for i in range(300)) + ")",
        ["'v0'", "'v254'", "'v255'", "'v299'"],
    ),
    "set": ("SET('a','b','é')", ["''", "'a'", "'a,é'", "'a,b,é'"]),
    "set_large": (
        "SET(" + ",".join(f"'v{i}'" for i in range(64)) + ")",
        ["'v0'", "'v63'", "'v0,v31,v32,v63'"],
    ),
    "geometry": ("GEOMETRY", ["POINT(1,2)", "ST_GeomFromText('LINESTRING(0 0,1 1)', 4326)"]),
    "point": ("POINT", ["POINT(1.5,-2)"]),
    "compressed_text": ("TEXT COMPRESSED", ["'short'", "REPEAT('long é ', 500)", "''"]),
    "compressed_varchar": ("VARCHAR(200) COMPRESSED", ["'v'", "REPEAT('é', 200)"]),
    "compressed_blob": ("BLOB COMPRESSED", ["x'00'", "REPEAT(x'00ff', 500)"]),
    "uuid": ("UUID", ["'123e4567-e89b-12d3-a456-426655440000'"]),
}

CHARSETS = {
    "latin1": "café €",
    "latin2": "Łódź",
    "cp1250": "Łódź",
    "cp1251": "Привет",
    "koi8r": "Привет",
    "koi8u": "Київ",
    "greek": "αβγ",
    "hebrew": "שלום",
    "cp1256": "سلام",
    "latin5": "İstanbul",
    "cp1257": "ąčę",
    "tis620": "ไทย",
    "armscii8": "Հայ",
    "geostd8": "საქ",
    "keybcs2": "žluť",
    "cp850": "ñ",
    "cp852": "ž",
    "cp866": "Да",
    "dec8": "é",
    "hp8": "é",
    "swe7": "åäö",
    "macce": "ž",
    "macroman": "é",
    "latin7": "ž",
    "ascii": "plain",
    "gbk": "汉字",
    "gb2312": "汉字",
    "big5": "漢字",
    "sjis": "日本",
    "cp932": "日本①",
    "ujis": "日本",
    "eucjpms": "日本\uff5e",
    "euckr": "한국",
    "ucs2": "aé日",
    "utf16": "a🙂",
    "utf16le": "a🙂",
    "utf32": "a🙂",
    "utf8mb3": "日本",
    "utf8mb4": "日本🙂",
}


@contextmanager
def sandbox_database(server):
    """A connection in UTC that takes zero dates, and a database that is dropped afterwards."""
    schema = f"codec_{uuid.uuid4().hex[:8]}"
    with server.connect() as connection:
        run(
            connection,
            "SET sql_mode = 'ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'",
            "SET time_zone = '+00:00'",
            f"CREATE DATABASE {schema} CHARACTER SET utf8mb4",
            f"USE {schema}",
        )
        yield connection, schema
        run(connection, f"DROP DATABASE {schema}")


def _of_its_family(name, definition):
    for word in ("COMPRESSED", "UUID"):
        if word in definition:
            only = pytest.mark.family("mariadb", why=f"MySQL has no type {word}")
            return pytest.param(name, marks=only)
    return name


EVERY_TYPE = [_of_its_family(name, definition) for name, (definition, _) in TYPES.items()]
"""The names of all types, for tests that run once for each."""


def run(connection, *statements):
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def stream(mariadb, connection, *statements, **options):
    """Entries of what some statements wrote."""
    start = end_of(connection)
    run(connection, *statements)
    return entries_between(mariadb, start, end_of(connection), **options)
