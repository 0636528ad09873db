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


@pytest.mark.parametrize(
    "text",
    [
        "reflect('java.lang.System', 'getenv', 'HOME')",
        "builtin.java_method('java.lang.System', 'getenv', 'HOME')",
        "system.builtin.try_reflect('java.lang.System', 'getenv', 'HOME')",
        "`reflect`('java.lang.System', 'exit', 1)",
        "(SELECT max(value) FROM text.`/etc/hostname`)",
        "(SELECT 'x')",
        "CAST(id IN (SELECT 1) AS STRING)",
        "CAST(EXISTS (SELECT 1) AS STRING)",
        "concat(name, (SELECT name))",
        "transform(array(1), x -> (SELECT 1))[0]",
    ],
)
@pytest.mark.parametrize("position", ["columns", "where"])
def test_an_expression_runs_no_code_and_reads_only_its_row(spark, text, position):
    route = (
        Route(0, ("shop", "t"), expressions={"x": text})
        if position == "columns"
        else Route(0, ("shop", "t"), where=f"{text} = 'x'")
    )
    with pytest.raises(ConfigurationError, match=f"Spark cannot evaluate {position}"):
        analyse(spark, route, SCHEMA)


def test_an_expression_reads_no_variables_of_the_environment(spark):
    texts = ("${env:PATH}", "${system:user.home}", "${spark:spark.app.id}", "${PATH}")
    frame = spark.range(1).selectExpr(*(f"'{text}' AS c{i}" for i, text in enumerate(texts)))
    assert tuple(frame.collect()[0]) == texts
