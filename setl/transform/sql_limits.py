"""What expressions of channel files cannot do, though Spark SQL can.

A channel file is data: whoever may store one must not run code on nodes by it, or read their files.
Settings of the session (`LIMITS`) keep files and variables of the environment out of SQL.
Functions that call any Java method are taken out of the session, and subqueries are refused: what
an expression needs stands in its row.

Source: https://spark.apache.org/docs/latest/api/sql/#reflect
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from pyspark.sql import DataFrame, SparkSession

from setl.errors import FatalError

LIMITS: Final[Mapping[str, str]] = {
    "spark.sql.runSQLOnFiles": "false",  # SELECT … FROM text.`/a/file`
    "spark.sql.variable.substitute": "false",  # '${env:NAME}'
}
"""Settings of a session whose SQL comes from channel files."""

_CALL_JAVA: Final = frozenset({"reflect", "java_method", "try_reflect"})


def limit(session: SparkSession) -> SparkSession:
    """The session, without functions that call any Java method.

    Raises:
        FatalError: this version of Spark does not give them up.
    """
    jvm, sessions = cast("Any", session)._jvm, cast("Any", session)._jsparkSession  # noqa: SLF001
    registry = sessions.sessionState().functionRegistry()
    for name in _calling_java(registry):
        # Spark names its own `system.builtin.reflect`, and versions before 4.2 `reflect`.
        *rest, last = name.split(".")
        option = jvm.scala.Option
        catalog, database = [None] * (2 - len(rest)) + rest
        registry.dropFunction(
            jvm.org.apache.spark.sql.catalyst.FunctionIdentifier(
                last, option.apply(database), option.apply(catalog)
            )
        )
    if left := _calling_java(registry):
        raise FatalError(f"Spark keeps functions that run code: {', '.join(left)}")
    return session


def _calling_java(registry: Any) -> Sequence[str]:
    # One text, for to ask for each of 600 takes half a second.
    names = str(registry.listFunction().mkString(",")).replace("`", "").split(",")
    return [name for name in names if name.rpartition(".")[2] in _CALL_JAVA]


def has_subquery(frame: DataFrame) -> bool:
    """Whether an analysed frame looks at other tables than its own rows."""
    plan = cast("Any", frame)._jdf.queryExecution().analyzed()  # noqa: SLF001
    return not plan.subqueriesAll().isEmpty()
