"""What `setl check` prints, and the status that scripts go by."""

import ast
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

import setl
from arbiter.errors import Denied, Unreachable
from setl.channel.reading import parse_channel
from setl.cli.channels import checking
from setl.cli.channels.checking import (
    exit_status,
    finding_row,
    not_in_scripts,
    print_findings,
    sql_scripts,
    summary,
)
from setl.cli.terminal.literal_console import LiteralConsole
from setl.operate.check import with_accepted
from setl.systems.finding import Finding, Report
from tests.unit.cli.cluster_in_memory import definition

SETL = Path(setl.__file__).parent

CASCADE = Finding(
    "error", "the foreign key [fk] has ON DELETE CASCADE", "ab, source db1:3306, s.t",
    ("ALTER TABLE s.t DROP FOREIGN KEY fk;", "Change the child rows in the application"),
    code="foreign-key-action", location="s.t", server="db1:3306", risk=True,
)  # fmt: skip
KEYLESS = Finding(
    "error", "the table has no key", "ab, source db1:3306, s.u", code="no-key", location="s.u",
    server="db1:3306",
)  # fmt: skip
GRANT = Finding(
    "error", "the account lacks SELECT", "ab, target db2:3306", ("GRANT SELECT ON s.* TO u;",),
    code="missing-privilege", location="target", server="db2:3306",
)  # fmt: skip
RETENTION = Finding(
    "warning", "binlogs are removed soon", "ab, source db1:3306", ("SET GLOBAL x = 1;",),
    code="binlog-retention", location="source", server="db1:3306",
)  # fmt: skip
SILENT = Finding(
    "error",
    "no connection",
    "ab, target db2:3306",
    unseen=True,
    code="no-answer",
    location="target",
)
RIGHT = Finding("ok", "MariaDB answers", "ab, source db1:3306", server="db1:3306")


def pipeline(*accept):
    file = definition(pipelines=("ab",), accept=list(accept))
    return parse_channel(file).pipelines[0]


@pytest.mark.parametrize(
    ("findings", "strict", "status"),
    [
        ([RIGHT], True, 0),
        ([RIGHT, RETENTION], False, 0),
        ([RIGHT, RETENTION], True, 1),
        ([CASCADE], False, 1),
        ([SILENT], False, 3),
        ([SILENT, RETENTION], True, 1),
        ([SILENT, GRANT], False, 1),
    ],
)
def test_the_exit_status(findings, strict, status):
    assert exit_status(findings, strict=strict) == status


@pytest.mark.parametrize(
    "accept", ["foreign-key-action@s.t", "foreign-key-action@*", "foreign-key-action*"]
)
def test_a_known_risk_is_accepted(accept):
    found = with_accepted(pipeline(accept, "binlog-retention@source"), [CASCADE, RETENTION, RIGHT])
    assert [finding.level for finding in found] == ["accepted", "accepted", "ok"]
    assert exit_status(found, strict=True) == 0


def test_what_would_not_work_cannot_be_accepted():
    (found,) = with_accepted(pipeline("no-key@s.u"), [KEYLESS])
    assert found.level == "error"
    assert found.hint == ("This cannot be accepted: the channel would not work",)


def test_what_is_accepted_and_not_there_is_reported_unless_a_server_is_silent():
    again = pipeline("foreign-key-action@s.other")
    assert [f.id for f in with_accepted(again, [CASCADE])] == [
        "foreign-key-action@s.t", "accept-unused",
    ]  # fmt: skip
    assert with_accepted(again, [SILENT]) == [SILENT]


def printed(findings, *, verbose):
    out = io.StringIO()
    print_findings(LiteralConsole(file=out, width=200), findings, verbose=verbose)
    return out.getvalue()


def test_people_get_what_is_wrong_and_its_hint():
    assert printed([RIGHT, CASCADE], verbose=False) == (
        "error    foreign-key-action@s.t\n"
        "         ab, source db1:3306, s.t: the foreign key [fk] has ON DELETE CASCADE\n"
        "         → Change the child rows in the application\n"
        "         → 1 statement for db1:3306; `-o sql` prints it\n"
        "         → Or live with it: `accept: [foreign-key-action@s.t]` in the pipeline\n"
    )
    assert "accept" not in printed([KEYLESS, RETENTION], verbose=False)
    everything = printed([RIGHT, CASCADE], verbose=True)
    assert "MariaDB answers" in everything
    assert "→ ALTER TABLE s.t DROP FOREIGN KEY fk;" in everything
    assert summary([RIGHT, RIGHT, CASCADE, RETENTION]) == ("1 to know, 2 right (-v shows all)")


def test_what_is_wrong_with_many_tables_is_read_once():
    missing = [
        Finding(
            "error", "the table does not exist", f"ab, target db2:3306, s.{table}",
            ("CREATE DATABASE s;", f"CREATE TABLE s.{table} (a INT);"),
            code="no-target-table", location=f"s.{table}", server="db2:3306",
        )
        for table in ("a", "b", "c", "d", "e\n", "f", "g")
    ]  # fmt: skip
    other = replace(missing[0], hint=("Note: it is InnoDB", *missing[0].hint))
    assert printed([GRANT, *missing, other, CASCADE], verbose=False).splitlines()[3:] == [
        "error    no-target-table, 7 times",
        "         ab, target db2:3306: the table does not exist",
        "         s.a, s.b, s.c, s.d, s.e\\n and 2 more (`setl check -v` shows each)",
        "         → 8 statements for db2:3306; `-o sql` prints them",
        "error    no-target-table@s.a",
        "         ab, target db2:3306, s.a: the table does not exist",
        "         → Note: it is InnoDB",
        "         → 2 statements for db2:3306; `-o sql` prints them",
        *printed([CASCADE], verbose=False).splitlines(),
    ]
    assert printed(missing, verbose=True).count("no-target-table@s.") == 7
    assert "s.e\\n" in printed(missing[3:5], verbose=False)
    # What may be accepted is decided for each table.
    risks = [replace(CASCADE, location=f"s.{n}", where=f"ab, s.{n}") for n in range(5)]
    assert printed(risks, verbose=False).count("accept: [foreign-key-action@s.") == 5


def test_servers_get_a_script_each_with_every_statement_once():
    scripts = sql_scripts([RIGHT, CASCADE, GRANT, RETENTION, GRANT, KEYLESS], "shop")
    assert scripts == {
        "db1:3306": (
            "-- For the server db1:3306: what `setl check` of channel shop found.\n"
            "\n"
            "-- ab, source db1:3306, s.t: the foreign key [fk] has ON DELETE CASCADE"
            " [foreign-key-action@s.t]\n"
            "ALTER TABLE s.t DROP FOREIGN KEY fk;\n"
            "-- Change the child rows in the application\n"
            "\n"
            "-- ab, source db1:3306: binlogs are removed soon [binlog-retention@source]\n"
            "SET GLOBAL x = 1;\n"
        ),
        "db2:3306": (
            "-- For the server db2:3306: what `setl check` of channel shop found.\n"
            "\n"
            "-- ab, target db2:3306: the account lacks SELECT [missing-privilege@target]\n"
            "GRANT SELECT ON s.* TO u;\n"
        ),
    }


def test_a_name_with_a_line_break_runs_nothing():
    bad = Finding("error", "the table a\nDROP TABLE t; is", "x", ("SELECT 1;",), code="c")
    lines = sql_scripts([bad], "shop")[""].splitlines()
    assert [line for line in lines if line and not line.startswith("--")] == ["SELECT 1;"]


def test_an_id_is_the_kind_and_the_narrowest_position():
    report = Report("ab, target db2:3306", end="target", server="db2:3306")
    report.error("x", code="a")
    report.at("s.t").at("column c").warning("x", code="b")
    report.at("index orders").warning("x", code="c")
    assert [f.id for f in report.findings] == ["a@target", "b@s.t", "c@orders"]
    assert finding_row(report.findings[1])["server"] == "db2:3306"


def kindless(file):
    """Calls that add a finding and do not say of what kind it is."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            adds = node.func.attr in {"error", "warning", "unseen"}
            of_a_log = "log" in ast.unparse(node.func.value)
            if adds and not of_a_log and "code" not in [word.arg for word in node.keywords]:
                yield f"{file}:{node.lineno}"


def test_every_finding_of_our_own_has_a_kind():
    """Otherwise it could not be accepted by itself, nor spoken of."""
    files = [*SETL.glob("systems/*/preflight/*.py"), SETL / "operate" / "check.py"]
    assert len(files) > 20
    assert [location for file in files for location in kindless(file)] == []


def test_a_running_channel_is_not_given_a_file_that_cannot_work(
    shop, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("setl.operate.starting.check_channel", lambda *_, **__: [KEYLESS, SILENT])
    file = tmp_path / "shop.yaml"
    file.write_text(json.dumps(definition(window=7)))
    assert shop.run("apply", str(file)) == 1
    reported = capsys.readouterr().err
    assert "channel shop is not stored; 1 to fix first:" in reported
    assert "the table has no key [no-key@s.u]" in reported
    assert "not checked from here: ab, target db2:3306: no connection" in reported
    assert "window" not in shop.arbiter.channels.one("shop").definition["pipelines"][0]
    assert shop.run("apply", str(file), "--no-check") == 0
    assert shop.arbiter.channels.one("shop").definition["pipelines"][0]["window"] == 7


def test_sql_of_one_server(shop, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("setl.operate.check.check_channel", lambda *_, **__: [CASCADE, GRANT])
    file = tmp_path / "shop.yaml"
    file.write_text(json.dumps(definition()))
    assert shop.run("check", str(file), "-o", "sql", "--server", "db2:3306") == 1
    reported = capsys.readouterr().out
    assert "GRANT SELECT" in reported
    assert "db1" not in reported


@pytest.mark.parametrize(
    ("error", "status"),
    [(Unreachable("no ZooKeeper server answered"), 3), (Denied("the login is refused"), 1)],
)
def test_a_zookeeper_that_does_not_answer_is_a_server_that_does_not(monkeypatch, error, status):
    def joined(*_):
        raise error

    monkeypatch.setattr(checking, "joined", joined)
    written = definition("shop")
    found, *_ = checking._beside_the_cluster(written, parse_channel(written), "zk1:2181", "/setl")
    assert [finding.code for finding in found] == ["zookeeper-unreachable"]
    assert exit_status(found, strict=False) == status


def test_what_no_statement_mends_is_not_left_out_of_scripts_in_silence():
    """A refused account gave an empty script, as a server without faults does."""
    said = "not in the script: ab, source db1:3306, s.u: the table has no key"
    assert not_in_scripts([KEYLESS, GRANT, RETENTION, RIGHT], None) == [said]
    assert not_in_scripts([KEYLESS, GRANT], "db1:3306") == [said]
    assert not_in_scripts([KEYLESS, GRANT], "db2:3306") == []
