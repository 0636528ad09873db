"""Tables are cut by text keys as their collations sort them: each row is loaded, and none twice."""

import random

from tests.integration.pipelines import mysql, new_database, rows
from tests.integration.table_loads.test_table_load import (
    loading,
    small_steps,  # noqa: F401 - a fixture
    wait_until_loaded,
)
from tests.mysql_servers import is_mariadb

BOTH = {
    "expands": "id VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_german2_ci PRIMARY KEY",
    "contracts": "id VARCHAR(20) CHARACTER SET utf8mb3 COLLATE utf8mb3_hungarian_ci PRIMARY KEY",
    "czech": "id VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_czech_ci PRIMARY KEY",
    "two_bytes": "id VARCHAR(20) CHARACTER SET ucs2 COLLATE ucs2_unicode_ci PRIMARY KEY",
    "chinese": "id VARCHAR(20) CHARACTER SET gbk PRIMARY KEY",
    "japanese": "id VARCHAR(20) CHARACTER SET sjis COLLATE sjis_bin PRIMARY KEY",
    "taiwan": "id VARCHAR(20) CHARACTER SET big5 PRIMARY KEY",
    "prefix": "id VARCHAR(200) CHARACTER SET utf8mb4, PRIMARY KEY (id(4))",
    "prefix_czech": "id VARCHAR(200) COLLATE utf8mb4_czech_ci, PRIMARY KEY (id(4))",
    "prefix_plain": "id VARCHAR(200) COLLATE utf8mb4_general_ci, PRIMARY KEY (id(4))",
    "prefix_bin": "id VARCHAR(200) COLLATE utf8mb4_bin, PRIMARY KEY (id(4))",
    "prefix_bytes": "id BLOB, PRIMARY KEY (id(4))",
    "fixed": "id CHAR(12) CHARACTER SET utf8mb4 PRIMARY KEY",
    "pair": "id VARCHAR(20) CHARACTER SET latin1, n INT, PRIMARY KEY (n, id)",
    "backwards": "id VARCHAR(20) CHARACTER SET utf8mb4, n INT, PRIMARY KEY (n DESC, id DESC)",
}
OF_MYSQL = {
    "padless": "id VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci PRIMARY KEY",
    "japanese_cs": "id VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_ja_0900_as_cs PRIMARY KEY",
    "chinese_cs": "id VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_zh_0900_as_cs PRIMARY KEY",
}
OF_MARIADB = {
    "padless": "id VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_nopad_ci PRIMARY KEY",
    "newer": "id VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_uca1400_ai_ci PRIMARY KEY",
    "uuids": "id UUID PRIMARY KEY",
    "addresses": "id INET6 PRIMARY KEY",
}
LETTERS = {
    "expands": "sSßaäeuüzZ '\\%",
    "chinese": "aA中文字乱啊",
    "taiwan": "aA中文字許功蓋",
    "japanese": "aAソ表能あいア亜\\",
    "pair": "sSßaäé",
    "japanese_cs": "あいウうゥー々亜か゛がカ",
    "chinese_cs": "中文字乱啊𠀀aA",
}
ANY = "cChHdDzZsSčČáÁaA ä\t\0"


def keys_of(name, draw):
    if name == "uuids":
        return [f"{draw.getrandbits(128):032x}" for _ in range(400)]
    if name == "addresses":
        return [":".join(f"{draw.getrandbits(16):x}" for _ in range(8)) for _ in range(400)]
    letters = LETTERS.get(name, ANY + ("" if name in ("contracts", "two_bytes") else "😀𠀀"))
    made = ["".join(draw.choices(letters, k=draw.randrange(1, 9))) for _ in range(700)]
    return made if "bytes" not in name else [key.encode() for key in made]


def test_each_row_arrives_once_whatever_the_collation(servers, position, small_steps):  # noqa: F811
    a, b = servers
    with a.connect() as connection:
        tables = BOTH | (OF_MARIADB if is_mariadb(connection) else OF_MYSQL)
    draw = random.Random(17)
    made = (f"CREATE TABLE {{db}}.{table} ({key}, v INT)" for table, key in tables.items())
    with new_database(servers, "keys", *made, options="CHARACTER SET utf8mb4") as name:
        with a.connect() as connection, connection.cursor() as cursor:
            for table, key in tables.items():
                n = ", 1" if " n INT" in key else ""
                cursor.executemany(
                    f"INSERT IGNORE INTO {name}.{table} VALUES (%s{n}, %s)",
                    [(key, i) for i, key in enumerate(keys_of(table, draw))],
                )
        count = sum(len(rows(a, f"{name}.{table}")) for table in tables)
        reported = wait_until_loaded(position.lead(loading(a, mysql(b), [{"from": f"{name}.*"}])))
        for table in tables:
            here, there = (sorted(map(str, rows(s, f"{name}.{table}"))) for s in servers)
            assert here == there, table
            assert len(here) > 100, table
        assert reported.rows == count
