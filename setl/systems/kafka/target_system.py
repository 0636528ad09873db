"""The topic of a relay as a target: see `setl.systems.port.TargetSystem`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from typing_extensions import override

from setl.channel.file import KafkaTarget
from setl.errors import ConfigurationError
from setl.load.deadletters.store import DeadLetterStore
from setl.load.sink import Fence, SinkSettings
from setl.load.target_view import LookAtTarget
from setl.load.version_fence import VersionFence
from setl.relay.formats import RecordFormat, serializer_maker
from setl.systems.expiry import Expiration
from setl.systems.finding import Report
from setl.systems.kafka.preflight.topic import check_kafka_target
from setl.systems.kafka.relay.log import KafkaRelayLog
from setl.systems.kafka.tls import broker_certificates
from setl.systems.pipeline_check import PipelineCheck
from setl.systems.port import Relaying, TargetSystem

if TYPE_CHECKING:
    # Relays run without Spark, which these need.
    from setl.bulk.source_side import MappedTable
    from setl.bulk.target_reader import TargetReader

_SECONDS = 15.0
"""For any answer of Kafka. A process that is told to end waits for it, and for 30 s at most."""


class KafkaTargetSystem(TargetSystem):
    """The `TargetSystem` of a topic that a relay fills; no rows are loaded into it."""

    def __init__(self, config: KafkaTarget) -> None:
        """Nothing is connected yet."""
        self._config = config

    @override
    def sink(self, mark: int, *, dead_letter_limit: int) -> SinkSettings:
        raise ConfigurationError(
            f"nothing is loaded into Kafka: {self._config.address} is the topic of a relay",
            hint="`setl relay` runs it",
        )

    def expirations(self) -> Sequence[Expiration]:
        """See `ExpiringSystem.expirations`: of the brokers."""
        return broker_certificates(self._config.brokers, self._config.ssl_ca)

    def fence(self, pipeline: str) -> Fence:  # noqa: ARG002
        """See `TargetSystem.fence`; a relay that takes over has the log refuse former ones."""
        return VersionFence()

    @override
    def dead_letters(self) -> AbstractContextManager[DeadLetterStore]:
        raise ConfigurationError(
            f"{self._config.address} is the topic of a relay, which has no dead letters"
        )

    @override
    def reader(
        self,
        name: tuple[str, str],
        sources: Sequence[MappedTable],
        columns: Sequence[str],
    ) -> TargetReader:
        raise ConfigurationError(
            "a topic holds changes and no rows to compare",
            hint="Verify the pipelines that read it",
        )

    def holds_rows(self, name: tuple[str, str]) -> bool:  # noqa: ARG002
        """See `TargetSystem.holds_rows`; a log has records, no rows."""
        return False

    @override
    def view(self, pipeline: str) -> LookAtTarget:
        raise ConfigurationError(f"{pipeline} is a relay, which waits for no rows of a target")

    @override
    def relaying(self, pipeline: str) -> Relaying:
        config = self._config
        return Relaying(
            log=KafkaRelayLog(config, f"setl/{pipeline}", limit=_SECONDS),
            exact=config.delivery == "transactional",
            heartbeat=config.heartbeat,
            partition_by=config.partition_by,
            format=RecordFormat(
                name=config.format,
                topic=config.topic,
                schema_changes=config.writes_schema_changes,
                options=config.format_options,
            ),
        )

    @override
    def preflight(self, check: PipelineCheck, report: Report) -> None:
        with report.failing():
            serializer_maker(self._config.format)
        check_kafka_target(self._config, report)
