"""What of a pipeline is such that a load may replace newer rows."""

from __future__ import annotations

from collections.abc import Sequence

from setl.channel.fields.table_mapping import NewestRow
from setl.channel.file import ChannelFile, Pipeline
from setl.channel.relations.directions import way_back
from setl.channel.routes.routing import Router


def overwritten_by_loads(
    file: ChannelFile, pipeline: Pipeline, tables: Sequence[str] = ()
) -> list[str]:
    """What of a pipeline is such that a load may replace a newer row of the target.

    What the target's clients write comes to the source some time later. What is read at the
    source before that is older. Only a conflict policy tells the two apart.

    Args:
        file: the channel.
        pipeline: of it.
        tables: source tables that are to be loaded, ``schema.table``; none for all.

    Returns:
        Those of the tables; if none are given, the `from` of entries. Nothing if nothing goes the
        other way.
    """
    if way_back(file, pipeline) is None:
        return []
    if tables:
        router = Router(pipeline)
        named = [(table, table.partition(".")[::2]) for table in tables]
        return [
            table
            for table, name in named
            if any(route.conflict is None for route in router.route(*name))
        ]
    return [
        table.from_
        for table in pipeline.tables
        if table.conflict != "home" and not isinstance(table.conflict, NewestRow)
    ]
