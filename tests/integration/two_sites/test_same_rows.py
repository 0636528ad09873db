"""Both sites write the same rows: conflicts, who wins, and that both end equal (I17)."""

import json
import os
import random
import threading
import time
from collections import Counter
from decimal import Decimal

import pytest

from tests.deadlocks import repeated
from tests.integration.pipelines import execute, fresh_name, one_way
from tests.integration.same_rows import SameRows
from tests.waiting import eventually

FIRST = "INSERT INTO {t} (id, name, touched) VALUES (1, 'first', 5)"


@pytest.fixture
def both(servers, position):
    made = []

    def make(policy, **options):
        made.append(SameRows(position, servers, policy, **options))
        return made[-1]

    yield make
    for one in made:
        for run in one.runs.values():
            run.abort()
        one.close()


def changed(name, touched, number=1):
    return f"UPDATE {{t}} SET name = '{name}', touched = {touched} WHERE id = {number}"


def inserted(name, touched):
    return f"INSERT INTO {{t}} (id, name, touched) VALUES (1, '{name}', {touched})"


def gone(number):
    return f"DELETE FROM {{t}} WHERE id = {number}"


# By policy and home: rows, what each site does to each, and what stays: "a", "b" or "none". A site
# changes the time of a row to a number, of which it was 5, or deletes the row.
GONE = None
CASES = {
    ("newest", "ab"): {
        "both change": (6, 7, "b"),
        "a clock that is behind": (9, 1, "a"),
        "as new, A is home": (7, 7, "a"),
        "deleted, changed later": (GONE, 6, "b"),
        "deleted, changed with an older clock": (GONE, 4, "none"),
        "changed as old as it was, deleted": (5, GONE, "none"),
    },
    ("newest", "ba"): {"as new, B is home": (7, 7, "b")},
    ("home", "ab"): {
        "both change": (1, 9, "a"),
        "home deletes": (GONE, 9, "none"),
        "the other deletes": (1, GONE, "a"),
        "both delete": (GONE, GONE, "none"),
    },
    ("home", "ba"): {"home is B": (9, 1, "b")},
}


@pytest.mark.parametrize(("policy", "home"), CASES)
def test_who_wins(both, policy, home):
    cases = dict(enumerate(CASES[policy, home].items(), start=1))
    sites = both(policy, home=home)
    sites.lead()
    sites.write(0, *(FIRST.replace("(1,", f"({number},") for number in cases))
    sites.wait_until_equal()
    for run in sites.runs.values():
        run.stop()
    for number, (_, (at_a, at_b, _)) in cases.items():
        for site, name, touched in ((0, "a", at_a), (1, "b", at_b)):
            statement = gone(number) if touched is GONE else changed(name, touched, number)
            sites.write(site, statement)
    sites.lead()
    a, b = sites.wait_until_equal()
    assert a == b
    there = {row[0]: row[1] for row in a}
    found = {case: there.get(number, "none") for number, (case, _) in cases.items()}
    assert found == {case: stays for case, (_, _, stays) in cases.values()}
    conflicts = {key for site in (0, 1) for (key,) in sites.conflicts(site, "row_key")}
    assert sorted(json.loads(key)["id"] for key in conflicts) == [*cases]
    # Counted a moment after it can be seen.
    runs = sites.runs.values()
    eventually(lambda: sum(run.figures.rows_loopback for run in runs) > 0, 30)


@pytest.mark.parametrize("policy", ["newest", "home"])
def test_both_insert_a_row(both, policy):
    sites = both(policy)
    sites.write(0, inserted("a", 3))
    sites.write(1, inserted("b", 2))
    sites.lead()
    a, b = sites.wait_until_equal()
    assert a == b
    assert [row[1] for row in a] == ["a"]


@pytest.mark.parametrize("policy", ["newest", "home"])
def test_a_key_changes_to_one_that_the_other_site_gives_out(both, policy):
    sites = both(policy)
    sites.lead()
    sites.write(0, FIRST)
    sites.wait_until_equal()
    for run in sites.runs.values():
        run.stop()
    sites.write(0, "UPDATE {t} SET id = 2, name = 'moved', touched = 8 WHERE id = 1")
    sites.write(1, "INSERT INTO {t} (id, name, touched) VALUES (2, 'new', 7)")
    sites.lead()
    a, b = sites.wait_until_equal()
    assert a == b
    assert [row[:2] for row in a] == [(2, "moved")]


def test_values_of_all_kinds_compare_as_they_are(both):
    """Nothing is a conflict that is none: what the codec says is what the server says."""
    sites = both("home")
    sites.lead()
    sites.write(
        0,
        "INSERT INTO {t} VALUES"
        " (1, 'naïve 🦊 ''\\\\', 1.5, 0.1, x'00ff20', '2026-01-02 03:04:05.1', 7),"
        " (2, NULL, NULL, NULL, NULL, NULL, 0), (3, '', -0.001, 1e300, '', NULL, -1)",
        "SET sql_mode = ''",
        "INSERT INTO {t} VALUES (4, '', 0, 0, '', '0000-00-00', 0)",
    )
    sites.wait_until_equal()
    for _ in range(2):
        sites.write(0, "UPDATE {t} SET touched = touched + 1")
        sites.write(0, "UPDATE {t} SET rate = touched / 3")
        sites.wait_until_equal()
        sites.write(1, "UPDATE {t} SET touched = touched + 1, amount = amount + 0.125")
        a, b = sites.wait_until_equal()
        assert a == b
    assert sites.conflicts(0) == sites.conflicts(1) == ()


def test_bytes_and_text_of_a_conflict_arrive_as_they_are(both):
    sites = both("home")
    sites.write(0, "INSERT INTO {t} VALUES (1, 'ü🦊\\\\', 1.25, 0.1, x'ff00', NULL, 1)")
    sites.write(1, "INSERT INTO {t} VALUES (1, 'b', 2, 2, x'01', NULL, 2)")
    sites.lead("ba")
    eventually(lambda: sites.conflicts(0), 60)
    sites.lead("ab")
    a, b = sites.wait_until_equal()
    assert a == b
    assert a[0][1:5] == ("ü🦊\\", Decimal("1.250"), 0.1, b"\xff\x00")


def test_what_is_delivered_again_does_not_undo_what_was_written_since(both):
    sites = both("newest")
    sites.lead()
    sites.write(0, FIRST)
    sites.wait_until_equal()
    of_ab = f"WHERE pipeline = '{sites.file.channel}/ab'"
    stored = execute(sites.servers[1], f"SELECT checkpoint FROM retl.setl_checkpoint {of_ab}")
    sites.write(0, changed("a", 6), "INSERT INTO {t} (id, name, touched) VALUES (2, 'a', 6)")
    sites.wait_until_equal()
    for run in sites.runs.values():
        run.stop()
    sites.write(1, "DELETE FROM {t} WHERE id = 2", changed("b", 1))
    with sites.servers[1].connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"UPDATE retl.setl_checkpoint SET checkpoint = %s {of_ab}", stored[0])
    sites.lead()
    a, b = sites.wait_until_equal()
    assert a == b
    assert [row[:2] for row in a] == [(1, "b")]
    # Counted a moment after it can be seen.
    eventually(lambda: sites.runs["ab"].figures.rows_redelivered >= 2, 30)
    assert sites.conflicts(0) == sites.conflicts(1) == ()


def test_a_row_that_appears_while_a_load_runs_is_a_conflict(both):
    """The load finds no row, and waits for one that a user is inserting at that moment."""
    sites = both("home")
    with sites.servers[1].connect(autocommit=False) as user, user.cursor() as cursor:
        cursor.execute(inserted("b", 1).format(t=sites.table))
        sites.lead("ab")
        sites.write(0, inserted("a", 1))
        waiting = (
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST"
            f" WHERE INFO LIKE 'INSERT INTO `{sites.db}`%%' OR INFO LIKE '%%{sites.db}%%FOR UPDATE'"
        )
        eventually(lambda: execute(sites.servers[1], waiting)[0][0], 60)
        user.commit()
    sites.lead("ba")
    a, b = sites.wait_until_equal()
    assert a == b
    assert [row[1] for row in a] == ["a"]
    assert sites.conflicts(1)[0][0] == "source"


class Users(threading.Thread):
    """Users of one site, who write the same few rows at random until they are told to stop.

    Args:
        sites: both.
        site: which of them, 0 or 1.
        seed: for what they write.
        pauses: seconds between two statements, chosen at random.
    """

    def __init__(self, sites, site, seed, pauses=(0, 0.001, 0.01, 0.1)):
        super().__init__(daemon=True)
        self.pauses = pauses
        self.sites, self.site, self.random = sites, site, random.Random(seed)
        self.over = threading.Event()
        self.written, self.error = 0, None
        self.start()

    def run(self):
        try:
            server = self.sites.servers[self.site]
            with server.connect() as connection:
                while not self.over.is_set():
                    statement = self._statement()
                    self.written += repeated(
                        connection, lambda cursor, sql=statement: cursor.execute(sql)
                    )
                    self.over.wait(self.random.choice(self.pauses))
        except Exception as error:
            self.error = error
            raise

    def _statement(self):
        one = self.random
        key, value = one.randrange(6), one.randrange(3)
        # A clock that is sometimes wrong, and often the same at both sites.
        now = int(time.time()) + one.choice([0, 0, 0, -30, 30])
        statement = one.choice([
            f"REPLACE INTO {{t}} (id, name, touched) VALUES ({key}, 'v{value}', {now})",
            f"UPDATE {{t}} SET name = 'v{value}', touched = {now} WHERE id = {key}",
            f"UPDATE {{t}} SET amount = {value}, touched = {now} WHERE id IN ({key}, {value})",
            f"UPDATE {{t}} SET touched = {now} WHERE id = {key}",
            f"DELETE FROM {{t}} WHERE id = {key}",
            f"UPDATE IGNORE {{t}} SET id = {key}, touched = {now} WHERE id = {value}",
            f"INSERT IGNORE INTO {{t}} (id, touched) VALUES ({key}, {now})",
        ])  # fmt: skip
        return statement.format(t=self.sites.table)

    def stop(self):
        self.over.set()
        self.join(60)
        assert self.error is None


@pytest.mark.parametrize("policy", ["newest", "home"])
def test_random_writes_with_a_failover_leave_both_sites_equal(both, policy):
    """SETL_TEST_SAME_ROWS says for how many seconds; SETL_TEST_SEED repeats one."""
    seconds = float(os.environ.get("SETL_TEST_SAME_ROWS", "8"))
    seed = int(os.environ.get("SETL_TEST_SEED", "7"))
    sites = both(policy, home="ba", rows_per_task=10)
    sites.lead()
    users = [Users(sites, site, seed + site) for site in (0, 1)]
    chance = random.Random(seed)
    until = time.monotonic() + seconds
    for number in range(3):
        users[0].over.wait(seconds / 4 * chance.uniform(0.5, 1))
        sites.replace_leader(chance.choice(["ab", "ba"]), f"n{number + 2}")
    users[0].over.wait(max(0.0, until - time.monotonic()))

    def decided(site):
        by = Counter(winner for (winner,) in sites.conflicts(site))
        return by["source"] + by["target"]

    # How many there are by now depends on how much both sites could write.
    eventually(lambda: min(decided(0), decided(1)) > 10, 120)
    for one in users:
        one.stop()
    a, b = sites.wait_until_equal(timeout=300)
    assert a == b
    assert sum(run.figures.echoes_replicated for run in sites.runs.values()) == 0


def test_what_the_sites_tell_each_other_travels_over_kafka(both, servers, kafka, position):
    ends = [
        {"type": "kafka", "brokers": [kafka.brokers], "topic": fresh_name("same-rows")}
        for _ in servers
    ]
    for server, end in zip(servers, ends, strict=True):
        tables = [{"from": "stock_*.*"}]
        position.lead(one_way(server, end, tables), "p").runs()
    sites = both("newest", sources=[{**end, "start": "earliest"} for end in ends])
    sites.write(0, inserted("a", 3), "INSERT INTO {t} (id, raw, touched) VALUES (2, x'00ff', 1)")
    sites.write(1, inserted("b", 2), "INSERT INTO {t} (id, raw, touched) VALUES (2, x'ff', 1)")
    sites.lead()
    a, b = sites.wait_until_equal()
    assert a == b
    assert [(row[1], row[4]) for row in a] == [("a", None), (None, b"\x00\xff")]
    assert len(sites.conflicts(0)) + len(sites.conflicts(1)) >= 4
