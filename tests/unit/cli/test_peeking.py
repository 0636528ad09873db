import json

import pytest

from setl.cli.streams import peeked
from setl.model.change import Op
from setl.model.position import KafkaPosition
from setl.model.schema import Column, Kind, RowSchema
from setl.model.typed import TypedChange
from setl.select.start_point import StartPoint
from setl.systems.seen_record import SeenRecord
from tests.unit.cli.cluster_in_memory import definition

RELAY = {"type": "kafka", "brokers": ["b1:9092"], "topic": "orders"}
SCHEMA = RowSchema("shop", "t", (Column("id", Kind.INTEGER),))


def seen(number):
    change = TypedChange(SCHEMA, Op.INSERT, None, (number,))
    return SeenRecord(KafkaPosition("orders", 0, number), "INSERT", 1.0, "shop", "t", change=change)


class Looked:
    """Stands for the servers; keeps what it was asked for."""

    def __init__(self):
        self.closed = False

    def __call__(self, subject, position, wanted, *, last, follow):
        self.asked = subject, position, wanted, last, follow
        return self.records(subject, position, follow=follow)

    def records(self, subject, position, *, follow):
        number = 0
        try:
            while follow or number < 5:
                yield seen(number)
                yield None
                number += 1
        finally:
            self.closed = True


@pytest.fixture
def looked(monkeypatch):
    looked = Looked()
    monkeypatch.setattr(peeked, "look", looked)
    return looked


def test_a_pipeline_of_the_cluster(shop, looked, capsys):
    assert shop.run("peek", "shop/ab", "-o", "json") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["after"]["id"] for line in lines] == [0, 1, 2, 3, 4]
    subject, position, wanted, last, follow = looked.asked
    assert (subject.config.host, position, last, follow) == ("db1", None, 10, False)
    assert (wanted.tables, wanted.everything, looked.closed) == ((), False, True)


def test_the_topic_of_a_relay(shop, looked, capsys):
    shop.put("relays", pipelines=["r"], target=RELAY)
    assert shop.run("peek", "relays/r", "--target") == 0
    assert looked.asked[0].config.topic == "orders"
    assert shop.run("peek", "shop/ab", "--target") == 2
    assert "writes no records" in capsys.readouterr().err
    assert shop.run("peek", "kafka://b1:9092/t", "--target") == 2


def test_what_is_not_known_is_wrong_usage(shop, looked, capsys):
    assert shop.run("peek", "nothing") == 2
    assert "there is no pipeline 'nothing'" in capsys.readouterr().err
    assert shop.run("peek", "shop/ab", "--from", "somewhere") == 2
    assert shop.run("peek", "shop/ab", "--from", "12") == 2  # an offset of Kafka
    assert shop.run("peek", "shop/ab", "--table", "a.b.c") == 2
    assert shop.run("peek", "shop/ab", "-n", "0") == 2


def test_a_count_ends_it_and_closes_the_source(shop, looked, capsys):
    arguments = ("peek", "shop/ab", "--from", "latest", "-n", "7", "-o", "json", "--follow")
    assert shop.run(*arguments) == 0
    assert len(capsys.readouterr().out.splitlines()) == 7
    assert looked.closed
    assert looked.asked[1] == StartPoint("latest")


def test_a_timeout_ends_it(shop, looked, capsys):
    assert shop.run("peek", "shop/ab", "--follow", "--timeout", "0") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert looked.closed


def test_behind_the_last_ones_it_goes_on(shop, looked, monkeypatch, capsys):
    """`-n` then says how many of the last come first, as with `tail`."""
    monkeypatch.setattr(looked, "records", lambda *_, **__: (seen(n) for n in range(8)))
    assert shop.run("peek", "kafka://b1:9092/t", "-n", "3", "-f", "-o", "json") == 0
    assert looked.asked[3:] == (3, True)
    assert len(capsys.readouterr().out.splitlines()) == 8


def test_a_table_needs_no_schema(shop, looked):
    assert shop.run("peek", "shop/ab", "--table", "t", "--table", "retl.retl_*", "--all") == 0
    wanted = looked.asked[2]
    first, second = wanted.tables
    assert first.match("any", "t") is not None
    assert second.match("retl", "retl_mark") is not None
    assert wanted.everything


def test_a_terminal_gets_colours(shop, looked, capsys, monkeypatch):
    from rich.console import Console

    monkeypatch.setattr(peeked.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(
        peeked, "console", lambda: Console(force_terminal=True, color_system="standard", width=20)
    )
    assert shop.run("peek", "shop/ab") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "\x1b[1m" in lines[0]
    assert len(lines) == 10  # none is wrapped


def test_a_file_with_one_pipeline(shop, looked, tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text(json.dumps(definition("other", ["p"])), encoding="utf-8")
    assert shop.run("peek", str(file)) == 0
    assert shop.run("peek", f"{file}:p") == 0
    assert looked.asked[0].config.host == "db1"
