"""Finds tables to whose rows both sites give the same AUTO_INCREMENT numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import gcd

from setl.channel.file import Pipeline
from setl.channel.routes.routing import Router
from setl.systems.finding import Report
from setl.systems.mysql.server import Server
from setl.systems.pipeline_check import SourceTable

_COUNTING = (
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.COLUMNS"
    " WHERE EXTRA LIKE '%%auto_increment%%' AND TABLE_SCHEMA IN %s"
)
_SHOWN = 5  # tables that a sentence names


def check_same_numbers(
    source: Server,
    target: Server,
    back: Pipeline,
    tables: Sequence[SourceTable],
    report: Report,
) -> None:
    """Report tables of both directions whose numbers both servers give out.

    A number that both sites give is one row to both, and one of the two is lost.

    Args:
        source: the source server.
        target: the target server.
        back: the pipeline of the other direction.
        tables: the mapped tables of the source.
        report: where to put it.

    Raises:
        SetlError: a server stopped answering.
    """
    way_back = Router(back)
    both = {
        (table.schema.schema, table.schema.table): route.target
        for table in tables
        for route in table.routes
        if way_back.route(*route.target)
    }
    if not both or not may_be_same(numbers_of(source.variables), numbers_of(target.variables)):
        return
    here, there = _counting(source, both), _counting(target, both.values())
    named = [".".join(name) for name, to in both.items() if name in here and to in there]
    if not named:
        return
    others = len(named) - _SHOWN
    shown = ", ".join(named[:_SHOWN]) + (f" and {others} more" if others > 0 else "")
    report.warning(
        f"both sites give the same AUTO_INCREMENT numbers to rows of {shown}: two rows that get"
        " one number at the same time become one",
        "Set auto_increment_increment = 2 at both servers, and auto_increment_offset = 1 at one and"
        " 2 at the other, in their configuration files and with SET GLOBAL (on RDS and Aurora in"
        " their parameter groups). Where only one site inserts rows at a time, accept it",
        code="same-numbers",
    )


def numbers_of(variables: Mapping[str, str]) -> tuple[int, int]:
    """The step between a server's numbers, and one of them, from its global variables."""
    step = int(variables.get("auto_increment_increment", "1"))
    return step, int(variables.get("auto_increment_offset", "1"))


def may_be_same(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two servers come to the same number, given the `numbers_of` each."""
    return (one[1] - other[1]) % gcd(one[0], other[0]) == 0


def _counting(server: Server, tables: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """The tables with such a column, in the schemas of these."""
    schemas = sorted({schema for schema, _ in tables})
    return {(str(s), str(t)) for s, t in server.rows(_COUNTING, (schemas,))}
