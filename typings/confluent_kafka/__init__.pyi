from collections.abc import Callable, Mapping
from logging import Logger
from typing import Any, Final

OFFSET_BEGINNING: Final[int]
TIMESTAMP_CREATE_TIME: Final[int]

class KafkaError:
    ILLEGAL_GENERATION: Final[int]
    ILLEGAL_SASL_STATE: Final[int]
    CLUSTER_AUTHORIZATION_FAILED: Final[int]
    GROUP_AUTHORIZATION_FAILED: Final[int]
    INVALID_CONFIG: Final[int]
    INVALID_MSG: Final[int]
    INVALID_PARTITIONS: Final[int]
    INVALID_PRODUCER_EPOCH: Final[int]
    INVALID_RECORD: Final[int]
    INVALID_REPLICATION_FACTOR: Final[int]
    INVALID_REQUIRED_ACKS: Final[int]
    INVALID_TIMESTAMP: Final[int]
    INVALID_TRANSACTION_TIMEOUT: Final[int]
    MSG_SIZE_TOO_LARGE: Final[int]
    NOT_ENOUGH_REPLICAS: Final[int]
    OFFSET_METADATA_TOO_LARGE: Final[int]
    POLICY_VIOLATION: Final[int]
    PRODUCER_FENCED: Final[int]
    RECORD_LIST_TOO_LARGE: Final[int]
    REQUEST_TIMED_OUT: Final[int]
    SASL_AUTHENTICATION_FAILED: Final[int]
    TOPIC_ALREADY_EXISTS: Final[int]
    TOPIC_AUTHORIZATION_FAILED: Final[int]
    TOPIC_EXCEPTION: Final[int]
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Final[int]
    UNKNOWN: Final[int]
    UNKNOWN_MEMBER_ID: Final[int]
    UNKNOWN_TOPIC_OR_PART: Final[int]
    UNSUPPORTED_COMPRESSION_TYPE: Final[int]
    UNSUPPORTED_FOR_MESSAGE_FORMAT: Final[int]
    UNSUPPORTED_SASL_MECHANISM: Final[int]
    UNSUPPORTED_VERSION: Final[int]
    _ALL_BROKERS_DOWN: Final[int]
    _AUTHENTICATION: Final[int]
    _AUTO_OFFSET_RESET: Final[int]
    _BAD_MSG: Final[int]
    _FATAL: Final[int]
    _GAPLESS_GUARANTEE: Final[int]
    _PURGE_INFLIGHT: Final[int]
    _PURGE_QUEUE: Final[int]
    _FENCED: Final[int]
    _INVALID_ARG: Final[int]
    _NOT_IMPLEMENTED: Final[int]
    _PARTITION_EOF: Final[int]
    _SSL: Final[int]
    _STATE: Final[int]
    _TIMED_OUT: Final[int]
    _TRANSPORT: Final[int]
    _UNKNOWN_TOPIC: Final[int]
    _UNSUPPORTED_FEATURE: Final[int]
    def __init__(
        self,
        code: int,
        reason: str | None = None,
        fatal: bool = False,
        retriable: bool = False,
        txn_requires_abort: bool = False,
    ) -> None: ...
    def code(self) -> int: ...
    def name(self) -> str: ...
    def str(self) -> str: ...
    def fatal(self) -> bool: ...
    def retriable(self) -> bool: ...

class KafkaException(Exception): ...

class Message:
    def error(self) -> KafkaError | None: ...
    def key(self) -> bytes | None: ...
    def timestamp(self) -> tuple[int, int]: ...
    def headers(self) -> list[tuple[str, bytes | None]] | None: ...
    def offset(self) -> int: ...
    def partition(self) -> int: ...
    def value(self) -> bytes | None: ...

class TopicPartition:
    topic: str
    partition: int
    offset: int
    metadata: str | None
    error: KafkaError | None
    def __init__(
        self, topic: str, partition: int = -1, offset: int = -1001, metadata: str | None = None
    ) -> None: ...

class TopicCollection:
    def __init__(self, topic_names: list[str]) -> None: ...

class Uuid:
    def get_most_significant_bits(self) -> int: ...
    def get_least_significant_bits(self) -> int: ...

class PartitionMetadata: ...

class TopicMetadata:
    error: KafkaError | None
    partitions: dict[int, PartitionMetadata]

class ClusterMetadata:
    cluster_id: str | None
    topics: dict[str, TopicMetadata]

class Producer:
    def __init__(self, config: Mapping[str, Any], /, *, logger: Logger = ...) -> None: ...
    def produce(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = -1,
        *,
        on_delivery: Callable[[KafkaError | None, Message], None] | None = None,
        timestamp: int = 0,
        headers: list[tuple[str, bytes]] | None = None,
    ) -> None: ...
    def poll(self, timeout: float = -1) -> int: ...
    def flush(self, timeout: float = -1) -> int: ...
    def purge(
        self, in_queue: bool = True, in_flight: bool = True, blocking: bool = True
    ) -> None: ...
    def init_transactions(self, timeout: float = -1) -> None: ...
    def begin_transaction(self) -> None: ...
    def commit_transaction(self, timeout: float = -1) -> None: ...
    def abort_transaction(self, timeout: float = -1) -> None: ...
    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata: ...
    def __len__(self) -> int: ...

class Consumer:
    def __init__(self, config: Mapping[str, Any], /, *, logger: Logger = ...) -> None: ...
    def assign(self, partitions: list[TopicPartition]) -> None: ...
    def unassign(self) -> None: ...
    def pause(self, partitions: list[TopicPartition]) -> None: ...
    def subscribe(
        self,
        topics: list[str],
        *,
        on_assign: Callable[[Consumer, list[TopicPartition]], None] = ...,
        on_revoke: Callable[[Consumer, list[TopicPartition]], None] = ...,
        on_lost: Callable[[Consumer, list[TopicPartition]], None] = ...,
    ) -> None: ...
    def consume(self, num_messages: int = 1, timeout: float = -1) -> list[Message]: ...
    def commit(self, *, offsets: list[TopicPartition], asynchronous: bool) -> None: ...
    def committed(
        self, partitions: list[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]: ...
    def poll(self, timeout: float = -1) -> Message | None: ...
    def offsets_for_times(
        self, partitions: list[TopicPartition], timeout: float = -1
    ) -> list[TopicPartition]: ...
    def get_watermark_offsets(
        self, partition: TopicPartition, timeout: float = -1, cached: bool = False
    ) -> tuple[int, int]: ...
    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata: ...
    def close(self) -> None: ...
