from dataclasses import replace
from functools import partial

import pytest
from mysql_event_stream import MesConnectionError, MesError, MesErrorCode

from setl.errors import ConfigurationError, FatalError, LoginRefusedError, SetlError, TransientError
from setl.model.position import BinlogOrigin, BinlogPosition
from setl.systems.mysql.binlog import server as binlog_server
from setl.systems.mysql.binlog import session as binlog_session
from setl.systems.mysql.binlog import source as binlog_source
from setl.systems.mysql.binlog import unanswered
from setl.systems.mysql.binlog.errors import StreamRefusedError, is_lost, translate
from setl.systems.mysql.binlog.server import BinlogServer, PositionReport
from setl.systems.mysql.binlog.unanswered import refuse_unanswered
from setl.systems.mysql.connection import MysqlEndpoint
from tests.unit.select.fakes import ManualClock


class FakeConnection:
    """Answers statements from a dictionary; anything else is a failure of the test."""

    def __init__(self, answers):
        self.answers = answers
        self.asked = []
        self.found = []
        self.use_unicode = True
        self.version = "9.7.1"

    def cursor(self, _=None):
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

    def get_server_info(self):
        return self.version

    def close(self):
        pass


STATUS = ("mysql-bin.000007", 1234, "", "", "8a-1:1-5,\n8a-2:1-3")
FILES = [("mysql-bin.000006", 5000, "No"), ("mysql-bin.000007", 1234, "No")]


@pytest.fixture
def answering(monkeypatch):
    monkeypatch.setattr(unanswered, "_answered", {})

    def install(version, **answers):
        connection = FakeConnection(
            {
                "SELECT VERSION()": [(version,)],
                "SHOW PROCESSLIST": [],
                "SHOW BINARY LOGS": FILES,
                "SELECT @@server_uuid": [("8a-1",)],
                "SELECT @@GLOBAL.server_id": [(101,)],
                **answers,
            }
        )
        monkeypatch.setattr(binlog_server, "connect", lambda *_, **__: connection)
        return BinlogServer(MysqlEndpoint("db1", 3306, "u", "p")), connection

    return install


@pytest.mark.parametrize("version", ["8.4.2", "9.7.0-commercial", "8.2.0"])
def test_mysql_since_8_2_is_asked_by_the_new_name(answering, version):
    server, _ = answering(version, **{"SHOW BINARY LOG STATUS": [STATUS]})
    assert server.latest() == BinlogPosition(
        "mysql-bin.000007", 1234, "8a-1:1-5,8a-2:1-3", BinlogOrigin("8a-1")
    )


OWNED, MODE = "SELECT @@GLOBAL.gtid_owned", "SELECT @@GLOBAL.gtid_mode"


@pytest.mark.parametrize(
    ("owned", "mode", "known"),
    [("", "ON", True), ("8a-1:6#17", "ON", False), ("8a-1:6#17", "OFF", True)],
)
def test_the_gtids_of_the_end_are_known_while_nothing_is_committed(answering, owned, mode, known):
    answers = {"SHOW BINARY LOG STATUS": [STATUS], OWNED: [(owned,)], MODE: [(mode,)]}
    server, _ = answering("9.7.0", **answers)
    assert server.idle_end() == (server.latest() if known else None)


@pytest.mark.parametrize(
    ("line", "end"),
    [
        (("b.000001", 1322, "Yes"), 810),
        (("b.000001", 1322, "No"), 1322),
        (("b.000001", 1322), 1322),
    ],
)
def test_an_encrypted_file_ends_where_its_positions_end(answering, line, end):
    server, _ = answering("9.7.0", **{"SHOW BINARY LOGS": [line]})
    assert [file.size for file in server.files()] == [end]
    server.check(BinlogPosition("b.000001", end))
    with pytest.raises(SetlError, match=f"ends at {end}"):
        server.check(BinlogPosition("b.000001", end + 1))


@pytest.mark.parametrize("question", ["SHOW BINARY LOGS", "SHOW BINARY LOG STATUS"])
def test_nobody_asks_about_the_binlog_while_another_waits_for_the_answer(answering, question):
    """As where the disk is full: what waits there keeps its connection, and they would run out."""
    waits = (177, "setl", "n1:41032", None, "Query", 161, "starting", question)
    busy = (178, "app", "n1:41033", None, "Query", 900, "executing", "SELECT SLEEP(1000)")
    daemon = (5, "event_scheduler", "localhost", None, "Daemon", None, "", None)
    server, connection = answering("9.7.0", **{"SHOW PROCESSLIST": [daemon, busy, waits]})
    for ask in (server.files, server.latest, server.earliest):
        with pytest.raises(TransientError, match=r"connection 177, for 161 s.*disk is full"):
            ask()
    assert not [each for each in connection.asked if each.startswith("SHOW BINARY")]
    just_now = (*waits[:5], 1, *waits[6:])
    connection.answers["SHOW PROCESSLIST"] = [daemon, busy, just_now]
    assert [file.name for file in server.files()] == [name for name, *_ in FILES]


def commit(statement, state="waiting for handler commit", seconds=40):
    return (11, "app", "n1:41034", None, "Query", seconds, state, statement)


def watching(monkeypatch, wait):
    """What waits between two looks at the server's connections."""
    patched = partial(refuse_unanswered, wait=wait)
    monkeypatch.setattr(binlog_session, "refuse_unanswered", patched)


@pytest.mark.parametrize(
    ("statement", "state", "watched"),
    [
        ("INSERT INTO t SELECT 1", "waiting for handler commit", 5.0),
        ("INSERT INTO t SELECT 1", "Waiting for someone to free space", 5.0),
        ("commit", "Commit", 0.0),
    ],
)
def test_nobody_asks_about_the_binlog_while_a_commit_hangs(
    answering, monkeypatch, statement, state, watched
):
    """Else the first who asks leaves a connection behind that waits for ever."""
    waits = []
    watching(monkeypatch, waits.append)
    server, connection = answering("9.7.0", **{"SHOW PROCESSLIST": [commit(statement, state)]})
    with pytest.raises(TransientError, match=r"a commit waits there \(connection 11, for 40 s\)"):
        server.files()
    assert sum(waits) == pytest.approx(watched)
    assert not [each for each in connection.asked if each.startswith("SHOW BINARY")]


SEMI_SYNC = commit("UPDATE t", "Waiting for semi-sync ACK from replica")


def test_commits_that_wait_behind_one_of_a_semi_synchronous_replica_hold_no_mysql_up(answering):
    server, connection = answering("9.7.0", **{"SHOW PROCESSLIST": [SEMI_SYNC, commit("INSERT")]})
    assert server.files()
    connection.version = "10.11.14-MariaDB"
    unanswered._answered.clear()
    connection.answers["SHOW PROCESSLIST"] = [SEMI_SYNC, commit("COMMIT", "Commit")]
    with pytest.raises(TransientError, match="waits for a semi-synchronous replica that does not"):
        server.files()


def test_connections_are_not_listed_where_the_server_has_answered_just_now(answering, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(unanswered.time, "monotonic", lambda: now[0])
    server, connection = answering("9.7.0", **{"SHOW BINARY LOG STATUS": [STATUS]})

    def listed():
        connection.asked.clear()
        server.files()
        server.latest()
        return connection.asked.count("SHOW PROCESSLIST")

    assert listed() == 1
    now[0] += 4.9
    assert listed() == 0
    now[0] += 5
    assert listed() == 1
    # A server that did not answer is looked at first, however soon somebody asks.
    connection.answers["SHOW PROCESSLIST"] = [commit("COMMIT")]
    now[0] += 5
    for _ in range(2):
        with pytest.raises(TransientError, match="a commit waits"):
            server.files()


def test_a_commit_after_a_long_statement_holds_no_question_up(answering, monkeypatch):
    server, connection = answering("9.7.0", **{"SHOW PROCESSLIST": [commit("INSERT INTO t")]})
    waits = []

    def wait(seconds):
        waits.append(seconds)
        connection.answers["SHOW PROCESSLIST"] = [commit("INSERT INTO u")]

    watching(monkeypatch, wait)
    assert server.files()
    assert len(waits) == 1


def test_binlogs_whose_names_are_no_text(answering):
    server, connection = answering("9.7.0")
    execute = connection.execute

    def refused(statement, values=None):
        if statement == "SHOW BINARY LOGS":
            b"gr\xf6\xdfe.000001".decode()
        execute(statement, values)

    connection.execute = refused
    with pytest.raises(ConfigurationError, match=r"not UTF-8: b'gr.xf6.xdfe.000001'") as caught:
        server.files()
    assert "log_bin" in caught.value.hint


@pytest.mark.parametrize("version", ["8.0.36", "5.7.44-log"])
def test_older_mysql_is_asked_by_the_old_name(answering, version):
    server, _ = answering(version, **{"SHOW MASTER STATUS": [STATUS]})
    assert server.latest().offset == 1234


def test_mariadb_is_asked_by_the_old_name_and_for_the_gtids_of_the_position(answering):
    server, _ = answering(
        "10.11.6-MariaDB-log",
        **{
            "SHOW MASTER STATUS": [("b.000007", 1234, "", "")],
            "SELECT BINLOG_GTID_POS(%s, %s)": [("0-1-9",)],
        },
    )
    assert server.latest() == BinlogPosition("b.000007", 1234, "0-1-9", BinlogOrigin("101"))


MISSING = "SELECT GTID_SUBTRACT(%s, @@GLOBAL.gtid_executed)"
IN_A_MOMENT = "SELECT IF(@@GLOBAL.gtid_mode = 'OFF', 1, WAIT_FOR_EXECUTED_GTID_SET(%s, %s))"
HELD_BACK = "SHOW GLOBAL STATUS LIKE 'Rpl_semi_sync_%_wait_sessions'"


def lacking(gtids, held_back=0):
    """Answers of a server that has not executed some GTIDs, and will not in a moment."""
    sessions = [("Rpl_semi_sync_source_wait_sessions", str(held_back))]
    return {MISSING: [(gtids,)], IN_A_MOMENT: [(1,)], HELD_BACK: sessions}


@pytest.mark.parametrize("missing", ["", "8a-1:4-5,\n8a-2:1"])
def test_mysql_compares_gtids_itself(answering, missing):
    server, _ = answering("8.4.2", **lacking(missing))
    text = missing.replace("\n", "")
    assert server.missing("8a-1:1-5,8a-2:1") == text
    report = server.examine(BinlogPosition("mysql-bin.000006", 300, "8a-1:1-5,8a-2:1"))
    says = f"the server has not executed {text}" if text else ""
    assert report == PositionReport("8a-1", disagreement=says)


def test_what_a_commit_that_is_held_back_has_is_not_missing_yet(answering):
    server, _ = answering("8.4.2", **lacking("8a-1:5", held_back=2))
    with pytest.raises(TransientError, match=r"has not executed 8a-1:5\. Commits wait .*\(2\)"):
        server.missing("8a-1:1-5")


@pytest.mark.parametrize(
    ("there", "disagreement"),
    [
        ("0-1-5,1-1-2", ""),
        ("1-1-2,0-1-5", ""),
        ("0-1-6,1-1-2", "GTID 0-1-6,1-1-2 ends there, and not 0-1-5,1-1-2"),
        ("", "GTID nothing ends there, and not 0-1-5,1-1-2"),
        (None, "no event begins there"),
    ],
)
def test_mariadb_reports_the_gtids_of_the_position(answering, there, disagreement):
    server, _ = answering("10.11.6-MariaDB", **{"SELECT BINLOG_GTID_POS(%s, %s)": [(there,)]})
    report = server.examine(BinlogPosition("mysql-bin.000006", 300, "0-1-5,1-1-2"))
    assert report == PositionReport("101", disagreement=disagreement, proved=not disagreement)


def test_what_is_no_gtid_is_a_matter_of_configuration(answering):
    server, _ = answering("10.11-MariaDB", **{"SELECT @@GLOBAL.gtid_binlog_state": [("0-1-5",)]})
    with pytest.raises(ConfigurationError, match="not GTIDs of a MariaDB server"):
        server.missing("3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5")


def test_without_gtids_a_position_that_exists_may_be_right(answering):
    server, _ = answering("8.4.2")
    assert server.examine(BinlogPosition("mysql-bin.000006", 300)) == PositionReport("8a-1")
    gone = server.examine(BinlogPosition("mysql-bin.000006", 5001, "8a-1:1-5"))
    assert "ends at 5000" in gone.absence


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
    assert server.check(BinlogPosition("mysql-bin.000007", 1234)) == "8a-1"
    server.check(BinlogPosition("mysql-bin.000006", 4))


STREAM = MesErrorCode.STREAM
CASES = [
    (MesError("stream error: Failed to read binlog stream packet", STREAM), TransientError),
    (MesError("disconnected", MesErrorCode.DISCONNECTED), TransientError),
    (MesConnectionError("Failed to connect", MesErrorCode.CONNECT), TransientError),
    (MesConnectionError("Access denied", MesErrorCode.AUTH), LoginRefusedError),
    (MesError("MySQL server error 1227: Access denied", STREAM), ConfigurationError),
    (MesError("binlog_format must be ROW, got MIXED", MesErrorCode.VALIDATION), ConfigurationError),
    (MesError("Failed to query gtid_mode", MesErrorCode.VALIDATION), TransientError),
    (MesError("crc", MesErrorCode.CHECKSUM), FatalError),
    (MesError("Invalid MariaDB GTID format", MesErrorCode.INVALID_ARG), ConfigurationError),
    (MesError("MySQL server error 1236: Binary log is not open", STREAM), StreamRefusedError),
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
    ("text", "hint"),
    [
        ("Cannot replicate anonymous transaction when @@GLOBAL.GTID_MODE = ON", "ON_PERMISSIVE"),
        ("log event entry exceeded max_allowed_packet", "Fix at the source what it says"),
    ],
)
def test_a_refusal_names_the_way_on(text, hint):
    assert hint in translate(MesError(f"MySQL server error 1236: {text}", STREAM), 7).hint


def test_a_damaged_binlog_is_left_for_a_new_file():
    """Of a server whose disk was full: it counts where the old file ends, and is wrong."""
    error = MesError("CRC32 mismatch in an event of type 24", MesErrorCode.CHECKSUM)
    assert "FLUSH BINARY LOGS" in translate(error, 7).hint


@pytest.mark.parametrize(
    "error",
    [
        MesError("1236: Could not find first log file name in binary log index file", STREAM),
        MesError("error 1236: could not find next log; the first event 'binlog.000002'", STREAM),
        MesError("Client requested master to start replication from impossible position", STREAM),
        MesError("the master has purged required binary logs", STREAM),
        MesError("whatever", MesErrorCode.GTID_PURGED),
    ],
)
def test_a_lost_position_is_recognised(error):
    assert is_lost(error)


@pytest.mark.parametrize(("setting", "folds"), [(0, False), (1, True), (2, False)])
def test_what_a_stream_needs_is_asked_for_on_one_connection(monkeypatch, setting, folds):
    connections, streams = [], []

    def connect(*_, **__):
        answers = {
            "SELECT VERSION()": [("10.11.6-MariaDB-log",)],
            "SHOW PROCESSLIST": [],
            "SHOW BINARY LOGS": FILES,
            "SELECT @@GLOBAL.server_id": [(101,)],
            "SELECT @@lower_case_table_names": [(setting,)],
        }
        connections.append(FakeConnection(answers))
        return connections[-1]

    class Stream:
        def __init__(self, _endpoint, _server_id, start, **given):
            streams.append((start, given["folds_names"]))

        def open(self):
            pass

        def close(self):
            pass

    monkeypatch.setattr(binlog_server, "connect", connect)
    monkeypatch.setattr(binlog_source, "BinlogStream", Stream)
    source = binlog_source.MysqlBinlogSource(MysqlEndpoint("db1", 3306, "u", "p"), 7)
    position = BinlogPosition("mysql-bin.000007", 900)
    source.open(position)
    assert len(connections) == 1
    assert streams == [(replace(position, origin=BinlogOrigin("101")), folds)]


class PassedBy:
    """A stream of which nothing is read, though it goes on."""

    arriving, unanswered = 0, False

    def __init__(self, clock, offsets):
        self._clock, self._offsets = clock, iter(offsets)
        self.position = BinlogPosition("mysql-bin.000007", 900)

    def read(self, limit, timeout, absorbs):
        self._clock.time += 11.0
        self.position = replace(self.position, offset=next(self._offsets))
        return ()


def test_a_stream_whose_heartbeats_are_absorbed_is_no_silent_one(monkeypatch):
    clock, asked = ManualClock(), []
    source = binlog_source.MysqlBinlogSource(MysqlEndpoint("db1", 3306, "u", "p"), 7, clock=clock)
    monkeypatch.setattr(source, "_stream", PassedBy(clock, [910, 920, 920]))
    monkeypatch.setattr(source, "_look_ahead", asked.append)
    for _ in range(3):
        source.read(10, 5.0)
    assert [position.offset for position in asked] == [920]
