"""The two sites: their tables, setl's system tables, and the channel files that join them."""

from __future__ import annotations

from typing import Any

import yaml

from setl.systems.mysql.sql_files import system_table_statements
from setl_embedded import DatabaseServer

SCHEMA = "shop"
RELAY = "relay"
"""The channel of the relays."""

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


def prepare(server: DatabaseServer, site: str) -> None:
    """Create setl's system tables and the shop's tables on one site."""
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in (*system_table_statements(), *_CREATE):
            cursor.execute(statement)
        for written_at in ("a", "b"):
            more = "" if written_at == site else _ARRIVED
            cursor.execute(_PROBE.format(site=written_at, more=more))


def channel_files(
    a: DatabaseServer, b: DatabaseServer, elasticsearch_url: str, brokers: str = ""
) -> dict[str, str]:
    """The channels as YAML, by name; passwords are references to the environment.

    With `brokers`, relays write both sites' changes to Kafka, and what joins the sites reads
    them there.
    """
    site_a, site_b = _mysql(a, "${SHOP_A_PASSWORD}"), _mysql(b, "${SHOP_B_PASSWORD}")
    from_a, from_b = site_a, site_b
    files: dict[str, Any] = {}
    if brokers:
        files[RELAY] = {
            "channel": RELAY,
            "pipelines": [
                {
                    "name": site,
                    "source": source,
                    "target": _topic(brokers, site),
                    "tables": [{"from": f"{SCHEMA}.*"}],
                    "nodes": {"prefer": ["r1"]},
                }
                for site, source in (("a", site_a), ("b", site_b))
            ],
        }
        from_a = _subscription(brokers, "a", site_a)
        from_b = _subscription(brokers, "b", site_b)
    # So that one node leads all three, and its death hits all of them.
    nodes = {"prefer": ["n1"]}
    files["sites"] = {
        "channel": "sites",
        "pipelines": [
            {"name": name, "source": source, "target": target, "tables": tables, "nodes": nodes}
            for name, source, target, tables in (
                ("a-to-b", from_a, site_b, _shop_tables("a")),
                ("b-to-a", from_b, site_a, _shop_tables("b")),
            )
        ],
    }
    files["search"] = {
        "channel": "search",
        "pipelines": [
            {
                "name": "a-to-search",
                "source": from_a,
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
        for name, content in files.items()
    }


def topic_of(site: str) -> str:
    """The topic that has a site's changes."""
    return f"{SCHEMA}-{site}"


def _mysql(server: DatabaseServer, password: str) -> dict[str, Any]:
    return {
        "type": "mysql",
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": password,
    }


def _topic(brokers: str, site: str) -> dict[str, Any]:
    return {"type": "dts", "brokers": [brokers], "topic": topic_of(site)}


def _subscription(brokers: str, site: str, database: dict[str, Any]) -> dict[str, Any]:
    known = {key: value for key, value in database.items() if key != "type"}
    # See `setl_drills.tables.whole_topic`.
    every_record = {"isolation.level": "read_uncommitted"}
    return {**_topic(brokers, site), "start": "earliest", "database": known, "kafka": every_record}


def _shop_tables(probe: str) -> list[dict[str, Any]]:
    return [{"from": f"{SCHEMA}.{name}"} for name in (*TABLES, f"probe_{probe}")]


def environment(a: DatabaseServer, b: DatabaseServer) -> dict[str, str]:
    """The variables that the channel files refer to."""
    return {"SHOP_A_PASSWORD": a.password, "SHOP_B_PASSWORD": b.password}
