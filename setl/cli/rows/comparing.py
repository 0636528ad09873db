"""Compares targets with their sources on a Spark session of the command's own."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pyspark import SparkContext

from arbiter.arbiter import Arbiter
from arbiter.values import PipelineId
from setl.bulk.comparison import Difference
from setl.bulk.verdict import TableVerdict
from setl.bulk.verify_target import VerifySettings
from setl.channel.file import Pipeline
from setl.cli.streams.position_waits import ClusterPositionWaiter, Connect, long_session
from setl.counting import count
from setl.errors import SetlError
from setl.operate.verify import verify_keys, verify_pipeline
from setl.run.spark.session import SparkSettings, start_context
from setl.transform.spark_on_demand import SparkOnDemand

FURTHER_KEYS = 200_000
"""How many keys that differ a repair remembers, beside those that are read again at once."""

KEYS_AT_ONCE = VerifySettings().recheck_keys
"""How many keys are read again at once."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What was found of one target.

    Attributes:
        channel: the channel.
        config: the pipeline.
        verdict: how its target compares with its source.
    """

    channel: str
    config: Pipeline
    verdict: TableVerdict

    @property
    def ident(self) -> PipelineId:
        """The pipeline."""
        return PipelineId(self.channel, self.config.name)


class Comparer:
    """Compares, and says how far it is."""

    def __init__(
        self,
        spark: SparkOnDemand,
        sample: int,
        show: Callable[[str], None],
        session: Callable[[], Arbiter],
        timeout: float,
        *,
        further: int = 0,
    ) -> None:
        """Nothing is compared yet.

        Args:
            spark: the session.
            sample: differing keys to name for each target.
            show: is told how far it is, from another thread.
            session: gives a session with the cluster, which is asked how far pipelines are.
            timeout: seconds to wait for a pipeline to bring what is on its way.
            further: see `VerifySettings.further_keys`.
        """
        self._spark = spark
        self._sample = sample
        self._show = show
        self._session = session
        self._timeout = timeout
        self._settings = VerifySettings(further_keys=further)

    def compare(
        self,
        channel: str,
        config: Pipeline,
        tables: Sequence[str] = (),
        finished: Callable[[TableVerdict], None] | None = None,
        failed: Callable[[str, SetlError], None] | None = None,
    ) -> list[Compared]:
        """Compare everything that a pipeline keeps in step, or what some source tables go into.

        `finished` and `failed` as for `setl.operate.verify.verify_pipeline`.

        Raises:
            SetlError: as `setl.operate.verify.verify_pipeline`.
        """

        def report(target: str, rows: int) -> None:
            self._show(f"{channel}/{config.name}: {target}, {count(rows, 'row')}")

        verdicts = verify_pipeline(
            self._spark,
            config,
            list(tables) or None,
            self._sample,
            settings=self._settings,
            progress=report,
            finished=finished,
            failed=failed,
            waiter=self._waiter(channel, config),
        )
        return [Compared(channel, config, verdict) for verdict in verdicts]

    def again(self, one: Compared) -> Compared:
        """Compare a target that one table goes into once more; raises as `compare`."""
        found = self.compare(one.channel, one.config, [one.verdict.table])
        return next(other for other in found if other.verdict.target == one.verdict.target)

    def keys(self, one: Compared, differences: Sequence[Difference]) -> TableVerdict:
        """Look again at keys that differed, at most `KEYS_AT_ONCE`; raises as `compare`."""
        waiter = self._waiter(one.channel, one.config)
        settings = replace(self._settings, sample=0)
        return verify_keys(
            self._spark, one.config, one.verdict, differences, settings, waiter=waiter
        )

    def _waiter(self, channel: str, config: Pipeline) -> ClusterPositionWaiter:
        ident = PipelineId(channel, config.name)
        return ClusterPositionWaiter(ident, config, self._session, self._timeout, self._show)


@contextmanager
def comparer(
    settings: SparkSettings,
    sample: int,
    show: Callable[[str], None],
    connect: Connect,
    timeout: float,
    *,
    further: int = 0,
) -> Generator[Comparer]:
    """Make a comparer; Spark starts when it is first needed, and ends with the block.

    Args:
        settings: of the session.
        sample: see `Comparer`.
        show: likewise.
        connect: opens a session with the cluster, if it is needed.
        timeout: see `Comparer`.
        further: likewise.
    """

    def start() -> SparkContext:
        show("starting Spark")
        return start_context(settings)

    spark = SparkOnDemand(start)
    try:
        with long_session(connect) as cluster:
            yield Comparer(spark, sample, show, cluster, timeout, further=further)
    finally:
        spark.stop()
