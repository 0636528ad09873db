"""A pipeline's two ends and its checkpoint store, as its channel file describes them."""

from __future__ import annotations

from arbiter.port import Arbiter
from arbiter.values import PipelineId
from setl.config.channel import DtsSource, MysqlTarget, Pipeline
from setl.config.connections import mysql_endpoint
from setl.load.elasticsearch_fence import VersionFence
from setl.load.mysql_fence import MysqlFence
from setl.load.port import Fence
from setl.select.checkpoint_arbiter import ArbiterCheckpointStore
from setl.select.checkpoint_mysql import MysqlCheckpointStore
from setl.select.identity import replica_id
from setl.select.kafka_dts import DtsKafkaSource
from setl.select.mysql_binlog import MysqlBinlogSource
from setl.select.port import CheckpointStore, Source


def source_of(pipeline: Pipeline, channel: str, nid: str) -> Source:
    """What a pipeline reads, as node `nid` reads it; nothing is connected yet."""
    config = pipeline.source
    if isinstance(config, DtsSource):
        return DtsKafkaSource(config)
    server_id = config.server_id or replica_id(channel, pipeline.name, nid)
    return MysqlBinlogSource(mysql_endpoint(config), server_id, config.start)


def fence_of(pipeline: Pipeline, channel: str) -> Fence:
    """What keeps stale leaders out of a pipeline's target."""
    target = pipeline.target
    if isinstance(target, MysqlTarget):
        key = f"{channel}/{pipeline.name}"
        return MysqlFence(mysql_endpoint(target), key, target.fence_timeout)
    return VersionFence()


def keeps_checkpoint(pipeline: Pipeline) -> bool:
    """Whether a pipeline's target keeps its checkpoint; else ZooKeeper does."""
    return isinstance(pipeline.target, MysqlTarget) and pipeline.checkpoint != "zookeeper"


def store_of(pipeline: Pipeline, channel: str, arbiter: Arbiter, nid: str) -> CheckpointStore:
    """Where a pipeline's checkpoint is kept."""
    target = pipeline.target
    if isinstance(target, MysqlTarget) and keeps_checkpoint(pipeline):
        return MysqlCheckpointStore(mysql_endpoint(target), f"{channel}/{pipeline.name}", nid=nid)
    return ArbiterCheckpointStore(arbiter, PipelineId(channel, pipeline.name))
