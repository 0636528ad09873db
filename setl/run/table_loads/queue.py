"""The requests to load tables, as the leader of their pipeline sees them."""

from __future__ import annotations

import logging
import threading

from setl.clock import Clock
from setl.errors import TransientError
from setl.log import fields
from setl.model.leadership import Leadership
from setl.model.load_request import LoadRequest
from setl.model.table_load import TableLoad
from setl.run.table_loads import choice as load_choice
from setl.run.table_loads.choice import START
from setl.run.table_loads.requests import StoredLoadRequests

_log = logging.getLogger(__name__)


class LoadQueue:
    """What is to be loaded next, and whom to tell what became of it.

    Used by the run's thread; only `look_again` may be called by others.
    """

    def __init__(
        self,
        requests: StoredLoadRequests,
        wanted: tuple[str, ...],
        leadership: Leadership,
        clock: Clock,
    ) -> None:
        """Nothing is seen yet.

        Args:
            requests: where they are kept.
            wanted: entries of the channel file whose tables are to be loaded.
            leadership: on whose behalf.
            clock: tells the time.
        """
        self._requests = requests
        self._wanted = wanted
        self._leadership = leadership
        self._clock = clock
        self._seen: list[LoadRequest] = []
        self._changed = threading.Event()
        self._changed.set()

    def look_again(self) -> None:
        """Requests may have changed, or one can be answered; from any thread."""
        self._changed.set()

    @property
    def has_changed(self) -> bool:
        """Whether `look` is to be called."""
        return self._changed.is_set()

    def look(self, load: TableLoad | None) -> bool:
        """Look at the requests if they may have changed, and answer that of a load that is over.

        What the channel file asks for becomes a request, too, if no load has taken it up.

        Args:
            load: the last load, as the stored checkpoint has it.

        Returns:
            False if they cannot be seen now; then nothing is to be begun.
        """
        if not self._changed.is_set():
            return True
        self._changed.clear()
        try:
            self._seen = self._looked(load)
        except TransientError as error:
            extra = fields(**self._leadership.fields, error=error.message)
            _log.debug("requests to load tables not seen", extra=extra)
            self._changed.set()
            return False
        return True

    def _looked(self, load: TableLoad | None) -> list[LoadRequest]:
        requests = list(self._requests.unanswered())
        asked = {name for r in requests if r.reason == START for name in r.entries}
        missing = [n for n in load_choice.missing_entries(load, self._wanted) if n not in asked]
        if missing:
            now = self._clock.now()
            made = LoadRequest(entries=tuple(missing), reason=START, by="setl", sent=now)
            requests.append(self._requests.add(made))
        if load is not None and load.ended:
            for request in [r for r in requests if load_choice.carries_out(load, r)]:
                state, text = load_choice.outcome(load)
                self._requests.answer(request, state, text, rows=load.rows, at=load.ended)
                requests.remove(request)
        return requests

    def of(self, load: TableLoad) -> LoadRequest | None:
        """The request that a load carries out, None if it is not there."""
        return next((each for each in self._seen if load_choice.carries_out(load, each)), None)

    @property
    def next(self) -> LoadRequest | None:
        """The request to begin when nothing is under way, None if none waits."""
        return load_choice.next_request(self._seen)

    def remembered(self, load: TableLoad) -> TableLoad | None:
        """A load that is over with what has to be remembered of it; None if that is the same."""
        stored = load_choice.remembered(load, self._wanted)
        return None if stored == load else stored
