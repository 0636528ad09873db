"""Which channels need queries."""

import pytest

from setl.channel.rules.spark_sql import has_spark_sql


@pytest.mark.parametrize(
    ("table", "has"),
    [
        ({"from": "s.t"}, False),
        ({"from": "s.t", "columns": {"a": "b", "c": "`current date`"}}, False),
        ({"from": "s.t", "columns": {"a": "b", "c": "upper(d)"}}, True),
        ({"from": "s.t", "columns": {"a": "current_date"}}, True),
        ({"from": "s.t", "where": "a > 1"}, True),
    ],
)
def test_a_table(table, has):
    other = {"tables": [{"from": "s.other"}]}
    assert has_spark_sql({"pipelines": [other, {"tables": [table]}]}) is has


@pytest.mark.parametrize(
    "definition", [{}, {"pipelines": 3}, {"pipelines": [1, {"tables": "x"}, {"tables": [None]}]}]
)
def test_what_is_no_channel_has_none(definition):
    assert has_spark_sql(definition) is False
