"""Random histories of random tables, cut at random, loaded by several tasks, some of it twice.

Everything between the source's binlog and the target's rows is what a pipeline runs: decoding,
compaction, dealing out, merging and the sink. Whatever is cut where, whichever task commits
first and however much is applied again, the target must hold what the source holds (I11, I12).
They are rounds of `setl drill oracle --adapters`.
"""

import random

import pytest

from setl_drills.oracle.comparison import rows_of_table
from setl_drills.oracle.rounds import Servers, play
from setl_drills.oracle.shapes import shapes_of
from setl_drills.oracle.tables import COLLATIONS, random_table
from tests.loading import execute, unique


@pytest.fixture(scope="module")
def servers(site_a, site_b):
    made = Servers(site_a, site_b, site_b)
    made.prepare()
    return made


@pytest.mark.parametrize("number", [f"1.{n}" for n in range(1, 21)])
def test_random_histories_end_equal_or_with_an_error(servers, number):
    one = play(servers, number, statements=80)
    assert one.statements > 20
    assert not one.faults, one


@pytest.mark.parametrize("families", COLLATIONS)
def test_rounds_have_all_sorts_of_tables(families):
    tables = [
        random_table(random.Random(n), COLLATIONS[families], twisted=n % 2 == 0) for n in range(200)
    ]
    assert len({table.twist for table in tables}) == 9
    assert len({table.key for table in tables}) == 5
    assert {len(table.unique) for table in tables} == {0, 1, 2, 3}
    assert len([table for table in tables if table.mapped]) > 20


def test_text_is_compared_in_the_character_set_of_the_source(servers):
    schema, sites = unique("oracle"), (servers.source, servers.target)
    try:
        for server, charset, text in zip(sites, ("utf8mb4", "latin1"), ("Zoé", "Zoe"), strict=True):
            column = f"v VARCHAR(9) CHARACTER SET {charset}"
            execute(server, f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t ({column})")
            execute(server, f"INSERT INTO {schema}.t VALUES ('é'), ('{text}')")
        shape = shapes_of(servers.source, schema)["t"]
        of_source, of_target = (rows_of_table(server, schema, shape) for server in sites)
        assert list(of_source - of_target) == [("Zoé".encode(),)]
        assert list(of_target - of_source) == [(b"Zoe",)]
    finally:
        for server in sites:
            execute(server, f"DROP DATABASE IF EXISTS {schema}")
