"""Where a pipeline's dead letters are, as its channel file says."""

from __future__ import annotations

from contextlib import AbstractContextManager

from setl.config.channel import ElasticsearchTarget, MysqlTarget, Pipeline
from setl.config.connections import elastic_endpoint, mysql_endpoint
from setl.errors import ConfigurationError
from setl.load.deadletters.elasticsearch_store import opened_index
from setl.load.deadletters.mysql_store import opened_table
from setl.load.deadletters.port import DeadLetterStore


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
