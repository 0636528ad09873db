"""Damaged events where a binlog is searched: each is told with its type and place."""

from types import SimpleNamespace

import pytest
from mysql_event_stream import PollResult

from setl.codec.binlog.transactions.prepared import Xid, everything
from setl.errors import FatalError
from setl.model.position import BinlogPosition
from setl.systems.mysql.binlog import search, statements_ahead
from setl.systems.mysql.binlog.earlier_prepares import EarlierPrepares
from setl.systems.mysql.binlog.search import BinlogSearch
from setl.systems.mysql.binlog.shared_log import SharedLog
from setl.systems.mysql.binlog.stream import StreamLimits
from setl.systems.mysql.binlog.truncated_files import TruncatedFiles
from tests.unit.codec.binlog_events import START, EventWriter
from tests.unit.select.fakes import ManualClock

ENDPOINT = SimpleNamespace(host="db1", __str__=lambda _: "db1")
FILE, OTHER = START.file, "binlog.000008"
END = BinlogPosition(OTHER, 4)
FAR = BinlogPosition(FILE, 1 << 20)
XID = Xid(1, b"a", b"")
NOWHERE = b"\0" * 7 + b"\x80a"  # an offset that no file has


class Client:
    """Sends some events once."""

    def __init__(self, events):
        self.events = [
            PollResult(event, is_heartbeat=False, checksum_enabled=True) for event in events
        ]
        self.sent_to = 0

    def connect(self):
        pass

    def start(self):
        pass

    def close(self):
        pass

    def poll_batch(self):
        assert self.events, "read beyond the damage"
        batch, self.events = self.events, []
        return batch


class Server:
    """Has two files; its end is behind all that is read."""

    def __init__(self, _endpoint=None):
        pass

    def files(self):
        return [SimpleNamespace(name=FILE), SimpleNamespace(name=OTHER)]

    def identity(self):
        return "8a-1"

    def gtid_at(self, _position):
        return None

    def idle_end(self):
        return None

    def latest(self):
        return END

    def all_have_gtids(self):
        return True


def found(events, monkeypatch):
    """A search whose client sends these events."""
    monkeypatch.setattr(search, "open_client", lambda *_: Client(events))
    return BinlogSearch(ENDPOINT, StreamLimits(), Server(), ManualClock())  # pyright: ignore[reportArgumentType]


def prepares(events):
    open_client = lambda *_: Client(events)  # noqa: E731
    return EarlierPrepares(ENDPOINT, Server(), open_client, everything)  # pyright: ignore[reportArgumentType]


def with_gtids(events, monkeypatch):
    found(events, monkeypatch).with_gtids(FAR)


def end(events, monkeypatch):
    found(events, monkeypatch).end()


def earlier_prepare(events, _):
    prepares(events).mattered(XID, FAR, lambda: True)


def begun_by_start(events, _):
    files = TruncatedFiles(ENDPOINT, Server(), lambda *_: Client(events))  # pyright: ignore[reportArgumentType]
    files.after_cut(START)


def whole(events, _):
    start = [EventWriter(mariadb=True, file=OTHER).format_description(created=1)]
    clients = iter((start, events))
    files = TruncatedFiles(ENDPOINT, Server(), lambda *_: Client(next(clients)))  # pyright: ignore[reportArgumentType]
    files.is_whole(START, lambda: True)


def statement(events, monkeypatch):
    monkeypatch.setattr(statements_ahead, "open_client", lambda *_: Client(events))
    monkeypatch.setattr(statements_ahead, "BinlogServer", Server)
    statements_ahead.finds_statement(ENDPOINT, START, lambda *_: False, ManualClock(), 60.0)  # pyright: ignore[reportArgumentType]


def shared(events, _):
    log = SharedLog(START, 1 << 20)
    for event in events:
        log.read(event, checksum=True)


@pytest.mark.parametrize(
    ("read", "kind", "body"),
    [
        (with_gtids, 35, b"\1\0"),
        (with_gtids, 33, b"\1\2"),
        (with_gtids, 42, b"\2\xff\xff"),
        (end, 4, b"\4\0"),
        (end, 33, b"\1\2"),
        (earlier_prepare, 4, NOWHERE),
        (earlier_prepare, 19, b"\0" * 8 + b"\xfe" + b"\xff" * 8),
        (earlier_prepare, 19, b"\0" * 8),
        (earlier_prepare, 38, b"\0\1"),
        (earlier_prepare, 40, b"\1\1\x20\2\1\0\0"),
        (begun_by_start, 15, b"\4\0"),
        (whole, 2, b"\0" * 11 + b"\xff\xff"),
        (statement, 4, NOWHERE),
        (statement, 2, b"\0" * 11 + b"\xff\xff"),
        (statement, 165, b"\0" * 11 + b"\xff\xff"),
        (shared, 4, NOWHERE),
    ],
)
def test_a_damaged_event_is_reported_with_its_type_and_position(read, kind, body, monkeypatch):
    writer = EventWriter(mariadb=read is whole)
    opening = [writer.rotate(FILE, 4, artificial=True)]
    if read is whole:
        opening.append(writer.mariadb_gtid(1))
    with pytest.raises(FatalError, match=f"an event of type {kind} .* is damaged") as caught:
        read([*opening, writer.event(kind, body)], monkeypatch)
    assert "binlog.00000" in caught.value.where["position"]
