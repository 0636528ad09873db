"""Why a partition does not go on although there is more in it.

Readers of committed records stop in front of the oldest transaction that is open, whoever wrote
what stands behind it. A transaction that its producer neither commits nor gives up stops them for
ever, and to a client the partition just looks idle.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from setl.channel.fields.kafka_endpoints import KafkaSource
from setl.clock import Clock
from setl.select.source import Blocked

_SOON: Final = 10.0  # seconds that a transaction may be open, and an answer may take


@dataclass(frozen=True, slots=True)
class _Stand:
    """A position at which nothing came, though more is there.

    Attributes:
        position: the offset at which reading would go on.
        since: seconds since 1970.
        began: the same by the monotonic clock.
        waiting: offsets from the position to the end of the partition.
        open: whether committed records end at the position; None while nobody has asked.
    """

    position: int
    since: float
    began: float
    waiting: int
    open: bool | None = None


class NoProgress:
    """Follows how one partition is read. Written by the thread that reads, read by any."""

    def __init__(self, config: KafkaSource, clock: Clock) -> None:
        """Nothing is read yet."""
        self._config = config
        self._clock = clock
        self._stand: _Stand | None = None

    def moves(self) -> None:
        """Something came, or reading begins or ends."""
        self._stand = None

    def nothing_came(self, position: int, waiting: int | None) -> None:
        """An attempt to read was in vain.

        Args:
            position: where reading goes on.
            waiting: offsets from there to the end of all records, None if that is not known.
        """
        before = self._stand
        if not waiting:
            self._stand = None
        elif before is None or before.position != position:
            self._stand = _Stand(position, self._clock.now(), self._clock.monotonic(), waiting)
        elif before.waiting != waiting:
            self._stand = _Stand(position, before.since, before.began, waiting, before.open)

    @property
    def is_odd(self) -> bool:
        """Whether it is worth to ask where committed records end."""
        return self._stand is not None

    def committed_end(self, end: int) -> None:
        """The brokers have told where committed records end."""
        s = self._stand
        if s is not None:
            self._stand = _Stand(s.position, s.since, s.began, s.waiting, end <= s.position)

    def blocked(self) -> Blocked | None:
        """See `Source.blocked`; None for as long as it may be transient soon."""
        stand = self._stand
        if stand is None or stand.open is None:
            return None
        seconds = self._clock.monotonic() - stand.began
        if seconds < _SOON:
            return None
        at = f"{self._config.topic}[{self._config.partition}]@{stand.position}"
        since = f"{datetime.fromtimestamp(stand.since, UTC):%Y-%m-%d %H:%M:%S} UTC"
        waiting = f"{stand.waiting} {'record waits' if stand.waiting == 1 else 'records wait'}"
        if not stand.open:
            what = f"records from {at} on, which the brokers have and do not send: {waiting}"
            hint = "`setl peek` shows whether others get them; the brokers' logs may say why"
            return Blocked(f"{what} since {since}", hint, seconds, transaction=False)
        what = f"the end of a transaction that is open at {at}: {waiting} since {since}"
        return Blocked(what, self._hints(stand.position), seconds, transaction=True)

    def _hints(self, position: int) -> str:
        tool = f"kafka-transactions.sh --bootstrap-server {self._config.brokers[0]}"
        where = f"--topic {self._config.topic} --partition {self._config.partition}"
        return (
            f"`{tool} describe-producers {where}` names its producer, which has to commit it or"
            " give it up. Brokers end it after the producer's transaction.timeout.ms. If they do"
            f" not, `{tool} abort {where} --start-offset {position}` does, and its own records are"
            " lost"
        )
