from collections.abc import Mapping
from concurrent.futures import Future
from enum import Enum
from logging import Logger
from typing import Any

from confluent_kafka import ClusterMetadata, TopicCollection, TopicPartition, Uuid

class ResourceType(Enum):
    TOPIC = 2

class ConfigResource:
    def __init__(self, restype: ResourceType, name: str) -> None: ...

class TopicDescription:
    topic_id: Uuid

class ConfigEntry:
    value: str | None

class NewTopic:
    def __init__(
        self,
        topic: str,
        num_partitions: int = -1,
        replication_factor: int = -1,
        *,
        config: Mapping[str, str] = ...,
    ) -> None: ...

class AdminClient:
    def __init__(self, config: Mapping[str, Any], /, *, logger: Logger = ...) -> None: ...
    def poll(self, timeout: float = -1) -> int: ...
    def create_topics(
        self, new_topics: list[NewTopic], *, request_timeout: float = ...
    ) -> dict[str, Future[None]]: ...
    def describe_configs(
        self, resources: list[ConfigResource], *, request_timeout: float = ...
    ) -> dict[ConfigResource, Future[dict[str, ConfigEntry]]]: ...
    def describe_topics(
        self, topics: TopicCollection, *, request_timeout: float = ...
    ) -> dict[str, Future[TopicDescription]]: ...
    def delete_records(
        self, topic_partition_offsets: list[TopicPartition]
    ) -> dict[TopicPartition, Future[object]]: ...
    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata: ...
