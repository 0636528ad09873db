"""What Spark refuses of a route's expressions is named all at once, before any row comes."""

import pytest

from setl.channel.routes.routing import Route
from setl.errors import ConfigurationError
from setl.model.schema import Column, Kind, RowSchema
from setl.transform.evaluation import analyse

SCHEMA = RowSchema("shop", "t", (Column("id", Kind.INTEGER), Column("name", Kind.TEXT)), key=(0,))


def test_all_wrong_expressions_of_a_route_are_named(spark):
    columns = {"loud": "uper(name)", "right": "upper(name)", "twice": "nam || nam"}
    route = Route(0, ("shop", "t"), expressions=columns, where="stauts = 1")
    with pytest.raises(ConfigurationError) as caught:
        analyse(spark, route, SCHEMA)
    said = caught.value.message
    assert said.startswith("Spark cannot evaluate where: ")
    assert said.count("; nor columns.") == 2
    for name in ("`stauts`", "`uper`", "`nam`"):
        assert name in said
    assert "right" not in said
