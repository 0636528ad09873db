import pytest
from mysql_event_stream import MesConnectionError, MesError, MesErrorCode

from setl.errors import ConfigurationError, FatalError, SetlError, TransientError
from setl.model.position import BinlogPosition
from setl.mysql.connection import MysqlEndpoint
from setl.select import binlog_server
from setl.select.binlog_errors import is_lost, translate
from setl.select.binlog_server import BinlogServer, Progress, mariadb_progress


@pytest.mark.parametrize(
    ("executed", "gtid", "progress"),
    [
        ("0-1-5", "0-1-5", Progress.THERE),
        ("0-2-5", "0-1-5", Progress.THERE),  # the newest of a domain counts, whoever wrote it
        ("0-1-6", "0-1-5", Progress.BEYOND),
        ("0-1-5,1-1-1", "0-1-5", Progress.BEYOND),
        ("0-1-4", "0-1-5", Progress.BEHIND),
        ("0-1-9", "0-1-5, 1-1-1", Progress.BEHIND),
        ("", "0-1-5", Progress.BEHIND),
        ("0-1-5", "", Progress.BEYOND),
    ],
)
def test_progress_of_mariadb(executed, gtid, progress):
    assert mariadb_progress(executed, gtid) is progress


@pytest.mark.parametrize("text", ["3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5", "0-1", "a-b-c"])
def test_what_is_no_gtid_of_mariadb(text):
    with pytest.raises(ConfigurationError, match="not GTIDs of a MariaDB server"):
        mariadb_progress("0-1-5", text)


class FakeConnection:
    """Answers statements from a dictionary; anything else is a failure of the test."""

    def __init__(self, answers):
        self.answers = answers
        self.asked = []
        self.found = []

    def cursor(self):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def execute(self, statement, values=None):
        self.asked.append(statement)
        self.found = self.answers[statement]

    def fetchall(self):
        return self.found

    def close(self):
        pass


STATUS = ("mysql-bin.000007", 1234, "", "", "8a-1:1-5,\n8a-2:1-3")
FILES = [("mysql-bin.000006", 5000, "No"), ("mysql-bin.000007", 1234, "No")]


@pytest.fixture
def answering(monkeypatch):
    def install(version, **answers):
        connection = FakeConnection(
            {"SELECT VERSION()": [(version,)], "SHOW BINARY LOGS": FILES, **answers}
        )
        monkeypatch.setattr(binlog_server, "connect", lambda *_, **__: connection)
        return BinlogServer(MysqlEndpoint("db1", 3306, "u", "p")), connection

    return install


@pytest.mark.parametrize("version", ["8.4.2", "9.7.0-commercial", "8.2.0"])
def test_mysql_since_8_2_is_asked_by_the_new_name(answering, version):
    server, _ = answering(version, **{"SHOW BINARY LOG STATUS": [STATUS]})
    assert server.latest() == BinlogPosition("mysql-bin.000007", 1234, "8a-1:1-5,8a-2:1-3")


@pytest.mark.parametrize("version", ["8.0.36", "5.7.44-log"])
def test_older_mysql_is_asked_by_the_old_name(answering, version):
    server, _ = answering(version, **{"SHOW MASTER STATUS": [STATUS]})
    assert server.latest().offset == 1234


def test_mariadb_is_asked_by_the_old_name_and_for_the_gtids_of_the_place(answering):
    server, _ = answering(
        "10.11.6-MariaDB-log",
        **{
            "SHOW MASTER STATUS": [("b.000007", 1234, "", "")],
            "SELECT BINLOG_GTID_POS(%s, %s)": [("0-1-9",)],
        },
    )
    assert server.latest() == BinlogPosition("b.000007", 1234, "0-1-9")


@pytest.mark.parametrize(
    ("answer", "progress"),
    [((0, 1), Progress.BEHIND), ((1, 1), Progress.THERE), ((1, 0), Progress.BEYOND)],
)
def test_mysql_compares_gtids_itself(answering, answer, progress):
    statement = (
        "SELECT GTID_SUBSET(%s, @@GLOBAL.gtid_executed), GTID_SUBSET(@@GLOBAL.gtid_executed, %s)"
    )
    server, _ = answering("8.4.2", **{statement: [answer]})
    assert server.progress("8a-1:1-5") is progress


def test_a_server_without_binlog(answering):
    server, _ = answering("8.4.2", **{"SHOW BINARY LOG STATUS": [], "SHOW BINARY LOGS": []})
    for ask in (server.latest, server.files, server.earliest):
        with pytest.raises(ConfigurationError, match="writes no binlog"):
            ask()


@pytest.mark.parametrize(
    ("position", "says"),
    [
        (BinlogPosition("mysql-bin.000005", 4), "was purged; it keeps mysql-bin.000006 to"),
        (BinlogPosition("mysql-bin.000008", 4), "were reset, or this is another server"),
        (BinlogPosition("binlog.000006", 4), "another name"),
        (BinlogPosition("nonsense", 4), "not the name of a binlog"),
        (BinlogPosition("mysql-bin.000006", 5001), "ends at 5000"),
    ],
)
def test_why_a_position_is_gone(answering, position, says):
    server, _ = answering("8.4.2")
    with pytest.raises(SetlError, match=says):
        server.check(position)


def test_a_position_at_the_very_end_is_there(answering):
    server, _ = answering("8.4.2")
    server.check(BinlogPosition("mysql-bin.000007", 1234))
    server.check(BinlogPosition("mysql-bin.000006", 4))


STREAM = MesErrorCode.STREAM
CASES = [
    (MesError("stream error: Failed to read binlog stream packet", STREAM), TransientError),
    (MesError("disconnected", MesErrorCode.DISCONNECTED), TransientError),
    (MesConnectionError("Failed to connect", MesErrorCode.CONNECT), TransientError),
    (MesConnectionError("Access denied", MesErrorCode.AUTH), ConfigurationError),
    (MesError("MySQL server error 1227: Access denied", STREAM), ConfigurationError),
    (MesError("binlog_format must be ROW, got MIXED", MesErrorCode.VALIDATION), ConfigurationError),
    (MesError("Failed to query gtid_mode", MesErrorCode.VALIDATION), TransientError),
    (MesError("crc", MesErrorCode.CHECKSUM), FatalError),
    (MesError("Invalid MariaDB GTID format", MesErrorCode.INVALID_ARG), ConfigurationError),
    (MesError("MySQL server error 1236: Binary log is not open", STREAM), FatalError),
    (
        MesError(
            "MySQL server error 1236: A replica with the same server_uuid/server_id as this "
            "replica has connected to the source",
            STREAM,
        ),
        FatalError,
    ),
]


@pytest.mark.parametrize(("error", "kind"), CASES)
def test_the_kind_of_an_error(error, kind):
    assert type(translate(error, 7)) is kind
    assert not is_lost(error)


@pytest.mark.parametrize(
    "error",
    [
        MesError("1236: Could not find first log file name in binary log index file", STREAM),
        MesError("Client requested master to start replication from impossible position", STREAM),
        MesError("the master has purged required binary logs", STREAM),
        MesError("whatever", MesErrorCode.GTID_PURGED),
    ],
)
def test_a_lost_position_is_recognised(error):
    assert is_lost(error)
