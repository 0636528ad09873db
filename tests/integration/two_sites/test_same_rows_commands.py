"""What `setl check` says of tables that both sites write, and how conflicts are listed."""

import json
from contextlib import contextmanager

import pytest

from setl.cli.main import run
from setl.systems.mysql.conflicts.tables import trim_conflicts
from setl.systems.mysql.connection import connect
from setl.systems.mysql.endpoint import mysql_endpoint
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster
from tests.checking import check_channel
from tests.integration.pipelines import execute
from tests.integration.same_rows import SameRows


@pytest.fixture
def sites(servers, position):
    made = SameRows(position, servers, "newest")
    yield made
    made.close()


def faults(sites, site=0):
    """What is wrong with the pipeline from a site."""
    name = ("ab", "ba")[site]
    findings = [f for f in check_channel(sites.file) if f.where.startswith(f"{name}, target")]
    return [(f.level, f.what) for f in findings if f.level != "ok" and "triggers" not in f.what]


def contested_faults(sites):
    found = [f for f in check_channel(sites.file) if f.code.startswith("conflict-")]
    return [(f.level, f.what) for f in found]


def test_tables_as_they_should_be_pass(sites):
    assert faults(sites) == faults(sites, 1) == []


MISTAKES = [
    ("ADD UNIQUE KEY (name)", "error", "has a unique key over name"),
    ("DROP PRIMARY KEY, MODIFY id CHAR(9) PRIMARY KEY", "error", "takes different values for the"),
    ("MODIFY touched VARCHAR(9) NOT NULL", "error", "does not say which row is newer"),
    ("DROP COLUMN touched", "error", "names a column touched, which"),
    ("MODIFY touched BIGINT NULL", "warning", "can be NULL"),
]


@pytest.mark.parametrize(("change", "level", "what"), MISTAKES)
def test_what_a_policy_does_not_allow(sites, change, level, what):
    for server in sites.servers:
        execute(server, f"ALTER TABLE {sites.table} {change}")
    found = faults(sites)
    assert [found_level for found_level, text in found if what in text][:1] == [level], found


def test_columns_must_look_the_same(sites):
    execute(sites.servers[1], f"ALTER TABLE {sites.table} MODIFY amount DECIMAL(14,4) NULL")
    assert any("equal values do not look equal" in what for _, what in faults(sites))


def test_triggers_that_may_change_rows_are_named(sites):
    site = sites.servers[1]
    event = f"{sites.table} FOR EACH ROW SET"
    execute(site, f"CREATE TRIGGER {sites.db}.after_it AFTER UPDATE ON {event} @seen = NEW.id")
    assert not any("triggers (" in what for _, what in contested_faults(sites))
    execute(site, f"CREATE TRIGGER {sites.db}.before_it BEFORE UPDATE ON {event} NEW.name = 'x'")
    found = [(level, what.split(" run ")[0]) for level, what in contested_faults(sites)]
    assert found == [("error", "triggers (before_it)")]


def test_tables_whose_numbers_both_sites_give_are_named(sites, request):
    def reported():
        found = [f for f in check_channel(sites.file) if f.code == "same-numbers"]
        return [(f.level, sites.table in f.what) for f in found]

    first, second = sites.servers
    counting = f"ALTER TABLE {sites.table} MODIFY id INT NOT NULL AUTO_INCREMENT"
    execute(first, counting)
    assert reported() == []
    execute(second, counting)
    assert reported() == [("warning", True)] * 2
    for server, offset in ((first, 1), (second, 2)):
        back = "auto_increment_increment = 1", "auto_increment_offset = 1"
        request.addfinalizer(lambda server=server, back=back: set_globals(server, *back))
        set_globals(server, "auto_increment_increment = 2", f"auto_increment_offset = {offset}")
    assert reported() == []


def set_globals(server, *settings):
    execute(server, *(f"SET GLOBAL {setting}" for setting in settings))


@pytest.mark.family("mariadb")
def test_columns_whose_values_have_two_forms_are_refused(sites):
    for server in sites.servers:
        execute(server, f"ALTER TABLE {sites.table} ADD u UUID, ADD i INET6")
    found = [f.what for f in check_channel(sites.file) if f.code == "conflict-types"]
    assert [what.split(",")[0] for what in found] == [
        "the column u is uuid",
        "the column i is inet6",
    ] * 2


def test_both_directions_must_agree(sites):
    pipelines = list(sites.file.pipelines)
    mappings = list(pipelines[1].tables)
    plain = mappings[0].model_copy(update={"conflict": None, "exclude": ["raw"]})
    pipelines[1] = pipelines[1].model_copy(update={"tables": [plain, *mappings[1:]]})
    sites.file = sites.file.model_copy(update={"pipelines": pipelines})
    found = " ".join(what for _, what in faults(sites))
    assert "the policy is `newest: touched` here, and `source` in the other direction" in found
    assert "the column raw does not come back as raw" in found


def test_missing_tables_are_named_with_the_statements_that_make_them(sites):
    execute(sites.servers[1], "RENAME TABLE retl.setl_recent TO retl.setl_elsewhere")
    try:
        found = [f for f in check_channel(sites.file) if "setl_recent" in f.what]
    finally:
        execute(sites.servers[1], "RENAME TABLE retl.setl_elsewhere TO retl.setl_recent")
    (finding,) = [f for f in found if f.level == "error"]
    assert any("CREATE TABLE IF NOT EXISTS retl.setl_recent" in s for s in finding.statements)


@pytest.fixture
def command(sites, capsys):
    """Runs `setl conflicts` against the channel; gives what it printed."""
    cluster = MemoryCluster()
    arbiter = MemoryArbiter(cluster)
    definition = sites.file.model_dump(mode="json", by_alias=True, exclude_none=True)
    arbiter.channels.put(sites.file.channel, definition)

    @contextmanager
    def connected(zookeeper, root):
        yield MemoryArbiter(cluster)

    def do(*arguments):
        assert run(["conflicts", *arguments], connected) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return do


def test_conflicts_are_listed_and_trimmed(sites, command):
    for number in range(3):
        sites.write(0, f"INSERT INTO {{t}} (id, raw, touched) VALUES ({number}, x'ff', 1)")
        sites.write(1, f"INSERT INTO {{t}} (id, raw, touched) VALUES ({number}, x'00', 2)")
    sites.lead()
    sites.wait_until_equal()
    for running in sites.runs.values():
        running.stop()
    channel = sites.file.channel
    listed = json.loads(command("list", channel, "-o", "json"))
    assert {row["pipeline"] for row in listed} == {f"{channel}/ab", f"{channel}/ba"}
    at_b = json.loads(command("list", f"{channel}/ab", "--table", sites.table, "-o", "json"))
    assert [(row["key"], row["winner"]) for row in at_b] == [
        ({"id": n}, "target") for n in (0, 1, 2)
    ]
    assert [at_b[0][what]["raw"] for what in ("incoming", "held", "result")] == ["ff", "00", "00"]
    assert "touched 2" in command("list", f"{channel}/ab", "-n", "1")
    assert json.loads(command("list", channel, "--table", "no.such", "-o", "json")) == []
    figures = sites.runs["ab"].figures
    assert (figures.conflicts_source, figures.conflicts_target) == (0, 3)
    assert "deleted" in command("trim", channel, "--keep", "1")
    assert len(sites.conflicts(0)) == len(sites.conflicts(1)) == 1
    command("trim", channel, "--keep", "0", "-o", "json")
    assert sites.conflicts(0) == sites.conflicts(1) == ()
    # What is deleted from the list travels nowhere.
    sites.lead()
    a, b = sites.wait_until_equal()
    assert a == b


def test_a_long_list_is_cut_to_the_newest(sites):
    pipeline = f"{sites.file.channel}/ab"
    with connect(mysql_endpoint(sites.file.pipelines[0].target)) as connection:
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO retl.setl_conflict (pipeline, schema_name, table_name, row_key,"
                " column_names, policy, winner, version)"
                " VALUES (%s, '', '', '', '', '', '', %s)",
                [(pipeline, n) for n in range(1200)],
            )
        assert trim_conflicts(connection, pipeline, 100) == 1100
        assert trim_conflicts(connection, pipeline, 100) == 0
    stored = sites.conflicts(1, "version")
    assert [row[0] for row in stored] == list(range(1100, 1200))
