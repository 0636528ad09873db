"""Cancels what a run applies, from another thread (I3)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from setl.errors import SetlError
from setl.log import fields
from setl.model.leadership import Leadership
from setl.run.parts import Work

_log = logging.getLogger(__name__)

_AGAIN_SECONDS = 0.2


class Cancelling:
    """Cancels the work of a run, again and again until the run has ended."""

    def __init__(self, work: Work, leadership: Leadership, ended: threading.Event) -> None:
        """Nothing is cancelled yet.

        Args:
            work: what is cancelled.
            leadership: whose work it is.
            ended: set once the run has ended.
        """
        self._work = work
        self._leadership = leadership
        self._ended = ended

    def begin(self) -> None:
        """Cancel from now on; returns at once."""
        # Neither may hold up the caller, which has other runs to cancel.
        for end in (self._work.cancel, self._end_writers):
            threading.Thread(
                target=self._until_ended, args=(end,), name="abort", daemon=True
            ).start()

    def _until_ended(self, end: Callable[[], None]) -> None:
        # The first time may come just before the load begins.
        while not self._ended.is_set():
            end()
            self._ended.wait(_AGAIN_SECONDS)

    def _end_writers(self) -> None:
        # Spark takes up to four seconds to end a cancelled task; its connection ends at once.
        try:
            self._work.end_writers()
        except SetlError as error:
            _log.info(
                "writers not ended", extra=fields(**self._leadership.fields, error=str(error))
            )
