"""What reads a binlog alone until it may read with others, and alone again if it is slow."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from setl.errors import TransientError
from setl.log import fields
from setl.model.position import BinlogPosition
from setl.systems.mysql.binlog.client import DeliveringClient, EventReader
from setl.systems.mysql.binlog.shared_log import Behind
from setl.systems.mysql.binlog.shared_reader import Subscription

_LOG = logging.getLogger(__name__)


class SharingClient:
    """Reads alone until it may read with others, and alone again if it is slow."""

    def __init__(
        self,
        open_own: Callable[[BinlogPosition], DeliveringClient],
        start: BinlogPosition,
        take: Callable[[BinlogPosition], Subscription | None],
        boundary: Callable[[], BinlogPosition | None],
        latest: Callable[[], BinlogPosition],
        *,
        give_up: Callable[[], None] = lambda: None,
    ) -> None:
        """Nothing is connected yet.

        Args:
            open_own: makes a client that begins at a position.
            start: the first position.
            take: subscribes to the shared connection.
            boundary: the position after the last event that was handed on, None inside a
                transaction.
            latest: where the binlog ends now.
            give_up: told that no subscription is waited for any more.
        """
        self._open_own, self._take = open_own, take
        self._boundary, self._latest = boundary, latest
        self._give_up = give_up
        self._client: DeliveringClient | None = open_own(start)
        self._goal = start
        self._subscription: Subscription | None = None
        self._stopped = False
        self._lock = threading.Lock()

    @property
    def shared(self) -> bool:
        """Whether it reads with others; from any thread."""
        return self._subscription is not None

    def connect(self) -> None:
        """Log in, and see how far there is to go before reading with others."""
        if self._client is not None:
            self._client.connect()
        self._goal = self._latest()

    def start(self) -> None:
        """See `DeliveringClient.start`."""
        if self._client is not None:
            self._client.start()

    def deliver(self, to: EventReader) -> None:
        """See `DeliveringClient.deliver`."""
        client, subscription = self._client, self._subscription
        if subscription is not None:
            try:
                subscription.deliver(to)
            except Behind:
                self._leave()
        elif client is not None:
            client.deliver(to)
            self._join(client)

    @property
    def arriving(self) -> int:
        """See `DeliveringClient.arriving`."""
        client, subscription = self._client, self._subscription
        reading = client if subscription is None else subscription
        return 0 if reading is None else reading.arriving

    def stop(self) -> None:
        """See `DeliveringClient.stop`."""
        with self._lock:
            self._stopped = True
            client, subscription = self._client, self._subscription
        if subscription is not None:
            subscription.leave()
        self._give_up()
        if client is not None:
            client.stop()

    def close(self) -> None:
        """See `DeliveringClient.close`."""
        self.stop()
        if self._client is not None:
            self._client.close()

    def _join(self, client: DeliveringClient) -> None:
        position = self._boundary()
        if position is None or position.order < self._goal.order:
            return
        subscription = self._take(position)
        if subscription is None:
            return
        with self._lock:
            if self._stopped:
                subscription.leave()
                return
            self._client, self._subscription = None, subscription
        client.close()
        _LOG.info("the binlog is read with other pipelines", extra=fields(position=str(position)))

    def _leave(self) -> None:
        position, subscription = self._boundary(), self._subscription
        if subscription is not None:
            subscription.leave()
        if position is None:
            raise TransientError(
                "reading with other pipelines ended inside a transaction, since this pipeline "
                "was too slow",
                hint="It reads again from its checkpoint, on a connection of its own",
            )
        client = self._open_own(position)
        with self._lock:
            self._subscription, self._client = None, client
            if self._stopped:
                raise TransientError("the source was closed")
        _LOG.info(
            "the binlog is read alone, since this pipeline is slower than others",
            extra=fields(position=str(position)),
        )
        self.connect()
        self.start()
