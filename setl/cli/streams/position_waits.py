"""Follows the pipelines of the cluster that bring a target forward, while it is compared."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError
from arbiter.values import PipelineId
from setl.bulk.position_waiter import Arrival, WaitOutcome
from setl.cli.access.cluster import pipeline_config
from setl.cli.streams.positions import own_nid
from setl.cli.streams.waiting import seen_health
from setl.cli.terminal.output import to_stderr
from setl.clock import SystemClock
from setl.errors import ConfigurationError
from setl.model.stream_end import StreamEnd
from setl.node.stored import pipelines_of
from setl.operate.waiting import StoredPositionWaiter, WaitContext

if TYPE_CHECKING:
    from setl.channel.file import Pipeline

Connect = Callable[[], AbstractContextManager[Arbiter]]


class ClusterPositionWaiter:
    """`setl.bulk.position_waiter.PositionWaiter` of a pipeline as the cluster knows it.

    The cluster is asked when something differs and not before, since a channel file can be compared
    without one. Where it does not answer, or has no such channel, nobody can tell, and the user is
    told why.
    """

    def __init__(
        self,
        name: PipelineId,
        config: Pipeline,
        connect: Callable[[], Arbiter],
        timeout: float,
        show: Callable[[str], None],
    ) -> None:
        """Nothing is asked yet.

        Args:
            name: the pipeline's full name.
            config: the pipeline.
            connect: gives a session, the same each time.
            timeout: seconds that a wait takes at most.
            show: is told what is waited for.
        """
        self._name = name
        self._config = config
        self._connect = connect
        self._timeout = timeout
        self._show = show
        self._stored: StoredPositionWaiter | None = None
        self._asked = False

    def end(self) -> StreamEnd | None:
        """See `PositionWaiter.end`."""
        if not self._asked:
            self._asked = True
            self._stored = self._found()
        return None if self._stored is None else self._stored.end()

    def wait(self, end: StreamEnd) -> Arrival:
        """See `PositionWaiter.wait`."""
        if self._stored is None:
            return Arrival(WaitOutcome.UNKNOWN)
        return self._stored.wait(end)

    def _found(self) -> StoredPositionWaiter | None:
        try:
            arbiter = self._connect()
            channel = arbiter.channels.one(self._name.channel)
            idents = [each for each in pipelines_of(channel) if self._is_meant(each)]
            configs = {each: pipeline_config(channel, each) for each in idents}
        except (ArbiterError, ConfigurationError) as error:
            return self._unknown(f"the cluster cannot tell how far {self._name} is: {error}")
        if not configs:
            return self._unknown(f"the cluster has no pipeline {self._name}")
        context = WaitContext(arbiter, partial(seen_health, arbiter), SystemClock(), time.sleep)
        return StoredPositionWaiter(
            configs, context, nid=own_nid("verify"), timeout=self._timeout, show=self._show
        )

    @staticmethod
    def _unknown(why: str) -> None:
        to_stderr(f"{why}; keys that differ are read again a few times")

    def _is_meant(self, ident: PipelineId) -> bool:
        """Whether it is the pipeline, or one of those that share its partitions."""
        if ident.pipeline == self._name.pipeline:
            return True
        match = re.fullmatch(rf"{re.escape(self._name.pipeline)}-\d+", ident.pipeline)
        return bool(self._config.source.partition_count and match)


@contextmanager
def long_session(connect: Connect) -> Generator[Callable[[], Arbiter]]:
    """A session that begins when it is first asked for and ends with the block.

    Raises by what it gives:
        ArbiterError: the cluster does not answer.
    """
    with ExitStack() as open_sessions:
        sessions: list[Arbiter] = []

        def session() -> Arbiter:
            if not sessions:
                sessions.append(open_sessions.enter_context(connect()))
            return sessions[0]

        yield session
