"""The two sites: their tables, setl's system tables, and the channel files that join them."""

from __future__ import annotations

from typing import Any

import yaml

from setl.mysql.statements import resource_statements
from setl_embedded import MariaDb

SCHEMA = "shop"
TABLES = ("customers", "orders", "order_items")

_CREATE = (
    f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4",
    f"""CREATE TABLE {SCHEMA}.customers (
        id BIGINT PRIMARY KEY, site CHAR(1) NOT NULL, email VARCHAR(120) NOT NULL,
        name VARCHAR(80) NOT NULL, credit DECIMAL(12,2) NULL, photo VARBINARY(64) NULL,
        UNIQUE KEY email (email))""",
    f"""CREATE TABLE {SCHEMA}.orders (
        id BIGINT PRIMARY KEY, site CHAR(1) NOT NULL, customer BIGINT NOT NULL,
        status ENUM('new','paid','sent','二手') NOT NULL, amount DECIMAL(14,4) NOT NULL,
        quantity INT UNSIGNED NOT NULL, note TEXT NULL, attributes JSON NULL,
        created DATETIME(6) NOT NULL, changed TIMESTAMP(6) NOT NULL, rate DOUBLE NULL)""",
    f"""CREATE TABLE {SCHEMA}.order_items (
        order_id BIGINT NOT NULL, line SMALLINT NOT NULL, site CHAR(1) NOT NULL,
        sku VARCHAR(32) NOT NULL, price DECIMAL(12,2) NOT NULL, gift BOOLEAN NULL,
        PRIMARY KEY (order_id, line))""",
)

# Lag is measured by the databases themselves: the writer says when a probe was committed, and
# a column that only the receiving table has says when it arrived.
_PROBE = (
    f"CREATE TABLE {SCHEMA}.probe_{{site}}"
    " (id BIGINT PRIMARY KEY, written DATETIME(6) NOT NULL{more})"
)
_ARRIVED = ", arrived DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)"


def prepare(server: MariaDb, site: str) -> None:
    """Create setl's system tables and the shop's tables on one site."""
    with server.connect() as connection, connection.cursor() as cursor:
        for name in ("retl.sql", "fence.sql"):
            for statement in resource_statements(name):
                cursor.execute(statement)
        for statement in _CREATE:
            cursor.execute(statement)
        for written_at in ("a", "b"):
            more = "" if written_at == site else _ARRIVED
            cursor.execute(_PROBE.format(site=written_at, more=more))


def channel_files(a: MariaDb, b: MariaDb, elasticsearch_url: str) -> dict[str, str]:
    """The two channels as YAML, by name; passwords are references to the environment."""

    def mysql(server: MariaDb, password: str) -> dict[str, Any]:
        return {
            "type": "mysql",
            "host": server.host,
            "port": server.port,
            "user": server.user,
            "password": password,
        }

    def shop_tables(probe: str) -> list[dict[str, Any]]:
        return [{"from": f"{SCHEMA}.{name}"} for name in (*TABLES, f"probe_{probe}")]

    # So that one node leads all three, and its death hits all of them.
    nodes = {"prefer": ["n1"]}
    site_a, site_b = mysql(a, "${SHOP_A_PASSWORD}"), mysql(b, "${SHOP_B_PASSWORD}")
    sites = {
        "channel": "sites",
        "pipelines": [
            {"name": name, "source": source, "target": target, "tables": tables, "nodes": nodes}
            for name, source, target, tables in (
                ("a-to-b", site_a, site_b, shop_tables("a")),
                ("b-to-a", site_b, site_a, shop_tables("b")),
            )
        ],
    }
    search = {
        "channel": "search",
        "pipelines": [
            {
                "name": "a-to-search",
                "source": site_a,
                "target": {"type": "elasticsearch", "hosts": [elasticsearch_url]},
                "tables": [
                    {"from": f"{SCHEMA}.customers"},
                    {
                        "from": f"{SCHEMA}.orders",
                        "columns": {"total": "amount * quantity", "shouted": "upper(note)"},
                    },
                    {"from": f"{SCHEMA}.order_items", "to": "items"},
                    {"from": f"{SCHEMA}.probe_a"},
                ],
                "nodes": nodes,
            }
        ],
    }
    return {
        name: yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        for name, content in (("sites", sites), ("search", search))
    }


def environment(a: MariaDb, b: MariaDb) -> dict[str, str]:
    """The variables that the channel files refer to."""
    return {"SHOP_A_PASSWORD": a.password, "SHOP_B_PASSWORD": b.password}
