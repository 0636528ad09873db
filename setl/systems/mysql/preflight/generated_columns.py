"""Warns of columns that a younger MariaDB leaves out of what it logs of an update.

11.8 logs no generated column with an update, also with binlog_row_image=FULL (seen with 11.8.9;
10.11 does). That is no loss where the target computes it itself, nor where it is not mapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from setl.channel.routes.routing import Route, passing_columns
from setl.model.schema import RowSchema
from setl.systems.finding import Report
from setl.systems.mysql.preflight.server import Server
from setl.transform.untold import needed_by_spark_sql

_LOGS_GENERATED: Final = (10, 11)
"""The last series of MariaDB that is known to log generated columns with each update."""


def check_generated(
    server: Server, columns: RowSchema, routes: Sequence[Route], place: Report
) -> None:
    """Report generated columns of a source table that a route needs, whatever its target has."""
    generated = tuple(c.name for c in columns.columns if c.generated)
    for route in routes:
        if route.documents is not None or route.rereads:
            continue
        needed: Sequence[str] = needed_by_spark_sql(route, generated)
        if route.conflict is not None:
            needed = generated
        elif route.into_index:
            needed = [generated[i] for i, _ in passing_columns(route, generated)] or needed
        _warn(server, needed, place)


def check_filled(server: Server, columns: Sequence[str], route: Route, place: Report) -> None:
    """Report generated columns of a source table that fill plain ones of a target table.

    Args:
        server: the source.
        columns: of the source table.
        route: how rows get to the target.
        place: where to report it.
    """
    decided = route.conflict is not None or route.expressions or route.where
    if not (route.rereads or decided):  # else `check_generated` has told
        _warn(server, columns, place)


def _warn(server: Server, columns: Sequence[str], place: Report) -> None:
    if not columns or not server.mariadb or server.version[:2] <= _LOGS_GENERATED:
        return
    place.warning(
        f"{server.product} may leave generated columns out of what it logs of an update, as 11.8"
        f" does: {', '.join(columns)}; the first such update stops the pipeline",
        "Set `read: source` for the table; or leave the columns out with `exclude`, or have the"
        " target compute them",
        code="generated-columns",
    )
