"""Parts of the preflight checks that need no server, and MySQL's side of those that do."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.channel.fields.endpoints import MysqlSource
from setl.channel.reading import parse_channel
from setl.channel.relations.directions import is_two_way
from setl.channel.routes.routing import Route, selected_columns
from setl.errors import DataError, TransientError
from setl.model.conflict import ConflictPolicy
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.finding import Finding, Report
from setl.systems.mysql.creation.plan import TablePlan
from setl.systems.mysql.preflight import binlog_settings
from setl.systems.mysql.preflight.binlog_settings import check_binlog, check_version
from setl.systems.mysql.preflight.column_fit import misfit
from setl.systems.mysql.preflight.endpoints import check_binlog_durability, check_row_durability
from setl.systems.mysql.preflight.generated_columns import check_filled, check_generated
from setl.systems.mysql.preflight.load_limits import check_threads_running
from setl.systems.mysql.preflight.new_tables import Flow, made_plain
from setl.systems.mysql.preflight.privileges import MissingPrivileges
from setl.systems.mysql.preflight.schema_changes import check_invisible_keys
from setl.systems.mysql.preflight.system_tables import create_statements
from setl.systems.mysql.process_list import Process
from setl.systems.mysql.server import Outcome, Server
from setl.systems.mysql.server_kind import ServerKind
from setl.systems.mysql.table_facts import ColumnFacts, TableText
from setl.transform.columns import ColumnPlan
from tests.unit.channel.channels import DTS, SEARCH, changed

END = {"type": "mysql", "host": "a", "user": "u"}
OLD, YOUNG = (10, 11, 19), (11, 8, 9)


class PretendedServer(Server):
    """A server whose answers are given beforehand."""

    def __init__(self, *, mariadb=False, version=(8, 4, 3), denied=(), grants=(), **variables):
        text = ".".join(map(str, version)) + ("-MariaDB" if mariadb else "")
        self.kind = ServerKind.of(text, variables)
        self.mariadb, self.version = mariadb, version
        self.product = self.kind.product
        self.account = "'u'@'%'"
        self.denied = denied
        self._given = grants
        self.asked = []
        self.hangs = False
        self.variables = {
            "log_bin": "ON", "binlog_format": "ROW", "binlog_row_image": "FULL",
            "binlog_row_metadata": "FULL", "server_id": "1", **variables,
        }  # fmt: skip

    def reconnect(self):
        self.asked.append("anew")

    def refuse_unanswered(self):
        if self.hangs:
            raise TransientError("the source does not answer questions about its binlog")

    def rows(self, sql, args=()):
        self.asked.append(sql)
        return [(grant,) for grant in self._given] if sql == "SHOW GRANTS" else []

    def records(self, sql, args=()):
        self.asked.append(sql)
        return [{"binlog_do_db": "", "binlog_ignore_db": ""}]

    def attempt(self, sql):
        self.asked.append(sql)
        return Outcome.DENIED if sql in self.denied else Outcome.DONE


def source(**changes):
    return MysqlSource.model_validate({"type": "mysql", "host": "h", "user": "u", **changes})


def binlog_faults(server, **changes):
    report = Report("here")
    check_binlog(server, source(**changes), ["s", "retl"], report)
    return [f for f in report.findings if f.level != "ok"]


def test_mysql_is_asked_in_its_own_words():
    server = PretendedServer(gtid_mode="ON")
    assert binlog_faults(server) == []
    assert "SHOW BINARY LOG STATUS" in server.asked
    assert "SHOW REPLICAS" in server.asked
    old = PretendedServer(version=(8, 0, 40), gtid_mode="ON")
    assert binlog_faults(old) == []
    assert "SHOW MASTER STATUS" in old.asked
    older = PretendedServer(version=(8, 0, 21), gtid_mode="ON")
    assert binlog_faults(older) == []
    assert "SHOW SLAVE HOSTS" in older.asked


def test_binlogs_whose_names_are_no_text(monkeypatch):
    server = PretendedServer(gtid_mode="ON")
    monkeypatch.setattr(server, "attempt", lambda _: b"gr\xf6\xdfe".decode() and Outcome.DONE)
    monkeypatch.setattr(binlog_settings, "may_read_binlog", lambda _: True)
    (fault,) = binlog_faults(server)
    assert (fault.level, fault.code) == ("error", "binlog-name")
    assert "log_bin" in fault.hint[0]
    assert "anew" in server.asked


def test_a_server_that_would_not_answer_is_not_asked_about_its_binlog():
    """A question would hang for half a minute, and leave its connection behind for ever."""
    server = PretendedServer(gtid_mode="ON")
    server.hangs = True
    with pytest.raises(TransientError, match="does not answer questions"):
        binlog_faults(server)
    assert not [sql for sql in server.asked if "BINARY LOG" in sql]


def test_privileges_on_mysql():
    server = PretendedServer(denied=["SHOW REPLICAS", "SHOW BINARY LOG STATUS"], gtid_mode="ON")
    assert [f.hint for f in binlog_faults(server)] == [
        ("GRANT REPLICATION CLIENT ON *.* TO 'u'@'%';",),
        ("GRANT REPLICATION SLAVE ON *.* TO 'u'@'%';",),
    ]


def test_images_that_say_nothing_twice_are_whole():
    server = PretendedServer(mariadb=True, version=YOUNG, binlog_row_image="FULL_NODUP")
    assert "binlog-setting" not in [fault.code for fault in binlog_faults(server)]


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("binlog_format", "MIXED", "SET PERSIST binlog_format = 'ROW';"),
        ("binlog_row_image", "NOBLOB", "SET PERSIST binlog_row_image = 'FULL';"),
        ("binlog_row_metadata", "MINIMAL", "SET PERSIST binlog_row_metadata = 'FULL';"),
        ("server_id", "0", "SET PERSIST server_id = 1;"),
    ],
)
def test_settings_of_mysql(name, value, hint):
    (fault,) = binlog_faults(PretendedServer(gtid_mode="ON", **{name: value}))
    assert (fault.level, fault.hint[0]) == ("error", hint)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("binlog_transaction_compression", "ON"),
        ("binlog_row_value_options", "PARTIAL_JSON"),
        ("binlog_checksum", "NONE"),
    ],
)
def test_settings_of_mysql_that_do_not_matter(name, value):
    assert binlog_faults(PretendedServer(gtid_mode="ON", **{name: value})) == []


def test_what_a_failing_machine_may_take_with_it():
    def codes(checkpoint=None, **variables):
        report, server = Report("here"), PretendedServer(**variables)
        check_binlog_durability(server, report)
        pipeline = {
            "name": "p",
            "source": END,
            "target": {**END, "host": "b"},
            "tables": [{"from": "s.t"}],
            **({"checkpoint": checkpoint} if checkpoint else {}),
        }
        file = parse_channel({"channel": "c", "pipelines": [pipeline]})
        check_row_durability(server, file.pipelines[0], report)
        assert all(f.acceptable and f.statements for f in report.findings)
        return [f.code for f in report.findings]

    assert codes() == codes(sync_binlog="1", innodb_flush_log_at_trx_commit="1") == []
    assert codes(sync_binlog="0") == ["binlog-not-synced"]
    careless = {"innodb_flush_log_at_trx_commit": "2"}
    assert codes(**careless) == codes("target", **careless) == []
    assert codes("zookeeper", **careless) == ["rows-not-flushed"]


def test_a_target_that_makes_keys_of_its_own():
    report = Report("here")
    for value in ("OFF", "ON"):
        check_invisible_keys(PretendedServer(sql_generate_invisible_primary_key=value), report)
    check_invisible_keys(PretendedServer(), report)
    (fault,) = report.findings
    assert (fault.code, fault.acceptable) == ("invisible-key", True)
    assert fault.statements == ("SET PERSIST sql_generate_invisible_primary_key = OFF",)


@pytest.mark.parametrize("name", ["max_binlog_total_size", "binlog_space_limit"])
def test_binlogs_that_are_removed_for_their_size(name):
    server = PretendedServer(gtid_mode="ON")
    server.variables[name] = "0"
    assert binlog_faults(server) == []
    server.variables[name] = "1073741824"
    (fault,) = binlog_faults(server)
    assert (fault.level, fault.code) == ("warning", "binlog-size-limit")
    assert f"1,073,741,824 bytes ({name})" in fault.what


def test_a_binlog_that_a_storage_engine_stores():
    def codes(engine):
        return {f.code for f in binlog_faults(PretendedServer(binlog_storage_engine=engine))}

    assert codes("innodb") - codes("") == {"binlog-engine"}


def test_gtids_on_mysql():
    server = PretendedServer(gtid_mode="OFF")
    (fault,) = binlog_faults(server)
    assert fault.level == "warning"
    assert fault.statements == (
        "SET PERSIST enforce_gtid_consistency = ON",
        "SET GLOBAL gtid_mode = OFF_PERMISSIVE",
        "SET GLOBAL gtid_mode = ON_PERMISSIVE",
        "SET PERSIST gtid_mode = ON",
    )
    (fault,) = binlog_faults(server, start={"gtid": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"})
    assert fault.level == "error"


def test_servers_that_are_too_old_or_newer_than_was_tried():
    for mariadb, version, level in [
        (False, (8, 0, 40), "warning"),
        (False, (8, 4, 0), "ok"),
        (False, (9, 1, 0), "ok"),
        (True, (10, 5, 29), "ok"),
        (True, (10, 6, 1), "ok"),
        (True, (10, 11, 2), "ok"),
        (True, (11, 4, 2), "ok"),
        (True, (11, 8, 9), "ok"),
        (True, (12, 3, 1), "warning"),
        (False, (9, 7, 4), "ok"),
        (False, (10, 0, 0), "warning"),
    ]:
        report = Report("here")
        check_version(PretendedServer(mariadb=mariadb, version=version), report)
        assert [f.level for f in report.findings] == [level]


@pytest.mark.parametrize(
    ("mariadb", "version", "warned"),
    [(True, YOUNG, True), (True, OLD, False), (False, (9, 7, 4), False)],
)
def test_a_younger_mariadb_does_not_log_what_it_computes(mariadb, version, warned):
    server, report = PretendedServer(mariadb=mariadb, version=version), Report("here")
    check_filled(server, ["g"], Route(0, ("x", "t")), report)
    assert [f.code for f in report.findings] == ["generated-columns"] * warned


@pytest.mark.parametrize(
    ("options", "warned", "filled"),
    [
        ({}, False, True),
        ({"target": ("", "index")}, True, True),
        ({"target": ("", "index"), "exclude": ("G",)}, False, True),
        ({"where": "id > 1"}, True, False),
        ({"where": "id > 1", "exclude": ("g",)}, False, False),
        ({"where": "G > 1", "exclude": ("g",)}, True, False),
        ({"where": "id > 1", "rereads": True}, False, False),
        ({"conflict": ConflictPolicy("at", from_home=False)}, True, False),
    ],
)
def test_who_needs_what_a_younger_mariadb_does_not_log(options, warned, filled):
    server = PretendedServer(mariadb=True, version=YOUNG)
    columns = (Column("id", Kind.INTEGER), Column("g", Kind.INTEGER, generated=True))
    route = Route(0, **{"target": ("x", "t"), **options})
    report = Report("here")
    check_generated(server, RowSchema("s", "t", columns, (0,)), [route], report)
    assert [f.code for f in report.findings] == ["generated-columns"] * warned
    report = Report("there")
    check_filled(server, ["g"], route, report)
    assert [f.code for f in report.findings] == ["generated-columns"] * filled


def test_columns_that_a_new_table_does_not_compute():
    columns = (
        Column("id", Kind.INTEGER),
        *(Column(name, Kind.INTEGER, generated=True) for name in ("v", "w", "left")),
    )
    route = Route(0, ("x", "t"), renames={"W": "w"}, exclude=("left",))
    definitions = (
        "`id` int NOT NULL",
        "`v` int GENERATED ALWAYS AS (`id` + 1) STORED",
        "`W` int NULL",
        "PRIMARY KEY (`id`)",
    )
    plan = TablePlan(("x", "t"), definitions, (), "")
    assert made_plain(plan, Flow(RowSchema("s", "t", columns, (0,)), route)) == ["w"]


@pytest.mark.parametrize(
    ("grants", "scope"),
    [
        ([], "`my_shop`.*"),
        (
            ["GRANT USAGE ON *.* TO `u`@`%`", "GRANT SELECT ON `my_shop`.* TO `u`@`%`"],
            "`my_shop`.*",
        ),
        ([r"GRANT SELECT ON `my\_shop`.* TO `u`@`%`"], r"`my\_shop`.*"),
        (["GRANT SELECT ON `my%`.* TO `u`@`%`"], "`my%`.*"),
        (["GRANT SELECT ON `m%`.* TO `u`@`%`", "GRANT DELETE ON `my%`.* TO `u`@`%`"], "`my%`.*"),
        (["GRANT SELECT ON `other`.* TO `u`@`%`"], "`my_shop`.*"),
        (["GRANT SELECT ON `my_shop`.`t` TO `u`@`%`"], "`my_shop`.*"),
        ([r"GRANT SELECT ON `my\_shop`.* TO `role`"], "`my_shop`.*"),
        ([r"GRANT SELECT ON `my\_shop_`.* TO `u`@`%`"], "`my_shop`.*"),
    ],
)
def test_privileges_are_added_where_the_account_has_some(grants, scope):
    assert PretendedServer(grants=grants).scope_of("my_shop") == scope


def test_missing_privileges_are_one_finding_for_a_schema():
    missing = MissingPrivileges(PretendedServer())
    for table in "abcde":
        missing.add("s", table, ["INSERT"])
    missing.add("s", "a", ["DELETE"])
    missing.add("t", "x", [])
    report = Report("here")
    missing.report(report)
    assert report.findings == [
        Finding(
            "error",
            "the account 'u'@'%' lacks INSERT, DELETE on s.a, s.b, s.c and 2 more",
            "here",
            ("GRANT INSERT, DELETE ON `s`.* TO 'u'@'%';",),
            code="missing-privilege",
        )
    ]


def test_errors_become_findings():
    report = Report("p, source h:1")
    with report.at("s.t").failing():
        raise TransientError("no answer", hint="wait", server="h:1", table="s.t", key=5)
    with report.failing():
        raise DataError("odd")
    assert report.findings == [
        Finding(
            "error",
            "no answer (key 5)",
            "p, source h:1, s.t",
            ("wait",),
            unseen=True,
            code="no-answer",
            location="s.t",
        ),
        Finding("error", "odd", "p, source h:1", code="not-readable"),
    ]


def test_only_what_is_missing_is_created():
    statements = create_statements(["xdual", "setl_fence"])
    assert [s.partition(" (")[0].split()[-1] for s in statements[1:]] == [
        "retl.xdual",
        "retl.setl_fence",
    ]
    assert statements[0].startswith("CREATE DATABASE IF NOT EXISTS retl")


def test_two_way():
    two = changed("pipelines[1]", {
        "name": "back",
        "source": {"type": "mysql", "host": "b", "user": "u"},
        "target": {"type": "mysql", "host": "c", "user": "u"},
        "tables": [{"from": "a.b"}],
    })  # fmt: skip
    file = parse_channel(two)
    assert [is_two_way(file, p) for p in file.pipelines] == [True, False]
    file = parse_channel(changed("pipelines[1].source", DTS, two))
    assert [is_two_way(file, p) for p in file.pipelines] == [True, False]
    file = parse_channel(changed("pipelines[0].target", SEARCH, two))
    assert [is_two_way(file, p) for p in file.pipelines] == [False, False]


# -- columns ---------------------------------------------------------------------------------


def column(column_type, **facts):
    return ColumnFacts("c", column_type.partition("(")[0].split()[0], column_type, **facts)


INT, UINT, BIG = column("int(11)"), column("int(10) unsigned"), column("bigint(20)")
TEXT = column("text", length=65535, charset="utf8mb4")
SHORT = column("varchar(10)", length=10, charset="utf8mb4")
CHAR = column("char(10)", length=10, charset="utf8mb4")
LATIN = column("varchar(10)", length=10, charset="latin1")
ASCII = column("varchar(10)", length=10, charset="ascii")
BINARY, VARBINARY = column("binary(4)", length=4), column("varbinary(4)", length=4)
NEW = column("enum('new','it''s')", length=4, charset="utf8mb4")
MORE = column("enum('it''s','paid','new')", length=4, charset="utf8mb4")
DECIMAL, WIDE = (
    column("decimal(10,2)", precision=10, scale=2),
    column("decimal(12,4)", precision=12, scale=4),
)
SECONDS, MICROS = column("datetime"), column("datetime(6)", fraction=6)
JSON, LONGTEXT = column("json"), column("longtext", length=1 << 32, charset="utf8mb4")


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        (INT, INT, ""),
        (INT, BIG, ""),
        (BIG, INT, "is int(11), too small for the source's bigint(20)"),
        (UINT, INT, "is int(11), too small for the source's int(10) unsigned"),
        (UINT, BIG, ""),
        (INT, UINT, "is int(10) unsigned, which takes no negative numbers"),
        (INT, SHORT, "is varchar(10), the source's is int(11)"),
        (SHORT, TEXT, ""),
        (TEXT, SHORT, "is varchar(10), too small for the source's text"),
        (CHAR, SHORT, ""),
        (SHORT, CHAR, "is char(10), which cuts spaces at the end of values off"),
        (NEW, column("enum('NEW','it''s')"), "lacks the labels new"),
        (column("float"), column("float(7,2)"), "is float(7,2), too small for the source's float"),
        (SHORT, LATIN, "is in latin1, which does not hold all of the source's utf8mb4"),
        (LATIN, SHORT, ""),
        (ASCII, LATIN, ""),
        (SHORT, VARBINARY, "is varbinary(4), the source's is varchar(10)"),
        (BINARY, VARBINARY, ""),
        (VARBINARY, BINARY, "is binary(4), which would fill values up with zero bytes"),
        (BINARY, BINARY, ""),
        (NEW, MORE, ""),
        (MORE, NEW, "lacks the labels paid"),
        (NEW, SHORT, ""),
        (DECIMAL, WIDE, ""),
        (WIDE, DECIMAL, "is decimal(10,2), too small for the source's decimal(12,4)"),
        (DECIMAL, column("decimal(10,3)", precision=10, scale=3),
         "is decimal(10,3), too small for the source's decimal(10,2)"),
        (DECIMAL, column("double"), "is double, the source's is decimal(10,2)"),
        (column("float"), column("double"), ""),
        (column("double"), column("float"), "is float, the source's is double"),
        (SECONDS, MICROS, ""),
        (MICROS, SECONDS, "is datetime, too small for the source's datetime(6)"),
        (SECONDS, column("timestamp"), "is timestamp, the source's is datetime"),
        (JSON, LONGTEXT, ""),
        (LONGTEXT, JSON, ""),
        (TEXT, JSON, "is json, the source's is text"),
        (column("bit(4)", precision=4), column("bit(3)", precision=3),
         "is bit(3), too small for the source's bit(4)"),
        (column("point"), column("geometry"), ""),
        (column("geometry"), column("point"), "is point, the source's is geometry"),
        (column("year(4)"), column("year(4)"), ""),
        (column("inet6"), SHORT, "is varchar(10), the source's is inet6"),
    ],
)  # fmt: skip
def test_whether_values_fit(source, target, reason):
    assert misfit(source, target) == reason


CREATED = """CREATE TABLE `or``ders` (
  `id` bigint(20) NOT NULL AUTO_INCREMENT,
  `a,b` varchar(20) DEFAULT 'x,\\n  `id`',
  `own` int(11) DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `own` (`own`),
  CONSTRAINT `fk` FOREIGN KEY (`own`) REFERENCES `owners` (`id`) ON DELETE CASCADE,
  CONSTRAINT `c` CHECK (`own` > 0)
) ENGINE=InnoDB AUTO_INCREMENT=77 DEFAULT CHARSET=utf8mb4"""


@pytest.mark.parametrize(
    ("name", "definition"),
    [
        ("id", "`new` bigint(20) NOT NULL"),
        ("ID", "`new` bigint(20) NOT NULL"),
        ("a,b", "`new` varchar(20) DEFAULT 'x,\\n  `id`'"),
        ("gone", ""),
    ],
)
def test_the_definition_of_a_column(name, definition):
    assert TableText(CREATED).definition(name, "new") == definition


NAMES = st.sampled_from(["a", "b", "c", "d", "A"])


@given(
    st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3, unique=True),
    st.none() | st.lists(NAMES, max_size=3),
    st.lists(NAMES, max_size=2),
    st.dictionaries(NAMES, NAMES, max_size=3),
    st.dictionaries(NAMES, st.just("1 + 1"), max_size=2),
)
def test_columns_pass_here_as_they_do_in_transform(names, include, exclude, renames, expressions):
    route = Route(
        index=0,
        target=("s", "t"),
        include=None if include is None else tuple(include),
        exclude=tuple(exclude),
        renames=renames,
        expressions={n: e for n, e in expressions.items() if n not in renames},
    )
    # The plan wants a key that passes.
    columns = (*(Column(name, Kind.INTEGER) for name in names), Column("k", Kind.TEXT))
    schema = RowSchema("s", "t", columns, key=(len(names),))
    if include is not None:
        route = replace(route, include=(*include, "k"))
    plan = ColumnPlan.build(schema, route, incomplete=True)
    expected = list(zip(plan.sources, (c.name for c in plan.columns), strict=True))
    assert selected_columns(route, schema.names) == expected


class Idle(Server):
    """A server that carries out nothing but what it always does."""

    def __init__(self, running, commands, **variables):
        self.running, self.commands, self.variables = running, commands, variables

    def rows(self, sql, args=()):
        return [("Threads_running", str(self.running))]

    def processes(self):
        return [Process(1, "u", command, 0.0, "", "") for command in self.commands]


@pytest.mark.parametrize(
    ("commands", "scheduler", "reads_binlog", "running", "least"),
    [
        (["Query", "Sleep"], "OFF", True, 1, 2),
        (["Query", "Sleep"], "OFF", False, 1, 1),
        (["Query", "Daemon"], "ON", True, 2, 3),
        (["Query", "Daemon", "Binlog Dump GTID", "Binlog Dump"], "ON", True, 4, 4),
        # Clients work there: what they carry out now is no reason for a warning.
        (["Query", "Query", "Query"], "OFF", True, 9, 2),
        # What is thought to count does not, at some server.
        (["Query", "Daemon"], "ON", False, 1, 1),
    ],
)
def test_a_limit_that_an_idle_server_reaches(commands, scheduler, reads_binlog, running, least):
    server = Idle(running, commands, event_scheduler=scheduler)

    def reported(limit):
        definition = changed("pipelines[0].load_limits", {"threads_running": limit})
        pipeline = parse_channel(definition).pipelines[0]
        report = Report("here")
        check_threads_running(server, pipeline, report, reads_binlog=reads_binlog)
        return [(f.code, f.what) for f in report.findings]

    assert reported(least) == []
    if least > 1:
        ((code, what),) = reported(least - 1)
        assert code == "load-never-begins"
        assert f"carries out {least} statements" in what
        assert f"just now it carried out {running}" in what
