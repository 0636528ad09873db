"""What stays of rows that both sites write, on real servers, beside a plain model of the promise.

SETL_TEST_CONFLICT_ROUNDS says how many random histories each policy goes through, each over a dozen
rows; SETL_TEST_SEED repeats them.
"""

import os
import random
from contextlib import contextmanager

import pytest

from setl.systems.mysql.conflicts.contested_rows import ContestedTable
from tests.integration.pumped_sites import PumpedSites
from tests.loading import execute, rows_of
from tests.unit.systems.mysql.conflicts.model import Write, outcome

TABLE = "(id INT PRIMARY KEY, v INT NOT NULL, touched DATETIME NULL)"
POLICIES = {"newest": {"newest": "touched"}, "home": "home"}
ROUNDS = int(os.environ.get("SETL_TEST_CONFLICT_ROUNDS", "2"))
SEED = int(os.environ.get("SETL_TEST_SEED", "14"))


@pytest.fixture
def servers(site_a, site_b):
    return site_a, site_b


@contextmanager
def pumped(servers, policy, home="ab", table=TABLE):
    sites = PumpedSites(servers, table, POLICIES[policy], home)
    try:
        yield sites
    finally:
        sites.close()


def at(second):
    return "NULL" if second is None else f"'2026-01-01 00:00:{second:02d}'"


def written(key, value, second):
    return f"REPLACE INTO {{t}} VALUES ({key}, {value}, {at(second)})"


def changed(key, value, second):
    return f"UPDATE {{t}} SET v = {value}, touched = {at(second)} WHERE id = {key}"


def gone(key):
    return f"DELETE FROM {{t}} WHERE id = {key}"


class Clients:
    """Clients of both sites, whose every write is also written down for the model."""

    def __init__(self, sites, keys, seed):
        self.sites, self.random, self.keys = sites, random.Random(seed), range(keys)
        self.count = [0, 0]  # statements that changed something, each one row
        self.writes = {key: ([], []) for key in self.keys}
        self.first = {}
        self.value = 0

    def begin(self):
        """Rows that both sites have from the start."""
        for key in self.keys:
            if self.random.random() < 0.6:
                self.first[key] = self.row(key)
        for server in self.sites.servers:
            values = ", ".join(self.literal(row) for row in self.first.values())
            statement = f"INSERT INTO {self.sites.name} VALUES {values}"
            execute(server, "SET SESSION sql_log_bin = 0", statement)

    def row(self, key):
        self.value += 1
        return key, self.value, self.random.choice([None, 0, 1, 2, 3, 4, 5])

    def literal(self, row):
        return f"({row[0]}, {row[1]}, {at(row[2])})"

    def act(self, site, most):
        """Some writes at one site."""
        server = self.sites.servers[site]
        held = {r[0]: plain(r) for r in rows_of(server, f"SELECT * FROM {self.sites.name}")}
        statements = []
        for _ in range(self.random.randint(1, most)):
            key = self.random.choice(self.keys)
            row = held.get(key)
            if row is None:
                new = self.row(key)
                statements.append(f"INSERT INTO {{t}} VALUES {self.literal(new)}")
                self.note(site, held, {key: new})
            elif self.random.random() < 0.4:
                statements.append(gone(key))
                self.note(site, held, {key: None})
            else:
                new = self.row(key)
                free = [k for k in self.keys if k not in held]
                if free and self.random.random() < 0.2:
                    new = (self.random.choice(free), *new[1:])
                statements.append(
                    f"UPDATE {{t}} SET id = {new[0]}, v = {new[1]}, touched = {at(new[2])}"
                    f" WHERE id = {key}"
                )
                self.note(site, held, {key: None, new[0]: new})
        self.sites.write(site, *statements)

    def note(self, site, held, after):
        self.count[site] += 1
        seen = self.sites.into[site].writes
        for key, row in after.items():
            write = Write(held.get(key), row, seen)
            self.writes[key][site].append((self.count[site], write))
            held[key] = row
            if row is None:
                del held[key]

    def expected(self, home, newest):
        def age(row):
            return (row[2] is not None, row[2] or 0)

        rows = [
            outcome(self.first.get(key), self.writes[key], home, age if newest else None)
            for key in self.keys
        ]
        return [row for row in rows if row is not None]


def plain(row):
    return row[0], row[1], None if row[2] is None else row[2].second


@pytest.mark.parametrize("policy", POLICIES)
def test_random_histories_end_as_the_model_says(servers, policy):
    decided = 0
    for number in range(ROUNDS):
        seed = SEED * 1000 + number
        chance = random.Random(seed)
        home = chance.randrange(2)
        with pumped(servers, policy, ("ab", "ba")[home]) as sites:
            clients = Clients(sites, 12, seed)
            clients.begin()
            for one in sites.into:
                one.read()
                one.items.clear()
            for _ in range(chance.randint(12, 20)):
                if chance.random() < 0.6:
                    clients.act(chance.randrange(2), 12)
                    continue
                one = chance.choice(sites.into)
                one.read()
                if chance.random() < 0.3:
                    one.restart()
                one.take(chance.randint(1, 1 + one.left), again=chance.choice([0, 0, 5]))
            sites.exchange()
            ends = [[plain(row) for row in sites.rows(site)] for site in (0, 1)]
            wanted = clients.expected(home, policy == "newest")
            wrong = {row[0] for row in {*ends[0], *ends[1]} ^ {*wanted}} | {
                row[0] for row in {*ends[0]} ^ {*ends[1]}
            }
            assert not wrong, (
                f"seed {seed}",
                [[row for row in one if row[0] in wrong] for one in (*ends, wanted)],
                {key: (clients.first.get(key), clients.writes[key]) for key in wrong},
            )
            assert sites.stored() == 0
            decided += sum(one.conflicts for one in sites.into)
    assert decided > 20


CASES = [
    # at A, at B, what stays: the value, None for no row
    ([changed(1, 1, 10), gone(1)], [changed(1, 2, 5)], None),
    ([changed(1, 1, 5)], [changed(1, 2, 10), gone(1)], None),
    ([changed(1, 1, 10), gone(1)], [changed(1, 2, 5), gone(1)], None),
    ([gone(1), written(1, 1, 10), gone(1)], [changed(1, 2, 5)], None),
    ([changed(1, 1, 5), gone(1)], [changed(1, 2, 10)], 2),
    ([gone(1)], [changed(1, 2, 5), gone(1)], None),
    ([changed(1, 1, 10), changed(1, 3, 2)], [changed(1, 2, 5)], 3),
    ([gone(1)], [changed(1, 2, 2)], None),
    ([changed(1, 1, 2)], [gone(1)], None),
    ([gone(1)], [changed(1, 2, 3)], None),
    ([gone(1)], [changed(1, 2, 4)], 2),
    ([gone(1), written(1, 1, 0)], [changed(1, 2, 2)], 1),
    ([gone(1), written(1, 1, 0)], [changed(1, 2, 5)], 2),
    ([changed(1, 1, 9), gone(1), written(1, 3, 0)], [changed(1, 2, 5)], 3),
]


def test_deletes_and_clocks_that_go_back(servers):
    with pumped(servers, "newest") as sites:
        first = [f"INSERT INTO {{t}} VALUES ({key}, 0, {at(3)})" for key in range(len(CASES))]
        sites.write(0, *first)
        sites.exchange()
        for key, (at_a, at_b, _) in enumerate(CASES):
            for site, statements in enumerate((at_a, at_b)):
                for s in statements:
                    of_key = s.replace("id = 1", f"id = {key}").replace(
                        "VALUES (1,", f"VALUES ({key},"
                    )
                    sites.write(site, of_key)
        sites.exchange()
        stays = {key: value for key, (_, _, value) in enumerate(CASES) if value is not None}
        for site in (0, 1):
            assert {row[0]: row[1] for row in sites.rows(site)} == stays
        assert sites.stored() == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_a_row_that_both_sites_deleted_does_not_come_back(servers, policy):
    """An insert of one site is held up until the other has deleted what it had in its place."""
    with pumped(servers, policy) as sites:
        to_a, to_b = sites.into
        sites.write(1, "INSERT INTO {t} VALUES (1, 2, '2026-01-01 00:00:05')")
        sites.write(
            0, "INSERT INTO {t} VALUES (1, 1, '2026-01-01 00:00:10')", changed(1, 11, 12), gone(1)
        )
        to_b.read()
        to_b.take(1)
        sites.write(1, changed(1, 3, 20), gone(1))
        to_a.read()
        to_a.take(to_a.left)
        sites.exchange()
        assert [sites.rows(0), sites.rows(1)] == [[], []]
        assert sites.stored() == 0


def test_a_row_that_appears_while_a_load_leaves_it_missing(servers, monkeypatch):
    """Nothing locks a row that is not there: a client inserts one before the load commits.

    It has not seen what that load takes in: a delete of a newer row. So it goes at both sites.
    """
    write = ContestedTable.write
    with pumped(servers, "newest") as sites:
        to_a, to_b = sites.into
        sites.write(0, f"INSERT INTO {{t}} VALUES (1, 1, {at(6)})")
        sites.exchange()
        sites.write(0, gone(1))
        sites.write(1, changed(1, 2, 9))
        to_a.read()
        to_a.take(to_a.left)
        sites.write(1, gone(1))
        for one in (to_b, to_a):
            one.read()
        to_b.take(to_b.left)
        to_a.read()

        def written_meanwhile(*arguments):
            monkeypatch.setattr(ContestedTable, "write", write)
            sites.write(0, f"INSERT INTO {{t}} VALUES (1, 7, {at(3)})")
            return write(*arguments)

        monkeypatch.setattr(ContestedTable, "write", written_meanwhile)
        to_a.take(to_a.left)
        assert [row[1] for row in sites.rows(0)] == [7], "it has appeared"
        sites.exchange()
        assert [sites.rows(0), sites.rows(1)] == [[], []]
        assert sites.stored() == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_a_write_that_has_seen_the_other_sites_stays(servers, policy):
    """Older or deleted; it is read in one load with what its site told before."""
    with pumped(servers, policy) as sites:
        to_a, to_b = sites.into
        for key, last in enumerate([changed(0, 2, 1), gone(1)]):
            sites.write(0, f"INSERT INTO {{t}} VALUES ({key}, 1, {at(9)})")
            to_b.read()
            to_b.take(to_b.left)
            sites.write(1, last)
        to_a.read()
        to_a.take(to_a.left)
        sites.exchange()
        for site in (0, 1):
            assert [row[:2] for row in sites.rows(site)] == [(0, 2)]
        assert sites.stored() == 0


def test_rows_that_differ_without_a_write_become_equal_when_one_changes(servers):
    with pumped(servers, "newest") as sites:
        for site, server in enumerate(servers):
            row = f"INSERT INTO {sites.name} VALUES (1, {site}, {at(site * 9)})"
            execute(server, "SET SESSION sql_log_bin = 0", row)
        sites.write(0, changed(1, 5, 3))
        sites.exchange()
        assert [row[1] for site in (0, 1) for row in sites.rows(site)] == [5, 5]


def test_a_quiet_channel_says_nothing(servers):
    with pumped(servers, "newest") as sites:
        sites.write(0, "INSERT INTO {t} VALUES (1, 1, NULL)", gone(1))
        sites.exchange()
        read = [len(one.items) for one in sites.into]
        sites.exchange()
        assert [len(one.items) for one in sites.into] == read
        assert [one.conflicts for one in sites.into] == [0, 0]


@pytest.mark.family("mysql")
def test_numbers_in_documents_look_as_the_server_writes_them(servers):
    """Else what a load wrote would look as if a client of the target had changed it."""
    table = "(id INT PRIMARY KEY, v INT, doc JSON)"
    with pumped(servers, "home", home="ba", table=table) as sites:
        numbers = "0.1e0, 1e-7, 1e-16, 1e15, 1234567890123456.8e0, -0e0, 1.50"
        sites.write(0, f"INSERT INTO {{t}} VALUES (1, 0, JSON_ARRAY({numbers}))")
        for value in (1, 2):
            sites.into[1].read()
            sites.into[1].take(sites.into[1].left)
            sites.write(0, f"UPDATE {{t}} SET v = {value}")
        sites.exchange()
        assert sites.rows(0) == sites.rows(1)
        assert [one.conflicts for one in sites.into] == [0, 0]
