"""The tables that drills write to, and the channels that keep them in step.

Every row says which site wrote it, so that an audit can tell what came back to where it was
written. Each drill has a schema of its own, the same on both sites.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from setl.model.position import BinlogPosition
from setl_embedded import DatabaseServer

ACCOUNTS = 20
"""Accounts of each site."""
BALANCE = 1_000
"""What each of them begins with."""
FIRST_ID = {"a": 1, "b": 1_000_000_000}
"""Each site keeps to ids of its own: rows that both write need a conflict policy."""

TABLES = ("entries", "accounts", "items", "bulk")
RELAY = "relay"
"""The pipeline of a relay's channel."""
SEARCHED = ("entries", "accounts", "items")
"""Tables that the search index follows too."""

_CREATE = (
    "CREATE DATABASE `{schema}` CHARACTER SET utf8mb4",
    # Inserted once, never changed: what was acknowledged is there, and nothing else.
    """CREATE TABLE `{schema}`.entries (
        id BIGINT PRIMARY KEY, site CHAR(1) NOT NULL, seq BIGINT NOT NULL,
        note VARCHAR(60) NULL)""",
    # Transfers between accounts: the sum never changes.
    """CREATE TABLE `{schema}`.accounts (
        id BIGINT PRIMARY KEY, site CHAR(1) NOT NULL, balance BIGINT NOT NULL)""",
    # Updates, deletes, key changes, unique values that move between rows.
    """CREATE TABLE `{schema}`.items (
        id BIGINT PRIMARY KEY, site CHAR(1) NOT NULL, code VARCHAR(40) NOT NULL,
        quantity INT NOT NULL, note TEXT NULL, UNIQUE KEY code (code))""",
    # Large transactions.
    """CREATE TABLE `{schema}`.bulk (
        id BIGINT PRIMARY KEY, site CHAR(1) NOT NULL, part INT NOT NULL,
        filling VARCHAR(60) NOT NULL)""",
)


def create_tables(server: DatabaseServer, schema: str) -> None:
    """Create the tables of one drill on one site."""
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in _CREATE:
            cursor.execute(statement.format(schema=schema))


def drop_tables(server: DatabaseServer, schema: str) -> None:
    """Remove the tables of one drill."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS `{schema}`")


def _mysql(site: str) -> dict[str, Any]:
    # Each node reaches each site over a link of its own, so the port is the node's to know.
    return {
        "type": "mysql",
        "host": "127.0.0.1",
        "port": f"${{DRILL_{site.upper()}_PORT}}",
        "user": "setl",
        "password": f"${{DRILL_{site.upper()}_PASSWORD}}",
    }


def binlog_of(site: str, begin: BinlogPosition) -> dict[str, Any]:
    """A source: what a site writes, from one place of its binlog on."""
    # Not "latest", which would be a moment after the users have begun to write.
    return {**_mysql(site), "start": {"file": begin.file, "offset": begin.offset}}


def topic_of(brokers: str, topic: str) -> dict[str, Any]:
    """A topic, in the form that a source and a target share.

    Brokers say themselves where they are, so there is no link to them that could be cut.
    """
    return {"type": "kafka", "brokers": [brokers], "topic": topic}


def whole_topic(brokers: str, topic: str) -> dict[str, Any]:
    """A source: all that is in a topic."""
    # The embedded broker names each transaction that was given up to every reader, also to those
    # that are past its end, and a client then drops what the same producer wrote since. Brokers
    # of Kafka do not. What a relay repeats after one is dropped by its position.
    every_record = {"isolation.level": "read_uncommitted"}
    return {**topic_of(brokers, topic), "start": "earliest", "kafka": every_record}


def relay(
    channel: str, schema: str, source: Mapping[str, Any], target: Mapping[str, Any]
) -> dict[str, Any]:
    """A channel whose pipeline ``relay`` writes to a topic what a site writes."""
    tables = [{"from": f"{schema}.{table}"} for table in TABLES]
    pipeline = {"name": RELAY, "source": source, "target": target, "tables": tables}
    return {"channel": channel, "pipelines": [pipeline]}


def two_way(
    channel: str, schema: str, sources: Mapping[str, Any], fence_timeout: float
) -> dict[str, Any]:
    """A channel that keeps both sites in step: pipelines ``ab`` and ``ba``.

    Args:
        channel: its name.
        schema: of the tables.
        sources: by site, where what it writes is read.
        fence_timeout: seconds that an open transaction may hold a take-over up.
    """
    tables = [{"from": f"{schema}.{table}"} for table in TABLES]
    return {
        "channel": channel,
        "pipelines": [
            {
                "name": f"{source}{target}",
                "source": sources[source],
                "target": {**_mysql(target), "fence_timeout": fence_timeout},
                "tables": tables,
            }
            for source, target in (("a", "b"), ("b", "a"))
        ],
    }


def to_search(channel: str, schema: str, source: Mapping[str, Any]) -> dict[str, Any]:
    """A channel whose pipeline ``as`` keeps a search index in step with site A."""
    tables = [{"from": f"{schema}.{table}", "to": index_name(schema, table)} for table in SEARCHED]
    return {
        "channel": channel,
        "pipelines": [
            {
                "name": "as",
                "source": source,
                "target": {"type": "elasticsearch", "hosts": ["http://127.0.0.1:${DRILL_S_PORT}"]},
                "tables": tables,
            }
        ],
    }


def first_load(channel: str, schema: str) -> dict[str, Any]:
    """A channel whose pipeline ``load`` brings tables with rows from site A to site B."""
    return {
        "channel": channel,
        "pipelines": [
            {
                "name": "load",
                "source": {**_mysql("a"), "start": {"load": True}},
                "target": _mysql("b"),
                "tables": [{"from": f"{schema}.*"}],
                # So slow that leaders die in the middle of it.
                "load_limits": {"rows_per_second": 2000},
            }
        ],
    }


def from_kafka(channel: str, schema: str, brokers: str, topic: str) -> dict[str, Any]:
    """A channel whose pipeline ``kb`` applies a DTS subscription to site B."""
    return {
        "channel": channel,
        "pipelines": [
            {
                "name": "kb",
                "source": whole_topic(brokers, topic),
                "target": _mysql("b"),
                "tables": [{"from": f"{schema}.entries"}],
            }
        ],
    }


def index_name(schema: str, table: str) -> str:
    """The index that holds one table."""
    return f"{schema}-{table}"
