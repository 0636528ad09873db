"""Which columns a route needs of rows that may say nothing of them, see `RowSchema.unlogged`."""

from __future__ import annotations

from functools import lru_cache

from setl.channel.routes.routing import Route, selected_columns
from setl.channel.rules.spark_sql import referenced_columns


def needed_by_spark_sql(route: Route, unlogged: tuple[str, ...]) -> tuple[str, ...]:
    """Those of some columns without which a route's Spark SQL cannot be evaluated.

    It is made for all columns that pass, and for those that it names.
    """
    if not (route.expressions or route.where):
        return ()
    passing = {unlogged[i] for i, _ in selected_columns(route, unlogged)}
    named = _named(tuple(route.expressions.values()), route.where, unlogged)
    return tuple(name for name in unlogged if name in passing or name in named)


@lru_cache(maxsize=256)
def _named(
    expressions: tuple[str, ...], where: str | None, columns: tuple[str, ...]
) -> tuple[str, ...]:
    return referenced_columns(expressions, where, columns)
