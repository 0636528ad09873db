"""What the source tables of the type tests hold: one table for each type, and each key."""

import random
import re
import struct

from setl.codec.binlog.values.mysql_json import double_text
from tests.integration.every_type import CHARSETS, TYPES
from tests.mysql_servers import is_mariadb, mariadb_version

SEED = 5
RANDOM_ROWS = 12
_BESIDE = 30  # rows of a table at most: a large value in one row says what it says in each

# Types that only one of the two products has, told by what their definitions contain.
_MARIADB_ONLY = ("COMPRESSED", "UUID", "INET4", "INET6", "YEAR(2)")
_MYSQL_ONLY = ("VECTOR",)
_SINCE = {"UUID": (10, 7), "INET4": (10, 10)}

_POLYGON = "POLYGON((0 0,10 0,10 10,0 10,0 0),(2 2,3 2,3 3,2 2))"
_SHAPES = [
    "POINT(-1.5 1e-300)",
    "LINESTRING(0 0,1 1,2 0)",
    _POLYGON,
    "MULTIPOINT(0 0,1 1)",
    "MULTILINESTRING((0 0,1 1),(2 2,3 3))",
    f"MULTIPOLYGON({_POLYGON.removeprefix('POLYGON')},((20 20,21 20,21 21,20 20)))",
    "GEOMETRYCOLLECTION(POINT(1 2),LINESTRING(0 0,1 1))",
]
_ODD_TEXTS = ["'%s %% %(a)s'", "'\"`;--'", r"'\\\'\0\Z\r\n\t'", "'ends in a backslash\\\\'", "' '"]

# An embedding and what else a double may be, as MySQL writes them; all its bits have to arrive.
_DRAW = random.Random(SEED)
_MANY_DOUBLES = [
    *(_DRAW.gauss(0, 0.03) for _ in range(300)),
    *(_DRAW.uniform(-1e16, 1e16) for _ in range(50)),
    *(_DRAW.uniform(1, 10) * 10.0 ** _DRAW.randint(-300, 300) for _ in range(100)),
    *(0.0, -0.0, 2.0, 5e-324, 1e15, 1e-15, 2.2250738585072014e-308),
]
_DOUBLES = "[" + ", ".join(map(double_text, _MANY_DOUBLES)) + "]"

_BITS = ",".join(f"'l{i}'" for i in range(64))


def _any_labels(count):
    """ENUM and SET of any labels, in any character set, with numbers of theirs: all, or some."""
    chance = random.Random(SEED)
    made = {}
    for i in range(count):
        word, charset = chance.choice(("ENUM", "SET")), chance.choice(sorted(CHARSETS))
        # Servers do not show labels beyond the Basic Multilingual Plane.
        text = "".join(letter for letter in CHARSETS[charset] if letter < "\U00010000")
        pool = ["", "", "a", "a", "A", "b", "0", "1", "2", text, text[:1], text[-1:]]
        labels = chance.choices(pool, k=chance.randint(2, 6))
        quoted = ",".join(f"'{label}'" for label in labels)
        numbers = range(len(labels) + 1 if word == "ENUM" else 1 << len(labels))
        some = chance.sample(numbers, min(len(numbers), 9))
        made[f"any_{i}"] = (f"{word}({quoted}) CHARACTER SET {charset}", [*map(str, some)])
    return made


# Labels that are not one to one with their numbers, which is what a server keeps. Only a session
# that is not strict makes all of them. As columns and as keys.
LABELS = {
    "enum_blank": ("ENUM('','a')", ["0", "1", "2"]),
    "enum_twice": ("ENUM('a','b','a')", ["1", "2", "3", "0"]),
    "enum_alike": ("ENUM('a','A','é') CHARACTER SET latin1", ["1", "2", "3"]),
    # To the collations of these, m is n, e is `, and y is ~.
    "enum_macce": ("ENUM('m','n','o') CHARACTER SET macce", ["1", "2", "3"]),
    "enum_big5_alike": ("ENUM('e','`','y','~') CHARACTER SET big5", ["1", "2", "3", "4"]),
    "set_gbk_alike": ("SET('y','~') CHARACTER SET gbk", ["1", "2", "3"]),
    "enum_digits": ("ENUM('2','','1','3','0','1')", ["1", "2", "3", "4", "5", "6", "0"]),
    "enum_binary": ("ENUM('UNKNOWN','é','É') CHARACTER SET binary", ["1", "2", "3"]),
    "set_blank": ("SET('','x')", ["0", "1", "2", "3"]),
    "set_twice": ("SET('x','y','x')", ["0", "1", "4", "5", "7"]),
    "set_alike": ("SET('a','A') CHARACTER SET latin1", ["1", "2", "3"]),
    "set_binary": ("SET('a','é') CHARACTER SET binary", ["1", "2", "3"]),
    **_any_labels(8),
    "set_64": (f"SET({_BITS})", ["1", "2147483649", "9007199254740993", "18446744073709551615"]),
}

# Of MariaDB alone, which does not count labels that are named again: one here has no bit.
LABELS_OF_MARIADB = {"set_65": (f"SET({_BITS},'l0')", ["1", "9007199254740993", "2"])}

_MORE = {
    "int_zerofill": ("INT(10) UNSIGNED ZEROFILL", ["0", "42", "4294967295"]),
    "bigint_zerofill": ("BIGINT ZEROFILL", ["0", "18446744073709551615"]),
    "decimal_zerofill": ("DECIMAL(10,2) ZEROFILL", ["0", "1.5"]),
    "decimal_unsigned": ("DECIMAL(10,3) UNSIGNED", ["0", "9999999.999"]),
    "decimal_30": ("DECIMAL(30,30)", [f"0.{'9' * 30}", f"-0.{'0' * 29}1"]),
    "decimal_65": ("DECIMAL(65,0)", ["9" * 65, "-" + "9" * 65]),
    "float_edges": (
        "FLOAT",
        ["-0e0", "1.4e-45", "3.4028235e38", "-3.4028235e38", "1.17549435e-38", "0.30000001"],
    ),
    "float_digits": ("FLOAT(7,2)", ["0.01", "12345.67", "-99999.99", "-0.1"]),
    "float_bound": ("FLOAT(10,5)", ["99999.99999", "-99999.99999", "99999.98"]),
    "float_unsigned": ("FLOAT UNSIGNED", ["0", "3.3"]),
    "double_edges": (
        "DOUBLE",
        [
            "-0e0",
            "5e-324",
            "1.7976931348623157e308",
            "2.225073858507201e-308",
            "0.1",
            "9007199254740993",
            "0.30000000000000004",
            "1e22",
            "1e23",
        ],
    ),
    "double_digits": ("DOUBLE(20,5)", ["0.00001", "123456789012345.12345", "-0.1"]),
    "year_2": ("YEAR(2)", ["'0000'", "'00'", "1901", "2001", "2155"]),
    "bit33": ("BIT(33)", ["0", "1", "8589934591"]),
    "dates": (
        "DATE",
        ["'0001-01-01'", "'2024-00-00'", "'2023-02-31'", "'2024-02-00'", "'0000-00-00'"],
    ),
    "datetimes": (
        "DATETIME(6)",
        [
            "'0001-01-01 00:00:00.000001'",
            "'9999-12-31 23:59:59.999999'",
            "'2024-00-00 01:02:03.4'",
            "'2023-02-31 23:59:59'",
            "'0000-00-00 00:00:00'",
        ],
    ),
    "timestamps": (
        "TIMESTAMP(6) NULL",
        ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07.999999'", "'0000-00-00 00:00:00'"],
    ),
    "varchar_odd": ("VARCHAR(60)", _ODD_TEXTS),
    "char_trailing": ("CHAR(10) COLLATE utf8mb4_bin", ["'a   '", "'   '", "'a\\n '"]),
    "varchar_trailing": ("VARCHAR(10)", ["'a   '", "'   '", "'a'"]),
    "binary_trailing": ("BINARY(8)", ["x'6100'", "x'0000000000000000'", "x'6120'", "''"]),
    "varbinary_trailing": ("VARBINARY(8)", ["x'6100'", "x'6120'", "''", "x'00'"]),
    "longblob_large": ("LONGBLOB", ["REPEAT(x'00ff27', 500000)", *["x'27'"] * _BESIDE]),
    "longtext_large": ("LONGTEXT", ["REPEAT('é🙂''\\\\', 300000)", *["'é'"] * _BESIDE]),
    "enum_odd": (
        "ENUM('it''s','a,b','\\\\','1','0','')",
        ["'it''s'", "'\\\\'", "'1'", "'0'", "''"],
    ),
    "enum_error": ("ENUM('a','b')", ["'a'", "'none of them'", "'b'", "0"]),
    "set_odd": ("SET('it''s','\\\\','1','0')", ["''", "'it''s,\\\\'", "'1,0'"]),
    "json_numbers": (
        "JSON",
        [
            """'{"a": 1.10, "b": 12345678901234567890123, "c": 0.30000000000000004}'""",
            """'[1e0, 1.0, -0.0, 18446744073709551615, 1.7976931348623157e308]'""",
            """'{"": {"\\\\"k": [1, [2.50]]}}'""",
            f"""'{"[" * 30}{"]" * 30}'""",
            """'"text"'""",
            f"'{_DOUBLES}'",
        ],
    ),
    **{
        f"shape_{i}": (
            "GEOMETRY",
            [f"ST_GeomFromText('{shape}')", f"ST_GeomFromText('{shape}', 3857)"],
        )
        for i, shape in enumerate(_SHAPES)
    },
    "linestring": ("LINESTRING", ["ST_GeomFromText('LINESTRING(0 0,1 1)')"]),
    "polygon": ("POLYGON", [f"ST_GeomFromText('{_POLYGON}')"]),
    "inet4": ("INET4", ["'0.0.0.0'", "'255.255.255.254'"]),
    "inet6": ("INET6", ["'::'", "'2001:db8::ff00:42:8329'", "'::ffff:192.0.2.1'"]),
    "vector": ("VECTOR(3)", ["STRING_TO_VECTOR('[1.5,-0.25,3e38]')"]),
    **{f"time_{n}": (f"TIME({n})", ["'-838:59:59'", "'12:34:56.999999'"]) for n in range(7)},
    **{
        f"datetime_{n}": (f"DATETIME({n})", ["'2026-01-02 03:04:05.999999'", "0"])
        for n in range(7)
    },
    **{
        f"timestamp_{n}": (f"TIMESTAMP({n}) NULL", ["'2026-06-15 12:00:00.999999'", "0"])
        for n in range(7)
    },
    **{
        f"text_{charset}": (
            f"VARCHAR(40) CHARACTER SET {charset}",
            [f"'{text}'", "'a''\\\\'", "''"],
        )
        for charset, text in CHARSETS.items()
    },
    **{
        f"{word.lower()}_{charset}": (
            f"{word}('{text}','x') CHARACTER SET {charset}",
            [f"'{text}'", "'x'"],
        )
        for word in ("ENUM", "SET")
        for charset, text in CHARSETS.items()
    },
}  # fmt: skip

# Columns as primary keys: definition, and values that are different keys.
KEYS = {
    "decimal": ("DECIMAL(65,30)", ["0", "-1.5", f"{'9' * 35}.{'9' * 30}", f"0.{'0' * 29}1"]),
    "float": ("FLOAT", ["0.1", "-1.5e-30", "16777217", "3.4028235e38", "1.4e-45"]),
    "float_digits": ("FLOAT(7,2)", ["0.01", "12345.67"]),
    "double": ("DOUBLE", ["0.1", "0.30000000000000004", "5e-324", "1.7976931348623157e308"]),
    "bigint_unsigned": ("BIGINT UNSIGNED", ["0", "9223372036854775808", "18446744073709551615"]),
    "binary": ("BINARY(5)", ["x'6100'", "x'6120'", "x''", "x'ff00ff0000'"]),
    "varbinary": ("VARBINARY(5)", ["x'6100'", "x'61'", "x'6120'", "x''"]),
    "char_ci": ("CHAR(10) COLLATE utf8mb4_general_ci", ["'a'", "'b  '", "'é🙂'", "''"]),
    "varchar_ci": ("VARCHAR(10) COLLATE utf8mb4_general_ci", ["'a '", "'B'", "'ß'", "''"]),
    "varchar_bin": ("VARCHAR(10) COLLATE utf8mb4_bin", ["'a'", "'A'", "'é'"]),
    "latin1": ("VARCHAR(10) CHARACTER SET latin1", ["'é'", "'€'", "'x'"]),
    "gbk": ("CHAR(10) CHARACTER SET gbk", ["'汉'", "'字'", "'x'"]),
    "ucs2": ("CHAR(10) CHARACTER SET ucs2", ["'汉'", "'字'", "'x'"]),
    "date": ("DATE", ["'0000-00-00'", "'2024-00-00'", "'2023-02-31'", "'9999-12-31'"]),
    "datetime6": (
        "DATETIME(6)",
        ["'0000-00-00'", "'2026-01-02 03:04:05.678901'", "'2026-01-02 03:04:05'"],
    ),
    "datetime0": ("DATETIME", ["'2026-01-02 03:04:05'", "'0001-01-01'"]),
    "timestamp3": ("TIMESTAMP(3) DEFAULT 0", ["'2026-01-02 03:04:05.678'", "0"]),
    "time6": ("TIME(6)", ["'-838:59:59'", "'-00:00:00.000001'", "'23:59:59.5'", "0"]),
    "enum": ("ENUM('b','a','it''s','1')", ["'b'", "'a'", "'it''s'", "'1'"]),
    "set": ("SET('b','a','1')", ["''", "'b'", "'b,a'", "'1'"]),
    "bit": ("BIT(64)", ["0", "1", "18446744073709551615"]),
    "year": ("YEAR", ["0", "1901", "2069", "2155"]),
    "inet6": ("INET6", ["'::'", "'2001:db8::1'"]),
    "uuid": ("UUID", ["'123e4567-e89b-12d3-a456-426655440000'", "UUID()"]),
}  # fmt: skip


def known(catalogue, connection):
    """The entries of a catalogue whose types and charsets a server has."""
    mariadb = is_mariadb(connection)
    others = [*_MYSQL_ONLY] if mariadb else [*_MARIADB_ONLY]
    version = mariadb_version(connection)
    if version is not None:
        others += [word for word, since in _SINCE.items() if version < since]
    with connection.cursor() as cursor:
        cursor.execute("SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS")
        charsets = {row[0] for row in cursor.fetchall()}
        cursor.execute("SELECT VERSION()")
        if not mariadb and int(cursor.fetchone()[0].partition(".")[0]) < 9:
            others.append("VECTOR")
    return {
        name: (definition, values)
        for name, (definition, values) in catalogue.items()
        if not any(word in definition for word in others)
        and charsets.issuperset(re.findall(r"CHARACTER SET (\w+)", definition))
    }


def columns(connection):
    """Definition of a column, and SQL of its values, by name: the edges and some at random."""
    found = known({**TYPES, **_MORE}, connection)
    chance = random.Random(SEED)
    return {
        name: (definition, [*values, *_random_values(definition, chance)])
        for name, (definition, values) in found.items()
    }


def _random_values(definition, chance):
    word = definition.partition("(")[0].partition(" ")[0]
    make = _RANDOM.get(word)
    if make is None or "(7,2)" in definition or "(20,5)" in definition:
        return []
    return [make(definition, chance) for _ in range(RANDOM_ROWS)]


def _integer(bits):
    def make(definition, chance):
        number = chance.getrandbits(chance.randint(1, bits))
        free = "UNSIGNED" in definition or "ZEROFILL" in definition
        return str(number if free else number - (1 << (bits - 1)))

    return make


def _double(definition, chance):
    size, form = (4, "f") if definition.startswith("FLOAT") else (8, "d")
    while True:
        (value,) = struct.unpack(form, chance.randbytes(size))
        if value == value and abs(value) != float("inf"):
            return repr(abs(value) if "UNSIGNED" in definition else value)


def _decimal(definition, chance):
    precision, scale = map(int, definition.partition("(")[2].partition(")")[0].split(","))
    digits = f"{chance.getrandbits(256):080d}"[-chance.randint(1, precision) :].zfill(precision)
    sign = "" if "UNSIGNED" in definition or "ZEROFILL" in definition else chance.choice(("", "-"))
    return f"{sign}{digits[: precision - scale] or 0}.{digits[precision - scale :] or 0}"


def _text(definition, chance):
    longest = 10 if "(" not in definition else int(definition.partition("(")[2].partition(")")[0])
    if "CHARACTER SET" in definition:
        pool = "abc '\"\\%_\n"
    else:
        pool = "aé汉🙂'\"\\%\0\n\x1a\u200d\ufeff\ue000"
    text = "".join(chance.choices(pool, k=chance.randint(0, min(longest, 40))))
    return f"CONVERT(x'{text.encode().hex()}' USING utf8mb4)"


def _bytes(definition, chance):
    longest = 30 if "(" not in definition else int(definition.partition("(")[2].partition(")")[0])
    return f"x'{chance.randbytes(chance.randint(0, min(longest, 40))).hex()}'"


def _clock(definition, chance):
    fraction = f"{chance.randint(0, 999999):06d}"
    clock = f"{chance.randint(0, 59):02d}:{chance.randint(0, 59):02d}.{fraction}"
    if definition.startswith("TIME("):
        return f"'{chance.choice(('', '-'))}{chance.randint(0, 837)}:{clock}'"
    date = f"{chance.randint(1, 9999):04d}-{chance.randint(0, 12):02d}-{chance.randint(0, 31):02d}"
    if definition.startswith("TIMESTAMP"):
        date = f"{chance.randint(1971, 2037)}-{chance.randint(1, 12)}-{chance.randint(1, 28)}"
    return f"'{date} {chance.randint(0, 23):02d}:{clock}'"


def _date(_, chance):
    return _clock("DATETIME", chance)[:11] + "'"


_RANDOM = {
    "TINYINT": _integer(8),
    "SMALLINT": _integer(16),
    "MEDIUMINT": _integer(24),
    "INT": _integer(32),
    "BIGINT": _integer(64),
    "BIT": lambda d, chance: str(chance.getrandbits(int(d[4:-1]))),
    "FLOAT": _double,
    "DOUBLE": _double,
    "DECIMAL": _decimal,
    "CHAR": _text,
    "VARCHAR": _text,
    "TEXT": _text,
    "BINARY": _bytes,
    "VARBINARY": _bytes,
    "BLOB": _bytes,
    "DATE": _date,
    "DATETIME": _clock,
    "TIMESTAMP": _clock,
    "TIME": _clock,
}
