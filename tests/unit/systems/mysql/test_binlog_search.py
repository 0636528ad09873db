"""Whether a stored place holds, is found on another server, or is lost."""

from types import SimpleNamespace

import pytest

from setl.errors import PositionLostError
from setl.model.position import BinlogOrigin, BinlogPosition
from setl.systems.mysql.binlog.search import BinlogSearch
from setl.systems.mysql.binlog.server import PositionReport
from setl.systems.mysql.binlog.stream import StreamLimits
from tests.unit.select.fakes import ManualClock

UUID, OTHER = "8a-1", "8a-2"
HERE = BinlogOrigin(UUID, 1, 1_700_000_000)
ELSEWHERE = BinlogOrigin(OTHER, 2, 1_700_000_500)
FOUND = BinlogPosition("binlog.000002", 700, "8a-1:1-5", ELSEWHERE)


class FakeServer:
    """Says what a test makes it say."""

    def __init__(self, report, missing=""):
        self.report = report
        self._missing = missing
        self.looked_for = []

    def examine(self, position):
        return self.report

    def missing(self, gtid):
        self.looked_for.append(gtid)
        return self._missing

    def lost(self, message, position):
        return PositionLostError(message, hint="hints", position=position)


class Search(BinlogSearch):
    """Has a file where a real one would ask the server for its first events."""

    def __init__(self, server, file=HERE):
        super().__init__(SimpleNamespace(host="db1"), StreamLimits(), server, ManualClock())  # pyright: ignore[reportArgumentType]
        self.origin = file

    def file(self, name, server):
        return self.origin._replace(server=server)

    def after(self, gtid):
        return FOUND


def position(origin: BinlogOrigin | None = HERE, gtid="8a-1:1-5"):
    return BinlogPosition("binlog.000007", 1234, gtid, origin)


GONE = "it keeps binlog.000001 to binlog.000002"

HOLDS = [
    (position(), PositionReport(UUID), HERE),
    (position(gtid=""), PositionReport(UUID), HERE),
    # The server got another id or was copied; the file is the same one.
    (position(), PositionReport(OTHER), HERE),
    # Stored before origins were kept: taken for what it is.
    (position(None), PositionReport(OTHER), ELSEWHERE),
    # At the very beginning of a file, of which nothing was read yet.
    (position(BinlogOrigin(UUID)), PositionReport(UUID), ELSEWHERE),
    (position(BinlogOrigin(UUID)), PositionReport(OTHER, proved=True), ELSEWHERE),
]


@pytest.mark.parametrize(("other_position", "report", "file"), HOLDS)
def test_a_position_that_holds(other_position, report, file):
    server = FakeServer(report)
    assert Search(server, file).resume(other_position) is other_position
    assert not server.looked_for


MOVED = [
    (position(), PositionReport(OTHER, absence=GONE), ELSEWHERE),
    # It exists there, and would be read on from.
    (position(), PositionReport(OTHER), ELSEWHERE),
    (position(), PositionReport(OTHER, proved=True), ELSEWHERE),
    (position(), PositionReport(OTHER, disagreement="no event begins there"), HERE),
    (position(BinlogOrigin(UUID)), PositionReport(OTHER), ELSEWHERE),
    (position(), PositionReport(OTHER), HERE._replace(created=HERE.created + 1)),
    (position(), PositionReport(OTHER), HERE._replace(writer=9)),
]


@pytest.mark.parametrize(("other_position", "report", "file"), MOVED)
def test_another_server_is_searched_by_gtids(other_position, report, file):
    server = FakeServer(report)
    assert Search(server, file).resume(other_position) is FOUND
    assert server.looked_for == ["8a-1:1-5"]


LOST = [
    (position(), PositionReport(UUID, absence=GONE), HERE, GONE),
    # The same server: GTIDs of its old binlog may have been given again.
    (
        position(),
        PositionReport(UUID),
        ELSEWHERE,
        "was begun by server 2 at 2023-11-14 22:21:40 UTC",
    ),
    (position(), PositionReport(UUID, disagreement="no event begins"), HERE, "no event begins"),
    (position(None), PositionReport(OTHER, absence=GONE), HERE, GONE),
    (position(None), PositionReport(OTHER, disagreement="GTID x"), HERE, "GTID x"),
    (
        position(gtid=""),
        PositionReport(OTHER),
        ELSEWHERE,
        "of server 8a-1, and server 8a-2 answers",
    ),
]


@pytest.mark.parametrize(("other_position", "report", "file", "says"), LOST)
def test_a_position_that_is_lost(other_position, report, file, says):
    server = FakeServer(report)
    with pytest.raises(PositionLostError, match=says):
        Search(server, file).resume(other_position)
    assert not server.looked_for


def test_gtids_that_the_other_server_lacks_are_named():
    server = FakeServer(PositionReport(OTHER), missing="8a-1:5")
    with pytest.raises(PositionLostError, match="which lacks GTIDs 8a-1:5") as raised:
        Search(server, ELSEWHERE).resume(position())
    assert "still catches up" in raised.value.hint
