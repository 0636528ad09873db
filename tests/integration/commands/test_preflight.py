"""Preflight checks against real servers: each fault is found, named, and its fix removes it.

The MariaDB servers are this module's own, since the tests change global settings and drop
system tables.
"""

import os
import re
import uuid
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from elasticsearch import Elasticsearch
from kafka import KafkaProducer

from setl.channel.reading import parse_channel, read_channel_file
from setl.cli.main import run
from setl.errors import ConfigurationError
from setl.operate.check import check_channel as check_everything
from setl.systems.mysql.sql_files import resource_statements, system_table_statements
from setl.systems.search_index.deadletters import DEAD_LETTERS
from setl_embedded import MariaDb
from tests.checking import check_channel
from tests.mysql_servers import logs_no_generated, mariadb_version, needs_mariadb
from tests.unit.codec.dts_records import record
from tests.waiting import eventually

PASSWORD = "the password of the account"
NOT_LOGGED = "generated-columns"

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def servers(another_server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("preflight")
    with (
        another_server(folder / "a", "preflight-a", server_id=111) as a,
        another_server(folder / "b", "preflight-b", server_id=112) as b,
    ):
        yield {"source": a, "target": b}


class Scene:
    """Two sites with one table each, and an account that may do what the templates say."""

    def __init__(self, servers):
        self.servers = servers
        name = uuid.uuid4().hex[:8]
        self.schema, self.account = f"s_{name}", f"u_{name}"

    def run(self, end, *statements):
        with self.servers[end].connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(
                    statement.replace("SCHEMA", self.schema).replace("ACCOUNT", self.user)
                )

    @property
    def mariadb(self):
        return isinstance(self.servers["source"], MariaDb)

    @property
    def version(self):
        """The source's version as numbers if it is a MariaDB, else None."""
        with self.servers["source"].connect() as connection:
            return mariadb_version(connection)

    @property
    def user(self):
        return f"'{self.account}'@'%'"

    @property
    def touched(self):
        """Whether a test has left anything but the one table behind."""
        question = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s"
        for server in self.servers.values():
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute(question, (self.schema,))
                if cursor.fetchone() != (1,):
                    return True
        return False

    def build(self):
        for end in self.servers:
            self.run(end, *system_table_statements())
            self.run(end, "CREATE DATABASE SCHEMA")
            self.run(
                end,
                "CREATE TABLE SCHEMA.orders (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,"
                " user_name VARCHAR(40) NOT NULL, note TEXT, state ENUM('new', 'paid') NOT NULL,"
                " price DECIMAL(12, 2), placed DATETIME(3), total DECIMAL(14, 2) AS (price * 2))",
                f"CREATE USER ACCOUNT IDENTIFIED BY '{PASSWORD}'",
            )
            for statement in resource_statements(f"grants-{end}.sql"):
                filled = statement.replace("{user}", "ACCOUNT").replace("{schema}", "SCHEMA")
                self.run(end, filled)
        return self

    def drop(self):
        for end in self.servers:
            self.run(end, "DROP DATABASE IF EXISTS SCHEMA", "DROP USER IF EXISTS ACCOUNT")

    def end(self, end, **changes):
        server = self.servers[end]
        return {
            "type": "mysql", "host": server.host, "port": server.port,
            "user": self.account, "password": PASSWORD, **changes,
        }  # fmt: skip

    def channel(self, tables=None, source=None, target=None, **pipeline):
        return parse_channel({
            "channel": "shop",
            "pipelines": [{
                "name": "p",
                "source": source or self.end("source"),
                "target": target or self.end("target"),
                "tables": tables or [{"from": f"{self.schema}.orders"}],
                **pipeline,
            }],
        })  # fmt: skip

    def faults(self, *args, **kwargs):
        """What is not right, but for columns that a MariaDB 11.8 does not log."""
        findings = check_channel(self.channel(*args, **kwargs))
        assert PASSWORD not in str(findings)
        return [f for f in findings if f.level != "ok" and f.code != NOT_LOGGED]

    def hint(self, end, finding):
        assert finding.statements
        self.run(end, *finding.statements)


@pytest.fixture(scope="module")
def made_scene(servers):
    scene = Scene(servers).build()
    yield scene
    scene.drop()


@pytest.fixture
def scene(made_scene):
    yield made_scene
    if made_scene.touched or made_scene.faults():
        made_scene.drop()
        made_scene.build()


@contextmanager
def setting(scene, end, name, value):
    """A global variable of a server for the time of a block."""
    with scene.servers[end].connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT @@GLOBAL.{name}")
        (before,) = cursor.fetchone()
        cursor.execute(f"SET GLOBAL {name} = {value}")
        try:
            yield
        finally:
            cursor.execute(f"SET GLOBAL {name} = %s", (before,))


def only(faults):
    (fault,) = faults
    return fault


def test_a_server_with_everything_right(scene):
    findings = check_channel(scene.channel())
    a, b = scene.servers["source"], scene.servers["target"]
    source, target = f"p, source 127.0.0.1:{a.port}", f"p, target 127.0.0.1:{b.port}"
    version = findings[0].what
    assert version.startswith(("MariaDB 1", "MySQL 9"))
    assert [(f.level, f.where, f.what) for f in findings] == [
        ("ok", source, version),
        ("ok", source, "the binlog is as it must be, and the account may read it"),
        ("ok", source, "the system tables are there: retl.retl_mark, retl.retl_buffer, retl.xdual"),
        ("ok", source, "1 mapped table is as it must be"),
        ("ok", target, version),
        (
            "ok",
            target,
            (
                "the system tables are there: retl.retl_mark, retl.setl_fence, retl.setl_writer,"
                " retl.setl_loaded, retl.setl_checkpoint"
            ),
        ),
        ("ok", target, "1 target table takes the rows"),
    ]


@pytest.mark.parametrize(
    ("end", "revoke", "what", "hint"),
    [
        ("source", "REPLICATION SLAVE ON *.*",
         "lacks REPLICATION SLAVE, so it may not read the binlog",
         "GRANT REPLICATION SLAVE ON *.* TO ACCOUNT;"),
        ("source", "REPLICATION CLIENT ON *.*",
         "lacks REPLICATION CLIENT, so it may not ask where the binlog ends",
         "GRANT REPLICATION CLIENT ON *.* TO ACCOUNT;"),
        ("source", "SELECT ON `SCHEMA`.*",
         "lacks SELECT on SCHEMA.orders", "GRANT SELECT ON `SCHEMA`.* TO ACCOUNT;"),
        ("source", "SELECT ON retl.*",
         "lacks SELECT on retl.retl_mark, retl.retl_buffer, retl.xdual",
         "GRANT SELECT ON retl.* TO ACCOUNT;"),
        ("source", "UPDATE ON retl.xdual",
         "lacks UPDATE on retl.xdual", "GRANT UPDATE ON retl.xdual TO ACCOUNT;"),
        ("source", "INSERT, UPDATE ON retl.xdual",
         "lacks INSERT, UPDATE on retl.xdual", "GRANT INSERT, UPDATE ON retl.xdual TO ACCOUNT;"),
        ("target", "INSERT, DELETE ON `SCHEMA`.*",
         "lacks INSERT, DELETE on SCHEMA.orders", "GRANT INSERT, DELETE ON `SCHEMA`.* TO ACCOUNT;"),
        ("target", "UPDATE ON `SCHEMA`.*",
         "lacks UPDATE on SCHEMA.orders", "GRANT UPDATE ON `SCHEMA`.* TO ACCOUNT;"),
        ("target", "SELECT ON `SCHEMA`.*",
         "lacks SELECT on SCHEMA.orders", "GRANT SELECT ON `SCHEMA`.* TO ACCOUNT;"),
        ("target", "DELETE ON retl.*",
         ("lacks DELETE on retl.retl_mark, retl.setl_fence, retl.setl_writer, retl.setl_loaded,"
          " retl.setl_checkpoint"),
         "GRANT DELETE ON retl.* TO ACCOUNT;"),
    ],
)  # fmt: skip
def test_a_missing_privilege(scene, end, revoke, what, hint):
    scene.run(end, f"REVOKE {revoke} FROM ACCOUNT")
    fault = [f for f in scene.faults() if f.level == "error"]
    if revoke == "SELECT ON retl.*":
        # Tables that the account may not see at all may as well be missing.
        (hidden,) = [f for f in fault if "hidden" in f.what] or [None]
        fault = [f for f in fault if f is not hidden]
    expected = what.replace("SCHEMA", scene.schema)
    assert only(fault).what == f"the account {scene.user} {expected}"
    hint = hint.replace("SCHEMA", scene.schema).replace("ACCOUNT", scene.user)
    assert only(fault).hint == (hint,)
    scene.hint(end, only(fault))
    assert scene.faults() == []


def test_an_account_with_nothing_is_reported_everything_at_once(scene):
    for end in scene.servers:
        scene.run(end, "DROP USER ACCOUNT", f"CREATE USER ACCOUNT IDENTIFIED BY '{PASSWORD}'")
    for fault in scene.faults():
        scene.hint("source" if ", source " in fault.where else "target", fault)
    assert scene.faults() == []


def test_what_is_lacking_at_both_ends_is_reported_at_once(scene):
    scene.run("source", f"REVOKE SELECT ON `{scene.schema}`.* FROM ACCOUNT")
    scene.run("target", f"REVOKE UPDATE ON `{scene.schema}`.* FROM ACCOUNT")
    assert [fault.what for fault in scene.faults()] == [
        f"the account {scene.user} lacks {privilege} on {scene.schema}.orders"
        for privilege in ("SELECT", "UPDATE")
    ]


def test_privileges_that_come_from_a_role(scene):
    role = f"r_{scene.schema}"
    scene.run(
        "source",
        "REVOKE REPLICATION SLAVE ON *.* FROM ACCOUNT",
        f"CREATE ROLE {role}",
        f"GRANT REPLICATION SLAVE ON *.* TO {role}",
        f"GRANT {role} TO ACCOUNT",
        f"SET DEFAULT ROLE {role} {'FOR' if scene.mariadb else 'TO'} ACCOUNT",
    )
    assert scene.faults() == []
    scene.run("source", f"DROP ROLE {role}")
    assert "REPLICATION SLAVE" in only(scene.faults()).what


@pytest.mark.parametrize(
    ("end", "table", "level"),
    [
        ("source", "xdual", "error"),
        ("source", "retl_mark", "warning"),
        ("source", "retl_buffer", "warning"),
        ("target", "retl_mark", "error"),
        ("target", "setl_fence", "error"),
        ("target", "setl_writer", "error"),
        ("target", "setl_checkpoint", "error"),
    ],
)
def test_a_missing_system_table(scene, end, table, level):
    # Privileges on a single table stay when it is dropped.
    scene.run(end, f"DROP TABLE retl.{table}")
    fault = only(scene.faults())
    assert (fault.level, fault.what.partition(" (")[0]) == (level, f"retl.{table} is missing")
    scene.hint(end, fault)
    assert scene.faults() == []


def test_system_tables_that_are_not_needed(scene):
    scene.run("source", "DROP TABLE retl.xdual")
    scene.run("target", "DROP TABLE retl.setl_checkpoint")
    source = scene.end("source", heartbeat=0)
    try:
        assert scene.faults(source=source, checkpoint="zookeeper") == []
    finally:
        scene.run("source", *resource_statements("retl.sql"))
        scene.run("target", *resource_statements("fence.sql"))


def test_a_system_table_without_transactions(scene):
    scene.run("target", "ALTER TABLE retl.setl_fence ENGINE = MyISAM")
    fault = only(scene.faults())
    assert fault.what == "retl.setl_fence is a MyISAM table, which has no transactions"
    scene.hint("target", fault)
    assert scene.faults() == []


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("binlog_format", "'MIXED'", "binlog_format is MIXED and must be ROW"),
        ("binlog_row_image", "'MINIMAL'", "binlog_row_image is MINIMAL and must be FULL"),
        ("binlog_row_metadata", "'MINIMAL'", "binlog_row_metadata is MINIMAL and must be FULL"),
        pytest.param(
            *("binlog_row_metadata", "'NO_LOG'", "binlog_row_metadata is NO_LOG and must be FULL"),
            marks=pytest.mark.family("mariadb", why="MySQL has no NO_LOG"),
        ),
    ],
)
def test_a_wrong_setting_of_the_binlog(scene, name, value, wanted):
    with setting(scene, "source", name, value):
        fault = only(scene.faults())
        assert (fault.level, fault.what.partition(", else")[0]) == ("error", wanted)
        scene.hint("source", fault)
        assert scene.faults() == []


def test_statements_instead_of_rows_are_foretold(scene):
    sums = f"{scene.schema}_pt.sums"
    scene.run(
        "source",
        "CREATE DATABASE SCHEMA_pt",
        f"CREATE TABLE {sums} (id INT PRIMARY KEY, this_crc INT, master_crc INT)",
        "GRANT SELECT ON SCHEMA_pt.* TO ACCOUNT",
    )
    try:
        fault = only(scene.faults())
        assert (fault.level, fault.id) == ("warning", f"statement@{sums}")
        assert "may have triggers, which are not shown" in fault.what
        assert scene.faults(accept=[f"statement@{scene.schema}_pt.*"])[0].level == "accepted"
        scene.hint("source", fault)
        findings = check_channel(scene.channel())
        assert [f.level for f in findings if f.level != "ok"] == []
        assert any(f"{sums} (pt-table-checksum)" in f.what for f in findings)
        scene.run(
            "source", f"CREATE TRIGGER SCHEMA_pt.x BEFORE INSERT ON {sums} FOR EACH ROW SET @a = 1"
        )
        assert "it has the trigger x" in only(scene.faults()).what
        mapped = scene.faults([{"from": f"{scene.schema}.orders"}, {"from": sums}])
        assert any(f.id == f"statement@{sums}" and "it is mapped" in f.what for f in mapped)
    finally:
        scene.run(
            "source", "DROP DATABASE SCHEMA_pt",
            f"REVOKE SELECT, TRIGGER ON `{scene.schema}_pt`.* FROM ACCOUNT"
        )  # fmt: skip


@pytest.mark.family("mysql", why="MariaDB shows nobody the variables of other sessions")
def test_sessions_that_log_statements_are_found(scene):
    with scene.servers["source"].connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = STATEMENT")
        assert scene.faults() == []  # it is not shown to everybody
        scene.run("source", "GRANT SELECT ON performance_schema.* TO ACCOUNT")
        fault = only(scene.faults())
        assert fault.id == "statement-sessions@source"
        assert "(1 STATEMENT)" in fault.what
        (question,) = (text.partition(": ")[2] for text in fault.hint)
        cursor.execute(question)
        assert len(cursor.fetchall()) == 1
    scene.run("source", "REVOKE SELECT ON performance_schema.* FROM ACCOUNT")
    assert scene.faults() == []


def test_a_binlog_may_be_compressed(scene):
    name = "log_bin_compress" if scene.mariadb else "binlog_transaction_compression"
    with setting(scene, "source", name, "ON"):
        assert scene.faults() == []


def test_binlogs_that_are_stored_too_short(scene):
    with scene.servers["source"].connect() as connection:
        needs_mariadb(connection, 10, 6, 1, what="binlogs that are kept for less than a day")
    with setting(scene, "source", "binlog_expire_logs_seconds", "5400"):
        fault = only(scene.faults())
        assert fault.level == "warning"
        assert "removed after 1.5 hours" in fault.what
        scene.hint("source", fault)
        assert scene.faults() == []


def test_a_limit_with_which_no_load_ever_begins(scene):
    """The server's own number, and a reader of its binlog, are the least that is told."""

    def told():
        fault = only(scene.faults(load_limits={"threads_running": 1}))
        assert (fault.level, fault.code) == ("warning", "load-never-begins")
        (least,) = map(int, re.findall(r"it carries out (\d+) statements", fault.what))
        assert scene.faults(load_limits={"threads_running": least}) == []
        with scene.servers["source"].connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW GLOBAL STATUS LIKE 'Threads_running'")
            idle = int(cursor.fetchone()[1])
        # The pipeline's own reader is one more, and is not there; somebody else's may be.
        return idle in (least - 1, least)

    # Who leaves, as earlier tests do, is carried out for a moment still.
    eventually(told)


@pytest.mark.parametrize("sessions", [False, True])
def test_a_target_that_is_read_only(scene, sessions):
    name = "read_only"
    if sessions:
        name = "tx_read_only" if (scene.version or (11, 1)) < (11, 1) else "transaction_read_only"
    with setting(scene, "target", name, "ON"):
        fault = only(scene.faults())
        assert fault.what == f"the server is {name}"
        scene.hint("target", fault)
        assert scene.faults() == []


def test_ids_and_positions_of_the_source(scene):
    own = scene.servers["source"].server_id
    fault = only(scene.faults(source=scene.end("source", server_id=own)))
    assert "which is the server's own" in fault.what
    start = {"file": "binlog.999999"}
    fault = only(scene.faults(source=scene.end("source", start=start)))
    assert fault.what == "`start` names binlog.999999, which the server does not have"
    assert "binlog.000001" in fault.hint[0]


def test_servers_that_do_not_answer(scene):
    source = scene.end("source", port=1)
    target = scene.end("target", user="nobody")
    away, refused = scene.faults(source=source, target=target)
    assert away.what.startswith("no connection: ")
    assert away.where == "p, source 127.0.0.1:1"
    assert refused.what.startswith("the server refuses the account: ")
    assert "`user` (nobody)" in refused.hint[0]


def test_a_server_without_a_binlog_and_one_that_filters(scene, another_server, tmp_path):
    options = ["--skip-log-bin"]
    with another_server(tmp_path / "n", "no-binlog", server_id=113, options=options) as server:
        other = Scene({"source": server, "target": scene.servers["target"]})
        other.schema = scene.schema
        ends = {"host": server.host, "port": server.port, "user": server.user,
                "password": server.password}  # fmt: skip
        other.run("source", *system_table_statements())
        other.run("source", "CREATE DATABASE SCHEMA",
                  "CREATE TABLE SCHEMA.orders (id INT PRIMARY KEY)")  # fmt: skip
        tables = [{"from": f"{scene.schema}.orders", "include": ["id"]}]
        faults = scene.faults(tables, source={"type": "mysql", **ends})
        assert faults[0].what == "the server writes no binlog"
        forth = {"name": "a", "source": scene.end("source"), "target": {"type": "mysql", **ends},
                 "tables": tables}  # fmt: skip
        back = {"name": "b", "source": {"type": "mysql", **ends}, "target": scene.end("source"),
                "tables": tables}  # fmt: skip
        file = parse_channel({"channel": "two", "pipelines": [forth, back]})
        whats = [(f.where.partition(",")[0], f.what) for f in check_channel(file)]
        assert ("a", "the server writes no binlog, but the channel also reads from it") in whats
    options = [f"--binlog-ignore-db={scene.schema}", "--binlog-ignore-db=retl"]
    with another_server(tmp_path / "f", "filters", server_id=114, options=options) as server:
        ends |= {"port": server.port, "password": server.password}
        Scene({"source": server}).run("source", *resource_statements("retl.sql"))
        whats = [f.what for f in scene.faults(source={"type": "mysql", **ends})]
        for schema in (scene.schema, "retl"):
            assert f"binlog_ignore_db names {schema}, so its changes are not in the binlog" in whats


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        ("DROP TABLE SCHEMA.orders", "the target table does not exist"),
        ("ALTER TABLE SCHEMA.orders DROP COLUMN note", "the target table has no column note"),
        ("ALTER TABLE SCHEMA.orders MODIFY user_name VARCHAR(39) NOT NULL",
         "the column user_name is varchar(39), too small for the source's varchar(40)"),
        ("ALTER TABLE SCHEMA.orders MODIFY user_name VARCHAR(40) CHARACTER SET latin1 NOT NULL",
         "the column user_name is in latin1, which does not hold all of the source's utf8mb4"),
        ("ALTER TABLE SCHEMA.orders MODIFY note TEXT NOT NULL",
         "the column note takes no NULL, the source's note does"),
        ("ALTER TABLE SCHEMA.orders MODIFY state ENUM('new') NOT NULL",
         "the column state lacks the labels paid"),
        ("ALTER TABLE SCHEMA.orders MODIFY price FLOAT",
         "the column price is float, the source's is decimal(12,2)"),
        ("ALTER TABLE SCHEMA.orders MODIFY placed DATETIME",
         "the column placed is datetime, too small for the source's datetime(3)"),
        ("ALTER TABLE SCHEMA.orders MODIFY id BIGINT NOT NULL, DROP PRIMARY KEY",
         "the target table has no key over id, by which rows are found"),
        (("ALTER TABLE SCHEMA.orders MODIFY id BIGINT NOT NULL, DROP PRIMARY KEY,"
         " ADD PRIMARY KEY (user_name)"),
         "the target table's key is (user_name), the source's is (id)"),
        (("ALTER TABLE SCHEMA.orders MODIFY id BIGINT NOT NULL, DROP PRIMARY KEY, ADD KEY (id),"
         " ADD tmp_id BIGINT AUTO_INCREMENT PRIMARY KEY"),
         "the target table's key is (tmp_id), the source's is (id)"),
        ("ALTER TABLE SCHEMA.orders ENGINE = MyISAM",
         "the target is a MyISAM table, which has no transactions"),
        ("ALTER TABLE SCHEMA.orders ADD COLUMN extra INT NOT NULL",
         "the column extra gets no value, takes no NULL and has no default"),
    ],
)  # fmt: skip
def test_a_target_table_that_does_not_take_the_rows(scene, damage, what):
    scene.run("target", damage)
    fault = only(scene.faults())
    assert fault.level == "error"
    assert fault.what.startswith(what)
    assert fault.where.endswith(f", {scene.schema}.orders")
    scene.hint("target", fault)
    assert scene.faults() == []


def test_a_target_schema_that_is_not_there(scene):
    scene.run("target", "DROP DATABASE SCHEMA")
    for fault in scene.faults():
        scene.hint("target", fault)
    assert scene.faults() == []


def test_more_room_and_more_columns_in_the_target_do_no_harm(scene):
    scene.run(
        "target",
        "ALTER TABLE SCHEMA.orders MODIFY user_name VARCHAR(400) NOT NULL, MODIFY note LONGTEXT,"
        " MODIFY price DECIMAL(20, 4), MODIFY placed DATETIME(6), ADD COLUMN seen TIMESTAMP NULL,"
        " ADD COLUMN kind INT NOT NULL DEFAULT 1, DROP COLUMN total, ADD COLUMN total DECIMAL(14,2)"
        " AS (price * 2)",
    )
    assert scene.faults() == []


def test_a_target_table_with_triggers(scene):
    scene.run(
        "target",
        "CREATE TRIGGER SCHEMA.t BEFORE INSERT ON SCHEMA.orders FOR EACH ROW SET NEW.note = 'x'",
        "CREATE TRIGGER SCHEMA.u BEFORE INSERT ON SCHEMA.orders FOR EACH ROW SET @seen = NEW.id",
    )
    changes, other = scene.faults()
    assert (changes.level, "the trigger t sets note" in changes.what) == ("error", True)
    assert (other.level, "triggers (u)" in other.what) == ("warning", True)
    scene.run("target", "REVOKE TRIGGER ON SCHEMA.* FROM ACCOUNT")
    # MariaDB shows triggers without their bodies then.
    blind = {fault.code: fault for fault in scene.faults()}
    assert blind.keys() - {"target-triggers"} == {"triggers-unseen"}
    scene.hint("target", blind["triggers-unseen"])
    assert [fault.code for fault in scene.faults()] == ["trigger-changes-rows", "target-triggers"]


def test_mapped_columns(scene):
    scene.run(
        "target",
        "CREATE TABLE SCHEMA.sales (number BIGINT PRIMARY KEY, buyer VARCHAR(40) NOT NULL,"
        " gross DECIMAL(20, 2))",
    )
    mapping = {
        "from": f"{scene.schema}.orders",
        "to": "sales",
        "columns": {"number": "id", "buyer": "user_name", "gross": "price * 1.2"},
        "include": [],
    }
    assert scene.faults([mapping]) == []
    wrong = {**mapping, "columns": {"number": "nr", "b": "user_name", "g": "price * 2"}}
    unknown, lost = scene.faults([wrong])
    assert lost.what.startswith("the key column id does not reach the target")
    assert (
        unknown.what == "tables[0].columns.number names a column nr, which the table does not have"
    )
    wrong = {**mapping, "columns": {"number": "id", "b": "user_name", "g": "price * 2"}}
    whats = [f.what for f in scene.faults([wrong])]
    assert whats == [
        "the target table has no column b",
        "the target table has no column g",
        "the column buyer gets no value, takes no NULL and has no default",
    ]
    missing = only(scene.faults([{**mapping, "to": "nothing"}]))
    assert missing.hint == (
        "Create it with the columns number, buyer, gross and the same primary key",
    )


@pytest.mark.family("mariadb", why="MySQL has no system-versioned tables")
def test_a_system_versioned_table(scene):
    for end, versioned in (("source", "WITH SYSTEM VERSIONING"), ("target", "")):
        scene.run(end, f"CREATE TABLE SCHEMA.ver (id INT PRIMARY KEY) {versioned}")
    assert not scene.faults([{"from": f"{scene.schema}.ver"}])
    numbers = "BIGINT UNSIGNED GENERATED ALWAYS AS ROW"
    columns = (
        f"id INT PRIMARY KEY, a {numbers} START, b {numbers} END, PERIOD FOR SYSTEM_TIME(a, b)"
    )
    for end in ("source", "target"):
        scene.run(end, f"CREATE TABLE SCHEMA.num ({columns}) WITH SYSTEM VERSIONING")
    fault = only(scene.faults([{"from": f"{scene.schema}.num"}]))
    assert (fault.level, fault.code) == ("error", "system-versioned")


@pytest.mark.family("mysql", why="MariaDB has no masking policies")
def test_columns_that_the_server_masks(scene):
    mapping = {"from": f"{scene.schema}.masked"}
    for end in ("source", "target"):
        scene.run(end, "CREATE TABLE SCHEMA.masked (id INT PRIMARY KEY, v INT, w INT)")
    assert not scene.faults([mapping])
    for end in ("source", "target"):
        scene.run(end, "ALTER TABLE SCHEMA.masked ALTER COLUMN w SET MASKING POLICY p")
        fault = only(scene.faults([mapping]))
        assert (fault.level, fault.code, fault.risk) == ("error", "masked-columns", True)
        assert "masks columns (w)" in fault.what
        scene.run(end, "ALTER TABLE SCHEMA.masked ALTER COLUMN w DROP MASKING POLICY")


def test_a_view_and_a_generated_column_as_targets(scene):
    scene.run(
        "source", "CREATE TABLE SCHEMA.plain (id INT PRIMARY KEY, v INT, w INT AS (id) STORED)"
    )
    scene.run("target", "CREATE TABLE SCHEMA.behind (id INT PRIMARY KEY, v INT)")
    scene.run("target", "CREATE VIEW SCHEMA.shown AS SELECT * FROM SCHEMA.behind")
    both = "v INT AS (id) STORED, w INT AS (id) STORED"
    scene.run("target", f"CREATE TABLE SCHEMA.plain (id INT PRIMARY KEY, {both})")
    plain = f"{scene.schema}.plain"
    fault = only(scene.faults([{"from": plain}]))
    assert (fault.level, fault.code) == ("error", "generated-column")
    assert "the column v is generated at the target" in fault.what
    assert not scene.faults([{"from": plain, "exclude": ["v"]}])
    mapping = {"from": plain, "to": f"{scene.schema}.shown", "key": ["id"], "exclude": ["w"]}
    faults = scene.faults([mapping])
    assert [f.what for f in faults if f.level == "error"] == [
        "the target is a view, which tells nothing of its tables' keys, engines and rows"
    ]


def test_generated_columns_that_depend_on_the_session(scene):
    for end in ("source", "target"):
        scene.run(
            end,
            "CREATE TABLE SCHEMA.days (id INT PRIMARY KEY, at TIMESTAMP NULL, d DATETIME NULL,"
            " day DATE AS (DATE(at)) STORED, year INT AS (YEAR(d)) VIRTUAL, KEY (day), KEY (year))",
        )
        scene.run(
            end,
            "CREATE TABLE SCHEMA.hours (id INT PRIMARY KEY, at TIMESTAMP NULL,"
            " hour INT AS (HOUR(at)) VIRTUAL, seen INT AS (hour + 1) VIRTUAL, KEY (id, seen))",
        )
        scene.run(
            end,
            "CREATE TABLE SCHEMA.words (id INT PRIMARY KEY, a VARCHAR(9),"
            " found INT AS (a REGEXP 'x.y') STORED)",
        )
    assert not scene.faults([{"from": f"{scene.schema}.days"}])
    fault = only(scene.faults([{"from": f"{scene.schema}.hours"}]))
    assert (fault.level, fault.code, fault.risk) == ("error", "index-by-session", True)
    assert "index over the virtual column seen depends on the time zone" in fault.what
    fault = only(scene.faults([{"from": f"{scene.schema}.words"}]))
    assert (fault.level, fault.code) == ("warning", "generated-by-session")


def test_generated_columns_that_the_source_does_not_log(scene):
    with scene.servers["source"].connect() as connection:
        unlogged = logs_no_generated(connection)
    orders = f"{scene.schema}.orders"
    for mapping, needed in [({}, False), ({"where": "id > 0"}, True), ({"exclude": ["id"]}, False)]:
        found = check_channel(scene.channel([{"from": orders, **mapping}]))
        assert [f.location for f in found if f.code == NOT_LOGGED] == [orders] * (
            unlogged and needed
        )


@pytest.mark.family("mysql", why="MariaDB has no indexes over expressions")
def test_an_index_over_an_expression_that_depends_on_the_session(scene):
    for end in ("source", "target"):
        scene.run(
            end,
            "CREATE TABLE SCHEMA.f (id INT PRIMARY KEY, at TIMESTAMP NULL, n INT,"
            " KEY by_day ((DATE(at))), KEY twice ((n * 2)))",
        )
    fault = only(scene.faults([{"from": f"{scene.schema}.f"}]))
    assert (fault.level, fault.code, fault.risk) == ("error", "index-by-session", True)
    assert "by_day" in fault.what


def test_tables_that_from_does_not_find(scene):
    scene.run("source", "CREATE VIEW SCHEMA.v AS SELECT 1 AS x")
    tables = [
        {"from": f"{scene.schema}.gone"},
        {"from": f"{scene.schema}.v"},
        {"from": f"{scene.schema}.x*"},
        {"from": f"{scene.schema}.order?"},
        {"from": f"{scene.schema}.*"},
    ]
    faults = scene.faults(tables)
    assert [(f.level, f.what) for f in faults] == [
        ("error", "the table does not exist"),
        ("error", "this is a view or a sequence, which has no rows in the binlog"),
        ("warning", f"tables[2] ({scene.schema}.x*) matches no table"),
        (
            "warning",
            (
                f"tables[4] ({scene.schema}.*) never counts: other entries come first for all 1"
                " tables that it matches"
            ),
        ),
    ]
    assert [f.where.rpartition(", ")[2] for f in faults[:2]] == [
        f"{scene.schema}.gone",
        f"{scene.schema}.v",
    ]


def test_tables_whose_rows_cannot_be_reported_apart(scene):
    for end in scene.servers:
        scene.run(end, "CREATE TABLE SCHEMA.plain (a INT NOT NULL, b INT)")
    name = f"{scene.schema}.plain"
    fault = only(scene.faults([{"from": name}]))
    assert (fault.level, fault.code) == ("warning", "keyless")
    doubt, lacking = scene.faults([{"from": name, "key": ["a"]}])
    assert (doubt.level, "no unique key has just the columns a" in doubt.what) == ("warning", True)
    assert "no unique key of the target table has just a" in lacking.what
    scene.hint("target", lacking)
    scene.run("source", "ALTER TABLE SCHEMA.plain ADD UNIQUE (a)")
    assert scene.faults([{"from": name, "key": ["a"]}]) == []


@pytest.mark.parametrize(
    "mapping",
    [{"exclude": ["id"]}, {"include": ["note"]}, {"columns": {"id": "id + 1"}}],
)
def test_a_key_that_does_not_reach_the_target(scene, mapping):
    fault = only(scene.faults([{"from": f"{scene.schema}.orders", **mapping}]))
    assert fault.what == "the key column id does not reach the target, where rows are found by it"


@pytest.mark.family("mariadb", why="MySQL logs what its foreign keys do, from 9.6 on")
def test_foreign_keys_that_act_behind_the_binlog(scene):
    create = (
        "CREATE TABLE SCHEMA.items (id INT PRIMARY KEY, o BIGINT, CONSTRAINT `own er` FOREIGN KEY"
        " (o) REFERENCES SCHEMA.orders (id) ON DELETE CASCADE ON UPDATE SET NULL)"
    )
    scene.run("source", create)
    scene.run("target", create)
    tables = [{"from": f"{scene.schema}.*"}]
    assert scene.faults(tables) == []  # setl carries it out
    child = {"from": f"{scene.schema}.items"}
    for mapping, reason in (
        ([child], f"{scene.schema}.orders: it is not mapped"),
        ([{**child, "where": "id > 1"}, *tables], f"{scene.schema}.items: its mapping has where"),
    ):
        fault = only(scene.faults(mapping))
        assert f"setl cannot carry it out: {reason}" in fault.what
    scene.run("target", "ALTER TABLE SCHEMA.items DROP FOREIGN KEY `own er`")
    fault = only(scene.faults(tables))
    assert fault.what.startswith("the foreign key own er has ON DELETE CASCADE, ON UPDATE SET NULL")
    assert "the target's table has not the same foreign key" in fault.what
    scene.run("target", fault.hint[0].partition("at the target: ")[2])
    assert scene.faults(tables) == []
    scene.run("target", "ALTER TABLE SCHEMA.items DROP FOREIGN KEY `own er`")
    scene.hint("source", fault)
    assert scene.faults(tables) == []


def test_expressions_are_given_to_the_hook(scene):
    asked = []

    def hook(route, schema):
        asked.append((route.where, schema.name))
        raise ConfigurationError("Spark says no", hint="try again")

    table = {"from": f"{scene.schema}.orders", "where": "id > 1"}
    findings = check_channel(scene.channel([table]), expressions=hook)
    assert asked == [("id > 1", f"{scene.schema}.orders")]
    fault = only([f for f in findings if f.level == "error"])
    assert (fault.what, fault.hint) == ("tables[0]: Spark says no", ("try again",))


def test_findings_come_in_the_same_order(scene):
    scene.run("target", "DROP DATABASE SCHEMA")
    file = scene.channel([{"from": f"{scene.schema}.*"}, {"from": f"{scene.schema}.gone"}])
    assert check_channel(file) == check_channel(file)


# -- Elasticsearch ---------------------------------------------------------------------------


def test_an_elasticsearch_target(scene, elasticsearch):
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    findings = check_channel(scene.channel(target=target))[4:]
    assert [f.level for f in findings] == ["ok", "ok"]
    assert findings[0].what.endswith("answers")
    assert findings[1].where.endswith(", index orders")
    assert findings[1].what == "setl will create the index (gc_deletes 1h), with this mapping"


def test_an_elasticsearch_target_that_does_not_answer(scene):
    target = {"type": "elasticsearch", "hosts": ["http://127.0.0.1:1"]}
    fault = only(scene.faults(target=target))
    assert fault.where == "p, target http://127.0.0.1:1"
    assert "no connection" in fault.what


def test_indexes_that_cannot_be_written_to(scene, elasticsearch):
    one, two, both = (f"{scene.schema}-{end}" for end in ("one", "two", "both"))
    client = Elasticsearch(elasticsearch.url)
    for index in (one, two):
        settings = {"index": {"gc_deletes": "1h"}}
        client.indices.create(index=index, aliases={both: {}}, settings=settings)
    tables = [
        {"from": f"{scene.schema}.orders", "to": one},
        {"from": f"{scene.schema}.orders", "to": both},
    ]
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    fault = only(scene.faults(tables, target=target))
    assert fault.where.endswith(f", index {both}")
    assert fault.what == f"the alias stands for 2 indexes: {one}, {two}"
    client.indices.put_settings(index=one, settings={"index.blocks.write": True})
    fault = only(scene.faults(tables[:1], target=target))
    assert fault.what == "the index is blocked for writing (write)"
    assert f'PUT /{one}/_settings {{"index.blocks.write": null}}' in fault.hint[0]


def test_a_name_that_no_index_can_have(scene, elasticsearch):
    scene.run("source", "CREATE TABLE SCHEMA._hidden (id INT PRIMARY KEY)")
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    fault = only(scene.faults([{"from": f"{scene.schema}.*"}], target=target))
    assert fault.where.endswith(f"{scene.schema}._hidden")
    assert "must not start with -, _ or +" in fault.what
    assert fault.hint == ("Name an index in tables[0].to",)


# -- DTS -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def topic(kafka):
    name = f"preflight-{uuid.uuid4().hex[:8]}"
    producer = KafkaProducer(bootstrap_servers=kafka.brokers)
    for operation in ("BEGIN", "COMMIT", "HEARTBEAT"):
        value = record(operation, sourceTimestamp=1_790_000_000)
        producer.send(name, value, partition=0).get(10)
    producer.close()
    return name


@pytest.mark.parametrize(
    ("changes", "level", "what"),
    [
        ({}, "ok", "the topic TOPIC has records 0 to 3"),
        ({"start": {"offset": 3}}, "ok", "the topic TOPIC has records 0 to 3"),
        ({"start": {"timestamp": 1_600_000_000}}, "ok", "the topic TOPIC has records 0 to 3"),
        ({"topic": "no-such-topic"}, "error", "there is no topic no-such-topic"),
        ({"partition": 7}, "error", "the topic TOPIC has no partition 7"),
        ({"start": {"offset": 9}}, "error",
         "`start` names offset 9, but the topic goes from 0 to 3"),
        ({"start": {"timestamp": 1_790_000_000}}, "ok", "the topic TOPIC has records 0 to 3"),
        ({"start": {"timestamp": 1_790_000_001}}, "error",
         "`start` names a time that is not there: nothing can be read from 2026-09-21 14:13:21"),
        ({"brokers": ["127.0.0.1:1"]}, "error", "no answer from Kafka"),
        ({"kafka": {"fetch.min.bytes": -5}}, "error", "a Kafka setting is wrong: "),
    ],
)  # fmt: skip
def test_a_dts_source(scene, kafka, topic, changes, level, what):
    source = {"type": "kafka", "brokers": [kafka.brokers], "topic": topic, **changes}
    finding = check_channel(scene.channel(source=source))[0]
    assert (finding.level, finding.what.startswith(what.replace("TOPIC", topic))) == (level, True)


def test_partitions_that_nobody_reads(scene, kafka):
    name = f"preflight-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": kafka.brokers})
    admin.create_topics([NewTopic(name, 3)])[name].result()
    source = {"type": "kafka", "brokers": [kafka.brokers], "topic": name}
    tables = [{"from": "x.y", "to": f"{scene.schema}.orders"}]
    for partitions, unread in (({}, "1, 2"), ({"partitions": 2}, "2"), ({"partitions": 3}, "")):
        faults = scene.faults(tables, source={**source, **partitions})
        assert bool(faults) == bool(unread)
        for fault in faults:
            assert f"has 3 partitions, and the channel does not read {unread}: what" in fault.what
            assert fault.hint[0].startswith("Write `partitions: 3`")


def test_targets_of_a_dts_source_are_checked_as_far_as_they_are_named(scene, kafka, topic):
    source = {"type": "kafka", "brokers": [kafka.brokers], "topic": topic}
    tables = [{"from": "x.y", "to": f"{scene.schema}.orders"}, {"from": "x.*"}]
    assert scene.faults(tables, source=source) == []
    scene.run("target", "DROP TABLE SCHEMA.orders")
    fault = only(scene.faults(tables, source=source))
    assert fault.what == "the target table does not exist, or the account may not see it"


def test_schema_changes_need_a_record_and_privileges(scene):
    scene.run("target", "DROP TABLE retl.setl_ddl")
    assert scene.faults() == []
    missing, lacking = scene.faults(ddl="pass")
    assert missing.what.startswith("retl.setl_ddl is missing")
    assert "lacks ALTER, CREATE, DROP, INDEX on" in lacking.what
    scene.hint("target", missing)
    scene.hint("target", lacking)
    try:
        assert scene.faults(ddl="pass") == []
    finally:
        scene.run(
            "target", "REVOKE ALTER, CREATE, DROP, INDEX, REFERENCES ON SCHEMA.* FROM ACCOUNT"
        )


def test_schema_changes_that_could_not_be_replicated(scene):
    scene.run("target", "GRANT ALTER, CREATE, DROP, INDEX ON SCHEMA.* TO ACCOUNT")
    scene.run("target", "ALTER DATABASE SCHEMA COLLATE latin1_bin")
    scene.run("source", "CREATE TABLE SCHEMA.orders_2 LIKE SCHEMA.orders")
    scene.run("source", "CREATE TABLE SCHEMA._orders_old LIKE SCHEMA.orders")
    try:
        to = f"{scene.schema}.orders"
        both = [{"from": f"{scene.schema}.*", "to": to, "columns": {"said": "note"}}]
        texts = " | ".join(f.what for f in scene.faults(both, ddl="pass"))
    finally:
        scene.run("source", "DROP TABLE SCHEMA.orders_2, SCHEMA._orders_old")
        scene.run("target", "ALTER DATABASE SCHEMA COLLATE utf8mb4_general_ci")
        scene.run("target", "REVOKE ALTER, CREATE, DROP, INDEX ON SCHEMA.* FROM ACCOUNT")
    assert "belongs to an online schema change of orders" in texts
    assert "2 tables of the source come together here" in texts
    assert "renames columns or computes them" in texts
    assert "the default collation of" in texts


def test_dead_letters_need_their_table(scene):
    scene.run("target", "DROP TABLE retl.setl_deadletter")
    assert scene.faults() == []
    missing = only(scene.faults(faulty_rows="dead_letter"))
    assert missing.what.startswith("retl.setl_deadletter is missing")
    scene.hint("target", missing)
    assert scene.faults(faulty_rows="dead_letter") == []


def test_dead_letters_need_an_index_that_can_be_written_to(scene, elasticsearch):
    target = {"type": "elasticsearch", "hosts": [elasticsearch.url]}
    client = Elasticsearch(elasticsearch.url)
    client.options(ignore_status=404).indices.delete(index=DEAD_LETTERS)
    assert scene.faults(target=target, faulty_rows="dead_letter") == []
    client.indices.create(index=DEAD_LETTERS, settings={"index.blocks.write": True})
    fault = only(scene.faults(target=target, faulty_rows="dead_letter"))
    assert "blocked for writing" in fault.what
    client.indices.delete(index=DEAD_LETTERS)


@pytest.fixture
def first_file(scene, tmp_path):
    """Where `init` writes."""
    return tmp_path / f"{scene.schema}.yaml"


@pytest.fixture
def init(scene, monkeypatch, tmp_path, capsys):
    """`setl init --from` this scene's source: its status, what it says, and the file."""
    server = scene.servers["source"]
    url = f"mysql://{scene.account}@127.0.0.1:{server.port}/{scene.schema}"
    for end in ("SOURCE", "TARGET"):
        monkeypatch.setenv(f"{scene.schema.upper()}_{end}_PASSWORD", PASSWORD)

    def run_it(*arguments, source=url):
        status = run(["init", str(tmp_path), "--force", "--from", source, *arguments])
        said = "".join(capsys.readouterr())
        file = tmp_path / f"{scene.schema}.yaml"
        text = file.read_text() if file.exists() else ""
        assert PASSWORD not in said + text
        return status, said, text

    return run_it


def test_a_first_file_passes_the_check(scene, init, first_file, elasticsearch):
    target = f"mysql://{scene.account}@127.0.0.1:{scene.servers['target'].port}"
    status, said, text = init("--to", target)
    assert status == 0
    assert f"- from: {scene.schema}.orders  # key: id" in text
    assert f"with 1 table, whose nodes need {scene.schema.upper()}_SOURCE_PASSWORD and" in said
    assert "# error" not in text
    assert run(["check", str(first_file)]) == 0
    assert init("--to", f"elasticsearch://{elasticsearch.url.removeprefix('http://')}")[0] == 0
    assert run(["check", str(first_file)]) == 0


def test_what_the_check_finds_stands_beside_the_table(scene, init, first_file):
    scene.run(
        "source",
        "CREATE TABLE SCHEMA.`no key` (a INT AS (1) STORED, b INT)",
        "CREATE TABLE SCHEMA.parent (id INT PRIMARY KEY)",
        "CREATE TABLE SCHEMA.child (id INT PRIMARY KEY, p INT,"
        " FOREIGN KEY (p) REFERENCES SCHEMA.parent (id) ON DELETE CASCADE)",
    )
    status, said, text = init()
    assert status == 0
    entries = re.split(r"\n      (?=- from)", text)[1:]
    beside = {entry.split()[2].strip('"'): entry for entry in entries}
    assert f"# error no-key@{scene.schema}.no key:" in beside.pop(f"{scene.schema}.no")
    assert "# error" not in beside[f"{scene.schema}.orders"]
    assert "no-key@" in said
    assert "target.example.com" in text
    if scene.mariadb:  # this MySQL logs what foreign keys change
        assert "# error foreign-key-action@" in beside[f"{scene.schema}.child"]
        assert "the target is not known yet" in said
    target = f"mysql://{scene.account}@127.0.0.1:{scene.servers['target'].port}"
    _, said, text = init("--to", target)
    assert f"# error no-target-table@{scene.schema}.parent:" in text
    there = check_everything(read_channel_file(first_file, os.environ))
    expected = sorted(f.id for f in there if f.level in ("error", "warning"))
    assert sorted(re.findall(r"# (?:error|warning) ([^:]+):", text)) == expected


@pytest.mark.parametrize(
    ("change", "status", "what"),
    [
        (lambda url: re.sub(r":\d+/", ":1/", url), 3, "127.0.0.1"),
        (lambda url: url.replace("mysql://u_", "mysql://nobody_"), 2, "Access denied"),
        (lambda url: url + "_other", 2, "sees no table of schema"),
    ],
)
def test_servers_that_show_nothing_leave_no_file(scene, init, monkeypatch, change, status, what):
    server = scene.servers["source"]
    url = f"mysql://{scene.account}:${{PW_OF_IT}}@127.0.0.1:{server.port}/{scene.schema}"
    monkeypatch.setenv("PW_OF_IT", PASSWORD)
    got, said, text = init(source=change(url))
    assert (got, text) == (status, "")
    assert what in said


def test_a_first_file_needs_the_variable_that_it_names(scene, init, monkeypatch):
    monkeypatch.delenv(f"{scene.schema.upper()}_SOURCE_PASSWORD")
    status, said, text = init()
    assert (status, text) == (2, "")
    assert f"the environment variable {scene.schema.upper()}_SOURCE_PASSWORD is not set" in said
