"""Pipelines that would take another's changes for an echo of their own channel.

A pipeline drops every transaction that carries its channel's mark, wherever it came from. That is
right for the way back of a two-way channel, where such a change came from the target. It is
wrong for a third pipeline: one that feeds an index from site A would never see what arrives at
A from site B, and nothing would fail.
"""

from __future__ import annotations

from setl.channel.file import ChannelFile, DtsTarget, MysqlTarget, Pipeline, database_of


def swallowed_by(file: ChannelFile, pipeline: Pipeline) -> list[str]:
    """Names of pipelines of the channel whose changes `pipeline` would drop on their way on.

    Servers are compared as they are written; of what database a DTS source is, it may not say.
    """
    database = database_of(pipeline.source)
    if database is None or isinstance(pipeline.target, DtsTarget):
        return []  # a relay drops nothing
    source = (database.host, database.port)
    target = pipeline.target
    there = (target.host, target.port) if isinstance(target, MysqlTarget) else None
    names: list[str] = []
    for other in file.pipelines:
        if other is pipeline or not isinstance(other.target, MysqlTarget):
            continue
        if (other.target.host, other.target.port) != source:
            continue
        origin = database_of(other.source)
        # Of a database that is not named, it may well be the target's subscription.
        place = there if origin is None else (origin.host, origin.port)
        comes_back = there is not None and place == there
        if not comes_back:
            names.append(other.name)
    return names
