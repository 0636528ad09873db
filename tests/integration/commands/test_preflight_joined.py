"""What `setl check` says of tables that go into one table of the target."""

import pytest

from setl.clock import SystemClock
from setl.errors import ConfigurationError
from setl.operate.check import check_pipeline
from setl.systems.mysql.sink.single_writer import MysqlSingleWriterTables
from setl.systems.pipeline_check import PipelineCheck
from tests.integration.pipelines import execute, fresh_name, install_system_tables, mysql, one_way
from tests.loading import endpoint_of


@pytest.fixture
def sites(site_a, site_b):
    names = [fresh_name(name) for name in ("one", "two", "both")]
    for server in (site_a, site_b):
        install_system_tables(server)
    for server, name in ((site_a, names[0]), (site_a, names[1]), (site_b, names[2])):
        execute(server, f"CREATE DATABASE {name}")
    for name in names[:2]:
        execute(site_a, f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT)")
    yield site_a, site_b, *names
    for server, name in ((site_a, names[0]), (site_a, names[1]), (site_b, names[2])):
        execute(server, f"DROP DATABASE {name}")


def said(sites, more=()):
    a, b, one, two, both = sites
    tables = [{"from": f"{name}.t", "to": f"{both}.t", **dict(more)} for name in (one, two)]
    found = check_pipeline(PipelineCheck(one_way(a, mysql(b), tables).pipelines[0]))
    return [(f.level, f.what) for f in found if f.where.endswith(f"{both}.t") and f.level != "ok"]


def test_tables_that_come_together(sites):
    a, b, one, two, both = sites
    execute(b, f"CREATE TABLE {both}.t (id INT PRIMARY KEY, v INT)")
    execute(a, f"INSERT INTO {one}.t VALUES (1, 1), (2, 2)", f"INSERT INTO {two}.t VALUES (3, 3)")
    ((level, what),) = said(sites)
    assert (level, "would become one unseen" in what) == ("warning", True)
    execute(a, f"INSERT INTO {two}.t VALUES (2, 9)")
    ((level, what),) = said(sites)
    assert level == "error"
    assert what == f"{one}.t and {two}.t have rows with the same key, which would become one"
    ((level, what),) = said(sites, {"where": "id < 2"})
    assert level == "warning"


def test_a_column_that_says_where_a_row_is_from_does_not_find_it(sites):
    _, b, _, _, both = sites
    execute(b, f"CREATE TABLE {both}.t (site INT, id INT, v INT, PRIMARY KEY (site, id))")
    found = said(sites, {"columns": {"site": "1"}})
    assert [level for level, what in found if "own keys alone, without site" in what] == ["error"]


def test_one_table_alone_is_no_matter(sites):
    a, b, one, _, both = sites
    execute(b, f"CREATE TABLE {both}.t (id INT PRIMARY KEY, v INT)")
    file = one_way(a, mysql(b), [{"from": f"{one}.t", "to": f"{both}.t"}])
    assert "one unseen" not in str(check_pipeline(PipelineCheck(file.pipelines[0])))


@pytest.mark.family("mariadb", why="both say it with the same variable; one server is enough")
def test_names_that_differ_in_case_are_one_table_to_some_servers(
    site_a, site_b, another_server, tmp_path
):
    name = fresh_name("names")
    lower = another_server(tmp_path, "lower", 77, options=("--lower-case-table-names=1",))
    with lower:
        install_system_tables(lower)
        for server in (site_a, site_b, lower):
            execute(server, f"CREATE DATABASE {name}")
        for server, table in (
            (site_a, "T"),
            (site_a, "t"),
            (site_b, "T"),
            (site_b, "t"),
            (lower, "t"),
        ):
            execute(server, f"CREATE TABLE {name}.{table} (id INT PRIMARY KEY)")
        for target, one in ((site_b, False), (lower, True)):
            file = one_way(site_a, mysql(target), [{"from": f"{name}.*"}])
            found = check_pipeline(PipelineCheck(file.pipelines[0]))
            assert ("joined-names" in {f.code for f in found}) is one
        for wrong, level, code in (
            (f"{name}.T", "error", "name-case"),
            (f"{name.upper()}.T*", "warning", "no-table"),
        ):
            file = one_way(lower, mysql(site_b), [{"from": wrong}])
            found = check_pipeline(PipelineCheck(file.pipelines[0]))
            said = [(f.level, f.code) for f in found if f"{name}.t" in f.what]
            assert said == [(level, code)], found
        two = MysqlSingleWriterTables(endpoint_of(site_b), SystemClock())
        two.check_name_collisions({(name, "T"), (name, "t")}, 1)
        one = MysqlSingleWriterTables(endpoint_of(lower), SystemClock())
        one.check_name_collisions({(name, "T"), (name, "u")}, 1)
        with pytest.raises(ConfigurationError, match=f"{name}.T and {name}.t are one table"):
            one.check_name_collisions({(name, "t")}, 1)
        one.check_name_collisions({(name, "t")}, 2)  # the table may be renamed by now
    for server in (site_a, site_b):
        execute(server, f"DROP DATABASE {name}")
