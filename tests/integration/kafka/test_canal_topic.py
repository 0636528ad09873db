"""What Canal wrote to a topic, in MySQL: as its source had it."""

from setl.channel.routes.routing import Router
from tests.integration.kafka.record_topics import channel, send
from tests.integration.pipelines import execute, fresh_name, install_system_tables, mysql
from tests.unit.formats.canal.records import canal


def test_flat_messages_of_canal(kafka, site_b, position):
    topic = target = fresh_name("canal")
    install_system_tables(site_b)
    execute(
        site_b,
        f"CREATE DATABASE {target} CHARACTER SET utf8mb4",
        f"CREATE TABLE {target}.orders (id INT PRIMARY KEY, b BLOB, e ENUM('x','y'), at TIMESTAMP)",
    )
    types = {"id": "int(11)", "b": "blob", "e": "enum('x','y')", "at": "timestamp"}
    rows = [{"id": str(n), "b": "\xff", "e": "2", "at": "2026-01-02 11:00:00"} for n in range(3)]
    send(
        kafka.brokers,
        topic,
        (None, canal("INSERT", rows, types=types)),
        (None, canal("UPDATE", [{**rows[1], "id": "7"}], [{"id": "1"}], types=types)),
        (None, canal("DELETE", rows[2:], types=types)),
    )
    file = channel(
        kafka, topic, mysql(site_b), [{"from": "shop.orders", "to": f"{target}.orders"}],
        "canal", time_zone="+08:00",
    )  # fmt: skip
    assert Router(file.pipelines[0]).route("shop", "orders")
    position.lead(file).applied(5)
    found = execute(
        site_b,
        "SET time_zone = '+00:00'",
        f"SELECT id, b, e, CAST(at AS CHAR) FROM {target}.orders ORDER BY id",
    )
    assert found == (
        (0, b"\xff", "y", "2026-01-02 03:00:00"),
        (7, b"\xff", "y", "2026-01-02 03:00:00"),
    )
    execute(site_b, f"DROP DATABASE {target}")
