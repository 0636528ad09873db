"""Two servers with a schema of the same name, whose tables are compared."""

from typing import Any
from uuid import uuid4

from setl.bulk.verify_target import VerifySettings
from setl.channel.file import Pipeline
from setl.operate.verify import verify_pipeline
from setl.systems.mysql.catalog import read_table

AT_ONCE = VerifySettings(rechecks=0, rows_per_part=3)

ORDERS = """CREATE TABLE {name} (
  id BIGINT NOT NULL PRIMARY KEY,
  buyer VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NULL,
  price DECIMAL(12,2) NOT NULL,
  created DATETIME(6) NOT NULL,
  note TEXT CHARACTER SET utf8mb4 NULL,
  weight FLOAT NULL,
  paid BIT(3) NULL,
  raw VARBINARY(20) NULL,
  state ENUM('draft','sent') NOT NULL DEFAULT 'draft',
  at TIMESTAMP(3) NULL,
  took TIME(2) NULL
) DEFAULT CHARSET=utf8mb4"""
ROWS = [
    (1, "Ann", "1.50", "2026-01-02 03:04:05.000001", "plain", 1.1, 5, b"\0\xff", "sent",
     "2026-01-02 03:04:05.123", "-100:11:12.34"),
    (2, "bob ", "-0.05", "2026-01-02 03:04:05", "", None, None, None, "draft", None, None),
    (3, None, "0.00", "1000-01-01 00:00:00", "𝄞 🧀 größe", -2.5e-7, 0, b"", "draft", None, None),
    (4, "", "9999999999.99", "9999-12-31 23:59:59.999999", None, 3e38, 7, b"x", "sent", None, None),
    (1000, "far", "1", "2026-01-02 03:04:05", "gap", 0.1, 1, b"y", "sent", None, "00:00:00"),
]  # fmt: skip


def fill(connection, name, rows):
    if rows:
        marks = ", ".join(["%s"] * len(rows[0]))
        with connection.cursor() as cursor:
            cursor.execute("SET time_zone='+00:00'")
            cursor.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)


def described(connection, schema, table) -> Any:
    return read_table(connection, schema, table)


def end_of(server, kind="mysql"):
    return {
        "type": kind, "host": server.host, "port": server.port, "user": server.user,
        "password": server.password,
    }  # fmt: skip


class Pair:
    """Two servers with a schema of the same name, and a pipeline from one to the other."""

    def __init__(self, a, b, spark):
        self.a, self.b, self.spark = a, b, spark
        self.schema = f"verify_{uuid4().hex[:8]}"
        self.source, self.target = a.connect(), b.connect()
        for connection in (self.source, self.target):
            self.run(connection, f"CREATE DATABASE {self.schema} CHARACTER SET utf8mb4")
            connection.select_db(self.schema)

    @staticmethod
    def run(connection, *statements):
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def both(self, statement):
        self.run(self.source, statement)
        self.run(self.target, statement)

    def orders(self, name="orders"):
        self.both(ORDERS.format(name=name))
        fill(self.source, name, ROWS)
        fill(self.target, name, ROWS)

    def pipeline(self, *mappings, target=None):
        tables = [{**m, "from": f"{self.schema}.{m['from']}"} for m in mappings or [{"from": "*"}]]
        return Pipeline.model_validate(
            {
                "name": "p",
                "source": end_of(self.a),
                "target": target or end_of(self.b),
                "tables": tables,
            }
        )

    def verify(self, *mappings, settings=AT_ONCE, target=None, **options):
        return verify_pipeline(
            self.spark, self.pipeline(*mappings, target=target), settings=settings, **options
        )

    def verdict(self, *mappings, **options):
        (verdict,) = self.verify(*mappings, **options)
        return verdict


def named(verdict):
    return [(d.key, d.what, [c.name for c in d.columns]) for d in verdict.sample_keys]
