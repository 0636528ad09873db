"""Tables that both sites write are loaded while they do, and the policy decides."""

import threading

import pytest

from setl.run.measured.figures import RunState
from setl.run.table_loads import loading as table_loading
from tests.integration.pipelines import mysql
from tests.integration.same_rows import SameRows
from tests.integration.two_sites.test_same_rows import Users
from tests.waiting import eventually

ONLY_A, ONLY_B = range(1000, 1100), range(2000, 2100)
BOTH, SAME = range(3000, 3200), range(4000, 4050)
PAUSES = (0, 0.001, 0.05, 0.2)
"""Seconds between two statements of a user: in bursts, and with time for the load between."""


@pytest.fixture
def small_steps(monkeypatch):
    monkeypatch.setattr(table_loading, "_MOST_ROWS", 120)
    monkeypatch.setattr(table_loading, "_LEAST_ROWS", 40)


@pytest.fixture
def sites(servers, position, small_steps):
    made = []

    def make(policy, *loading, **options):
        sources = [
            {
                **mysql(server),
                # Where the binlogs end when the pipelines begin: nobody wrote what is there before.
                "start": {"load": True} if name in loading else "latest",
                "heartbeat": 0.2,
            }
            for name, server in zip(("ab", "ba"), servers, strict=True)
        ]
        made.append(SameRows(position, servers, policy, sources=sources, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def fill(sites):
    """Rows of which one site has each, rows that differ, and rows that do not."""

    def rows(ids, name, touched):
        values = ", ".join(f"({i}, '{name}', {touched(i)})" for i in ids)
        return f"INSERT INTO {{t}} (id, name, touched) VALUES {values}"

    sites.write(
        0,
        rows(ONLY_A, "a", lambda i: i),
        rows(BOTH, "a", lambda i: 50),
        rows(SAME, "same", lambda i: 7),
    )
    sites.write(
        1,
        rows(ONLY_B, "b", lambda i: i),
        rows(BOTH, "b", lambda i: 49 + i % 3),  # older, as new, newer
        rows(SAME, "same", lambda i: 7),
    )


def begin(sites, *names):
    """Start, and wait until each pipeline has a position: what is written before is none of its."""
    sites.lead(*names)
    for name in names or ("ab", "ba"):
        run = sites.runs[name]

        def begun(run=run, name=name):
            if not run.thread.is_alive():
                raise RuntimeError(f"{name} has ended: {run.error}")
            return run.figures.state is RunState.RUNNING

        eventually(begun, 60, message=f"{name} runs")


def loaded(sites, *names):
    def done():
        for name in names:
            run = sites.runs[name]
            if not run.thread.is_alive():
                raise RuntimeError(f"{name} has ended: {run.error}")
            reported = run.figures.table_load
            assert reported is not None, name
            assert reported.state == "done", (name, reported, run.figures.error)
        return True

    eventually(done, 180, message="the tables are loaded")


def stays(policy, number):
    """Whose row: site B is the home site, and its rows are older, as new, or newer."""
    return "a" if policy == "newest" and number % 3 == 0 else "b"


ONE, BOTH_WAYS = ("ab",), ("ab", "ba")
TURNS = "each policy, and each number of directions, is once on either family"


@pytest.mark.parametrize(
    ("directions", "policy"),
    [
        pytest.param(directions, policy, id=name, marks=pytest.mark.family(family, why=TURNS))
        for name, directions, policy, family in (
            ("one way-newest", ONE, "newest", "mysql"),
            ("one way-home", ONE, "home", "mariadb"),
            ("both ways-newest", BOTH_WAYS, "newest", "mariadb"),
            ("both ways-home", BOTH_WAYS, "home", "mysql"),
        )
    ],
)
def test_both_sites_end_equal_whatever_they_write_meanwhile(sites, policy, directions):
    both = sites(policy, *directions, home="ba", rows_per_task=10)
    fill(both)
    begin(both)
    users = [Users(both, site, 3 + site, PAUSES) for site in (0, 1)]
    eventually(lambda: min(user.written for user in users) > 20, 60)
    loaded(both, *directions)
    # What is deleted where it is not loaded from is not brought back.
    both.write(1, "DELETE FROM {t} WHERE id IN (1000, 3000)")
    for user in users:
        user.stop()
    a, b = both.wait_until_equal(timeout=180)
    expected = dict.fromkeys(ONLY_A, "a") | dict.fromkeys(SAME, "same")
    expected |= {i: stays(policy, i) for i in BOTH}
    for gone in (1000, 3000):
        del expected[gone]
    there = {row[0]: row[1] for row in b if row[0] >= 1000}
    assert there == expected | dict.fromkeys(ONLY_B, "b")
    if directions == ("ab",):
        a += tuple(row for row in b if row[0] in ONLY_B)
    assert sorted(a) == sorted(b)
    assert sum(run.figures.echoes_replicated for run in both.runs.values()) == 0
    assert ("forgot",) not in (*both.conflicts(0), *both.conflicts(1))


def test_a_delete_that_is_under_way_is_not_undone(sites):
    both = sites("home", "ab", home="ab")
    both.write(0, "INSERT INTO {t} (id, name) VALUES (1, 'a'), (2, 'a'), (3, 'a')")
    both.write(1, "INSERT INTO {t} (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'a')")
    begin(both, "ba")
    both.runs["ba"].stop()
    # What site B writes is under way while A's table is loaded.
    both.write(1, "DELETE FROM {t} WHERE id < 3", "UPDATE {t} SET name = 'b' WHERE id = 3")
    both.lead("ab")
    loaded(both, "ab")
    both.lead("ba")
    a, b = both.wait_until_equal()
    assert a == b
    assert [row[:2] for row in b] == [(3, "b")]


@pytest.mark.family("mariadb", why="test_table_load has leaders that die, on both families")
def test_leaders_that_die_while_both_sites_write(sites):
    both = sites("newest", "ab", "ba", home="ab", rows_per_task=10)
    fill(both)
    begin(both)
    users = [Users(both, site, 11 + site, PAUSES) for site in (0, 1)]
    over = threading.Event()
    for number in range(3):
        over.wait(1.0)
        both.replace_leader(("ab", "ba")[number % 2], f"n{number + 2}")
    loaded(both, "ab", "ba")
    for user in users:
        user.stop()
    a, b = both.wait_until_equal(timeout=180)
    assert a == b
    assert {row[0] for row in a} >= {*ONLY_A, *ONLY_B, *BOTH, *SAME}


def damage(server, *statements):
    """Change a site as no client does: nothing of it is in the binlog."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        for statement in statements:
            cursor.execute(statement)


@pytest.mark.timeout(900)  # verification is throttled by the stream
@pytest.mark.family("mariadb", why="how such rows are loaded is tested with both above")
def test_what_standing_verification_repairs_by_itself_while_both_sites_write(sites):
    # What each policy makes of rows that were read is tested above; here, that repair asks it.
    verify = {"every": "3s", "rate": 200_000, "repair": True}
    both = sites("newest", home="ab", plain="home", verify=verify)
    both.write(
        0,
        "INSERT INTO {t} (id, name, touched) VALUES "
        + ", ".join(f"({i}, 'a', 50)" for i in range(1000, 1300)),
    )
    begin(both)
    # Rows that change while they are compared are compared again, so not too often.
    users = [Users(both, site, 21 + site, pauses=(0.3, 0.9)) for site in (0, 1)]
    eventually(lambda: sum(row[0] >= 1000 for row in both.rows(1)) == 300, 180)
    damage(
        both.servers[1],
        f"DELETE FROM {both.table} WHERE id IN (1000, 1100)",
        f"UPDATE {both.table} SET name = 'older', touched = 49 WHERE id = 1001",
        f"UPDATE {both.table} SET name = 'as new' WHERE id = 1002",
        f"UPDATE {both.table} SET name = 'newer', touched = 51 WHERE id = 1003",
        f"INSERT INTO {both.table} (id, name, touched) VALUES (5000, 'only b', 1)",
    )
    damage(both.servers[0], f"DELETE FROM {both.table} WHERE id = 1200")
    expected = dict.fromkeys(range(1000, 1300), "a") | {1003: "newer", 5000: "only b"}

    def repaired():
        for run in both.runs.values():
            if not run.thread.is_alive():
                raise RuntimeError(f"a run has ended: {run.error}")
        for site in (0, 1):
            assert {row[0]: row[1] for row in both.rows(site) if row[0] >= 1000} == expected
        return True

    eventually(repaired, 500, interval=0.5, message="both sites are as the policy says")
    for user in users:
        eventually(lambda user=user: user.written > 20 or user.error, 60)
        user.stop()
    a, b = both.wait_until_equal(timeout=180)
    assert a == b
    assert {row[0]: row[1] for row in a if row[0] >= 1000} == expected
    reported = [run.figures.verification for run in both.runs.values()]
    assert sum(each.counters.repaired for each in reported) >= 5
    assert sum(run.figures.echoes_replicated for run in both.runs.values()) == 0
