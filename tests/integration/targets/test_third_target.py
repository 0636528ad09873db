"""A target that setl does not bring: one folder of code and one line name it, see tests/plugins."""

import json
import os
import subprocess
import sys

import pytest
import yaml

from setl.channel.file import Pipeline
from setl.errors import ConfigurationError
from setl.model.change import TargetChanges
from setl.model.schema import Column, Kind
from setl.operate.verify import verify_pipeline
from setl_jsonlines.lines import file_of, rows_in
from setl_jsonlines.sink import JsonLinesSinkSettings
from tests.checking import check_channel
from tests.integration.pipelines import ORDERS, execute, install_system_tables, on_a, one_way, site
from tests.loading import ticket_for

ROWS = "INSERT INTO {db}.orders (id, name, amount, payload) VALUES {rows}"


@pytest.fixture
def server(site_a):
    install_system_tables(site_a)
    return site_a


db = on_a("lines", ORDERS, system_tables=True)


def rows(numbers):
    return ", ".join(f"({n}, '名{n}', {n}.5, x'00ff')" for n in numbers)


def test_it_has_no_tables_to_be_created(server, db, spark, tmp_path):
    target = {"type": "jsonlines", "folder": str(tmp_path)}
    file = one_way(server, target, [{"from": f"{db}.orders", "create": True}])
    (problem,) = [f for f in check_channel(file) if f.level == "error"]
    assert problem.what == "this target has no tables that could be created"
    with (
        site(spark) as position,
        pytest.raises(ConfigurationError, match="no tables that could be"),
    ):
        position.lead(file)


def test_a_pipeline_runs_into_it_and_verify_reports_what_differs(server, db, spark, tmp_path):
    tables = [{"from": f"{db}.orders", "columns": {"name": "concat(name, '!')"}}]
    file = one_way(server, {"type": "jsonlines", "folder": str(tmp_path)}, tables)
    pipeline: Pipeline = file.pipelines[0]
    assert [f.what for f in check_channel(file) if f.level == "error"] == []
    with site(spark) as position:
        run = position.lead(file)
        execute(server, ROWS.format(db=db, rows=rows(range(1, 301))))
        execute(
            server,
            f"UPDATE {db}.orders SET amount = 7, id = 1001 WHERE id = 1",
            f"DELETE FROM {db}.orders WHERE id BETWEEN 100 AND 199",
        )
        run.applied(401)
    lines = file_of(str(tmp_path), db, "orders")
    found = rows_in(lines)
    assert len(found) == 200
    assert found["[1001]"]["amount"] == "7.000000"
    assert found["[2]"] == found["[2]"] | {"name": "名2!", "payload": {"hex": "00ff"}}
    (same,) = verify_pipeline(spark, pipeline)
    assert (same.source_rows, same.target_rows, same.differences) == (200, 200, 0)
    with lines.open("a") as out:
        newest = 1 << 62
        out.write(json.dumps([newest, "[2]", found["[2]"] | {"name": "other"}]) + "\n")
        out.write(json.dumps([newest, "[3]", None]) + "\n")
        out.write(json.dumps([newest, "[5000]", found["[2]"] | {"id": 5000}]) + "\n")
    (verdict,) = verify_pipeline(spark, pipeline, wait=lambda _: None)
    assert (verdict.missing, verdict.extra, verdict.different) == (1, 1, 1)
    assert {key.key for key in verdict.sample_keys} == {"2", "3", "5000"}


def test_what_a_former_leader_still_writes_changes_nothing(tmp_path):
    columns = (Column("id", Kind.INTEGER), Column("name", Kind.TEXT))
    sink = JsonLinesSinkSettings(str(tmp_path)).make_sink()
    for name, version in (("new", 9), ("old", 7)):
        changes = TargetChanges(("s", "t"), columns, (0,), [(1, name)], [], [version], [])
        sink.apply(ticket_for("lines"), [changes])
    with file_of(str(tmp_path), "s", "t").open("a") as file:
        file.write('[99, "[1]", {"id"')  # whoever wrote this died in the middle of it
    changes = TargetChanges(("s", "t"), columns, (0,), [(2, "two")], [], [10], [])
    sink.apply(ticket_for("lines"), [changes])
    rows = rows_in(file_of(str(tmp_path), "s", "t"))
    assert {row["id"]: row["name"] for row in rows.values()} == {1: "new", 2: "two"}


def test_what_is_wrong_with_it_is_found_before(server, db, tmp_path):
    tables = [{"from": f"{db}.orders"}]
    target = {"type": "jsonlines", "folder": str(tmp_path / "none")}
    file = one_way(server, target, tables, faulty_rows="dead_letter")
    errors = [f.what for f in check_channel(file) if f.level == "error"]
    assert errors == [f"there is no folder {tmp_path / 'none'}", "a folder keeps no dead letters"]
    with pytest.raises(ConfigurationError, match="folder"):
        one_way(server, {"type": "jsonlines"}, tables)


def test_the_command_knows_it_as_it_knows_others(server, db, tmp_path):
    file = one_way(server, {"type": "jsonlines", "folder": str(tmp_path)}, [{"from": f"{db}.*"}])
    path = tmp_path / "channel.yaml"
    path.write_text(yaml.safe_dump(json.loads(file.model_dump_json(by_alias=True))))
    command = [sys.executable, "-c", "from setl.cli.main import main; main()"]
    done = subprocess.run(
        [*command, "check", str(path), "-o", "json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{tmp_path} can be written to" in done.stdout
