"""What decides about statements that a source logged in the place of rows."""

from __future__ import annotations

from collections.abc import Callable

from setl.channel.file import Pipeline
from setl.extract.statements import PassedStatements
from setl.systems.finding import accepting
from setl.systems.port import SourceSystem, StatementSource


def passed_statements(
    pipeline: Pipeline, origin: SourceSystem, is_mapped: Callable[[str, str], bool]
) -> PassedStatements:
    """What decides for a pipeline; nothing is asked yet.

    Args:
        pipeline: the pipeline.
        origin: its source.
        is_mapped: whether rows of a table go anywhere.
    """
    return PassedStatements(
        is_mapped,
        lambda name: bool(accepting(pipeline.accept, name)),
        origin.statement_effects() if isinstance(origin, StatementSource) else None,
    )
