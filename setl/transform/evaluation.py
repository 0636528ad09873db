"""A route's Spark SQL expressions and its `where`, analysed over the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from setl.channel.routes.routing import Route
from setl.channel.rules.spark_sql import referenced_columns
from setl.errors import ConfigurationError
from setl.model.document import DocumentForm, DocumentOrigin
from setl.model.schema import Column, RowSchema
from setl.transform.columns import ColumnPlan
from setl.transform.projection import document_form, ids_made_of
from setl.transform.sql_limits import has_subquery
from setl.transform.typed_rows import result_column, spark_schema

_KEEP = "__setl_keep"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A route's expressions, analysed over the columns of one table.

    Attributes:
        route: the route.
        schema: the source table.
        columns: how its columns are mapped, beside the expressions.
        inputs: columns that the expressions mention.
        outputs: columns that the expressions fill.
        target_columns: columns of the target: those that pass, then `outputs`.
        document: how rows become documents; None if they do not.
        ids: see `TargetChanges`.
    """

    route: Route
    schema: RowSchema
    columns: ColumnPlan
    inputs: tuple[Column, ...]
    outputs: tuple[Column, ...]
    target_columns: tuple[Column, ...]
    document: DocumentForm | None = None
    ids: DocumentOrigin | None = None


def select_evaluated(
    frame: DataFrame, route: Route, carried: Sequence[str], only: str = "true"
) -> DataFrame:
    """A frame's carried columns, whether `where` keeps the row, and the value of each expression.

    The result has the columns `carried`, then ``__setl_keep``, then ``__setl_0`` and so on for
    the route's expressions in their order. Expressions are only evaluated on rows that are
    kept, and `where` only on rows of which `only` is true: either may guard the next.

    Raises:
        ConfigurationError: Spark cannot analyse some expressions; says which, all of them, and why.
    """
    wrong: list[str] = []
    condition = f"({only}) AND coalesce(({route.where}), false)" if route.where else only
    result = _analysed(frame, "where", wrong, "*", f"{condition} AS {_KEEP}")
    if result is None:
        result = frame.selectExpr("*", f"true AS {_KEEP}")  # the others are looked at all the same
    texts = {
        name: f"CASE WHEN {_KEEP} THEN ({text}) END" for name, text in route.expressions.items()
    }
    for name, text in texts.items():
        _analysed(result, f"columns.{name}", wrong, f"{text} AS x")
    if wrong:
        raise _cannot_evaluate(wrong, route)
    outputs = [f"{text} AS `__setl_{i}`" for i, text in enumerate(texts.values())]
    return result.selectExpr(*carried, _KEEP, *outputs)


def _analysed(
    frame: DataFrame, position: str, wrong: list[str], *expressions: str
) -> DataFrame | None:
    """The frame with expressions in it, None if Spark refuses them; `wrong` gets the reason."""
    try:
        result = frame.selectExpr(*expressions)
    except (AnalysisException, ParseException) as error:
        wrong.append(f"{position}: {str(error).strip().splitlines()[0]}")
        return None
    return result


def _refuse_subqueries(frame: DataFrame, route: Route) -> None:
    positions = {f"columns.{name}": text for name, text in route.expressions.items()}
    if route.where:
        positions = {"where": route.where, **positions}
    wrong = [
        f"{position}: a subquery; an expression has only the values of its row"
        for position, text in positions.items()
        if has_subquery(frame.selectExpr(f"{text} AS x"))
    ]
    if wrong:
        raise _cannot_evaluate(wrong, route)


def _cannot_evaluate(wrong: Sequence[str], route: Route) -> ConfigurationError:
    return ConfigurationError(
        f"Spark cannot evaluate {'; nor '.join(wrong)}",
        hint="See https://spark.apache.org/docs/latest/api/sql/ for what Spark SQL offers",
        table=".".join(route.target),
    )


def analyse(spark: SparkSession, route: Route, schema: RowSchema) -> Evaluation:
    """Analyse a route's expressions over a table, without touching any data.

    Raises:
        ConfigurationError: an expression names an unknown column, is malformed, or gives a
            type that no target holds.
    """
    columns = ColumnPlan.build(schema, route)
    names = referenced_columns(route.expressions.values(), route.where, schema.names)
    inputs = tuple(schema.columns[schema.index[name]] for name in names)
    empty = spark.createDataFrame([], spark_schema(inputs))
    evaluated = select_evaluated(empty, route, ())
    if has_subquery(evaluated):
        _refuse_subqueries(empty, route)
    outputs = tuple(
        result_column(name, evaluated.schema[f"__setl_{i}"].dataType)
        for i, name in enumerate(route.expressions)
    )
    document = document_form(schema, route)
    ids = document and ids_made_of(schema, route, document, columns)
    targets = columns.columns + outputs
    return Evaluation(route, schema, columns, inputs, outputs, targets, document, ids)
