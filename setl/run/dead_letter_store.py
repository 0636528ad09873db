"""Where a pipeline's dead letters are, as its channel file says."""

from __future__ import annotations

from contextlib import AbstractContextManager

from setl.channel.file import ElasticsearchTarget, MysqlTarget, Pipeline
from setl.errors import ConfigurationError
from setl.load.deadletters.store import DeadLetterStore
from setl.systems.elasticsearch.deadletters import opened_index
from setl.systems.elasticsearch.endpoint import elastic_endpoint
from setl.systems.mysql.deadletters import opened_table
from setl.systems.mysql.endpoint import mysql_endpoint


def dead_letters_of(pipeline: Pipeline) -> AbstractContextManager[DeadLetterStore]:
    """Opens the dead letters in a pipeline's target.

    Raises:
        ConfigurationError: it has no such target, or the account is refused.
        TransientError: the target cannot be reached.
    """
    target = pipeline.target
    if isinstance(target, MysqlTarget):
        return opened_table(mysql_endpoint(target))
    if isinstance(target, ElasticsearchTarget):
        return opened_index(elastic_endpoint(target))
    raise ConfigurationError(f"{pipeline.name} is a relay, which has no dead letters")
