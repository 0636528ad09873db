"""Target tables into which several tables of the source go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from setl.channel.routes.routing import Route, Router

NamedRoute = tuple[tuple[str, str], Route]
"""A source table, by schema and name, and a route that its rows go by."""


def with_targets_of_their_own(
    named: Sequence[NamedRoute], source_tables: Iterable[tuple[str, str]], router: Router
) -> list[NamedRoute]:
    """Those of which no other table's rows are in the target.

    Where several tables come together, a row that conflicts with another one may be of another
    table. Then nothing brings it again.

    Args:
        named: tables with their routes.
        source_tables: all tables of the source.
        router: which tables go where.
    """
    into = Counter(
        target
        for name in source_tables
        for target in {route.target for route in router.route(*name) if not route.nests(*name)}
    )
    return [(name, route) for name, route in named if into[route.target] <= 1]
