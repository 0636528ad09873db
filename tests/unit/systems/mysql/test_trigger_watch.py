"""Which triggers of its target stop a pipeline that runs, and when it looks."""

from contextlib import contextmanager

import pytest

from setl.channel.reading import parse_channel
from setl.channel.routes.routing import Router
from setl.errors import ConfigurationError
from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.preflight import trigger_watch
from setl.systems.mysql.preflight.trigger_watch import TriggerWatch
from tests.clocks import SetClock


class Target:
    """A server with one trigger on s.items, which runs `body`."""

    account = "'retl'@'%'"

    def __init__(self):
        self.body = ""
        self.looks = 0

    @contextmanager
    def opened(self, _endpoint):
        self.looks += 1
        yield self

    def rows(self, sql, args=()):
        if "TRIGGERS" in sql and args == ("s",) and self.body:
            return [("t", "items", "AFTER", self.body, "")]
        return []


@pytest.fixture
def target(monkeypatch):
    target = Target()
    monkeypatch.setattr(trigger_watch, "Server", target)
    return target


def routes(*tables):
    end = {"type": "mysql", "host": "h", "user": "u", "password": "p"}
    pipeline = {"name": "p", "source": end, "target": {**end, "host": "i"}, "tables": list(tables)}
    return Router(parse_channel({"channel": "c", "pipelines": [pipeline]}).pipelines[0])


MAPPED = (
    {"from": "s.items"},
    {"from": "x.notes", "to": "s.renamed"},
    {"from": "y.log_*", "to": "s.kept_*"},
    {"from": "s.a_*"},
)


def watch(clock, *, back=None, accept=()):
    return TriggerWatch(MysqlEndpoint("h", 1, "u", "p"), routes(*MAPPED), back, accept, clock)


@pytest.mark.parametrize(
    ("written", "refused"),
    [
        ("S.Renamed", True),  # under the name that the channel file gives it
        ("a_1", True),  # keeps its name
        ("kept_1", True),  # has brought rows before
        ("kept_2", False),  # nobody knows of it yet
        ("notes", False),
        ("retl.own", False),
    ],
)
def test_tables_that_the_pipeline_writes(target, written, refused):
    looks = watch(SetClock())
    looks.refuse([("s", "kept_1")])
    target.body = f"INSERT INTO {written} VALUES (NEW.id)"
    if not refused:
        looks.refuse([("s", "items")])
        return
    with pytest.raises(ConfigurationError) as raised:
        looks.refuse([("s", "items")])
    assert raised.value.where["table"] == "s.items"
    assert "trigger-writes-mapped@s.items under `accept`" in raised.value.hint


def test_tables_that_only_the_way_back_reads(target):
    target.body = "INSERT INTO other VALUES (NEW.id)"
    watch(SetClock()).refuse([("s", "items")])
    with pytest.raises(ConfigurationError, match="differ for good"):
        watch(SetClock(), back=routes({"from": "s.other"})).refuse([("s", "items")])


def test_what_is_accepted_goes_on(target):
    target.body = "INSERT INTO a_1 VALUES (NEW.id)"
    watch(SetClock(), accept=["trigger-writes-mapped@s.items"]).refuse([("s", "items")])


def test_it_looks_once_a_minute_until_it_has_found_one(target):
    clock = SetClock()
    looks = watch(clock)
    looks.refuse([("s", "items")])
    target.body = "INSERT INTO a_1 VALUES (NEW.id)"
    looks.refuse([("s", "items")])
    assert target.looks == 1
    clock.time += 60.0
    for _ in range(2):  # a batch that is tried again is not written either
        with pytest.raises(ConfigurationError):
            looks.refuse([("s", "items")])
    assert target.looks == 3
