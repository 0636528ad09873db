import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from setl.codec.binlog.columns.finding import find_rows
from setl.codec.columns.column_rows import ColumnRows
from setl.model.schema import Column, Kind, RowSchema
from setl.systems.mysql.sink.single_writer import single_writer
from setl.transform.placement import bucket_of, homes_of, key_hashes, spreads
from tests.unit.codec.binlog_tables import changes, has_readable_values, table_of, written

KEYS = [
    (0,),
    (-5,),
    (2**64 - 1,),
    ("a",),
    ("A",),
    ("1",),
    (1,),
    (b"\x00\xff",),
    ("\U0001f600 größe \udce9",),
    ("a", "bc"),
    ("ab", "c"),
    (1, "2026-01-01", b"x"),
    (None, 1.5),
]


def test_every_process_finds_the_same_buckets():
    here = [bucket_of(key, 97) for key in KEYS]
    script = (
        "from setl.transform.placement import bucket_of\n"
        f"print([bucket_of(k, 97) for k in {KEYS!a}])"
    )
    for seed in ("0", "1"):
        there = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.strip() == repr(here)


def test_buckets_do_not_change_between_releases():
    # Nodes of two releases may follow each other, but never share a load; still, a change
    # here should be meant.
    assert [bucket_of(key, 1000) for key in [(1,), ("a",), (1, "a"), (b"a",)]] == [
        352,
        565,
        836,
        153,
    ]


@pytest.mark.parametrize("buckets", [2, 3, 4, 8, 16])
@pytest.mark.parametrize(
    "keys",
    [
        [(n,) for n in range(10_000)],
        [(n,) for n in range(1, 80_001, 8)],
        [(f"user-{n:08d}",) for n in range(10_000)],
        [(n % 100, f"{n}") for n in range(10_000)],
    ],
    ids=["sequence", "steps of 8", "text", "pairs"],
)
def test_keys_are_shared_out_evenly(keys, buckets):
    positions = range(len(keys[0]))
    for homes in ([bucket_of(key, buckets) for key in keys], homes_of(keys, positions, buckets)):
        counts = Counter(homes)
        assert set(counts) == set(range(buckets))
        assert max(counts.values()) < 1.2 * len(keys) / buckets


@pytest.mark.parametrize("position", [0, 1])
def test_a_row_and_its_key_alone_have_the_same_home(position):
    keys = [-(2**63), -1, 0, 1, 2, 2**63 - 1, 2**64 - 1]
    rows = [("x", key)[:: 1 if position else -1] for key in keys]
    homes = homes_of(rows, (position,), 8)
    assert homes == homes_of([(key,) for key in keys], range(1), 8)
    assert homes == [home for key in keys for home in homes_of([(key,)], (0,), 8)]
    assert len(set(homes)) > 3


def test_keys_of_other_types_have_the_home_that_their_bucket_is():
    for key in KEYS:
        if type(key[0]) is not int or len(key) > 1:
            assert homes_of([key], range(len(key)), 97) == [bucket_of(key, 97)]


def test_columns_have_the_homes_and_hashes_of_their_rows():
    for seed in range(200):
        pick = Random(seed)
        table = table_of(pick)
        found = find_rows(table.form, [(0, b"".join(written(table, changes(table))))])
        columns = ColumnRows(found, found.starts)
        if not has_readable_values(columns):
            continue
        rows, count = list(columns), len(table.columns)
        for key in [*[(i,) for i in range(count)], pick.choices(range(count), k=2)]:
            assert key_hashes(columns, key) == key_hashes(rows, key), (seed, key)
            for buckets in (2, 7, 4096):
                assert homes_of(columns, key, buckets) == homes_of(rows, key, buckets), (seed, key)


def test_different_keys_are_not_one_text():
    assert len({bucket_of(key, 2**32) for key in KEYS}) == len(KEYS)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (Column("k", Kind.INTEGER), True),
        (Column("k", Kind.TEXT), False),
        (Column("k", Kind.TEXT, binary_order=True), True),
        (Column("k", Kind.BINARY), True),
        (Column("k", Kind.FLOAT), False),
        (Column("k", Kind.DATETIME), True),
    ],
)
def test_a_table_spreads_unless_keys_may_be_equal_to_the_target(column, expected):
    number = Column("n", Kind.INTEGER)
    assert spreads([column], None) is expected
    assert spreads([number, column], None) is expected
    assert spreads([number], None) is True
    assert spreads([column], "group") is False
    assert spreads([number], "group") is False


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ([""], False),
        (["i"], False),
        (["i", "ic"], False),
        (["i", "c"], True),
        (["i", "ic", "cx"], True),
        (["ab", "bc"], True),
        (["t"], True),
        (["it"], True),
        (["b"], False),
        (["i", "it"], False),
    ],
)
def test_a_table_whose_rows_can_be_in_each_others_way_has_one_task(keys, expected):
    kinds = {"t": Column("t", Kind.TEXT), "b": Column("b", Kind.TEXT, binary_order=True)}
    columns = tuple(kinds.get(name, Column(name, Kind.INTEGER)) for name in "iabctx")
    primary, *others = [tuple("iabctx".index(name) for name in key) for key in keys]
    described = RowSchema("s", "t", columns, primary, tuple(others))
    assert single_writer(described) is expected
    assert single_writer(replace(described, odd_keys=True)) is True
    assert spreads([Column("n", Kind.INTEGER)], None, single_writer=expected) is not expected
