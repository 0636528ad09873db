"""Problems of a node's cycles that must not end it: logged once, and kept to be shown."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from arbiter.arbiter import Arbiter
from arbiter.errors import ArbiterError, Contact
from arbiter.snapshot import Snapshot
from setl.clock import Clock
from setl.log import fields

_log = logging.getLogger(__name__)


class CycleProblem:
    """An unexpected exception in a cycle, once or repeatedly. Used by one thread.

    Attributes:
        sentence: what it was, "" if all is well.
    """

    def __init__(self, clock: Clock, nid: str, **log_fields: str) -> None:
        """Nothing has gone wrong yet; `log_fields` says in the log where it does."""
        self.sentence = ""
        self._clock = clock
        self._log_fields = {"nid": nid, **log_fields}
        self._since: float | None = None

    @property
    def lasts(self) -> float:
        """Seconds for which nothing but this has happened."""
        return 0.0 if self._since is None else self._clock.monotonic() - self._since

    def occurred(self, error: Exception) -> None:
        """Note that it happened; each text is logged once, that of a defect with its traceback."""
        logged = isinstance(error, ArbiterError)  # a sentence for people, such as a refused login
        sentence = str(error)[:500]
        if not logged:
            sentence = f"unexpected {type(error).__name__}: {sentence}"
        if self._since is None:
            self._since = self._clock.monotonic()
        if sentence != self.sentence:
            _log.error(
                "a cycle failed",
                exc_info=None if logged else error,
                extra=fields(**self._log_fields, error=sentence),
            )
        self.sentence = sentence

    def passed(self) -> None:
        """Note a cycle without it."""
        if self._since is not None:
            _log.info("cycles succeed again", extra=fields(**self._log_fields))
        self.sentence, self._since = "", None


class DamagedZnodes:
    """The znodes that cannot be read, told when they come and go. Used by one thread."""

    def __init__(self, nid: str) -> None:
        self._nid = nid
        self._known: dict[str, str] = {}

    def seen(self, damaged: Mapping[str, str], own: str) -> bool:
        """Take in what `arbiter.values.Facts.damaged` says now.

        Args:
            damaged: paths, and what is wrong.
            own: how the path of this node's own znode ends.

        Returns:
            Whether that is among them.
        """
        for path, wrong in damaged.items():
            if self._known.get(path) != wrong:
                log_fields = fields(nid=self._nid, znode=path, error=wrong)
                _log.warning("znode cannot be read", extra=log_fields)
        for path in self._known.keys() - damaged.keys():
            _log.info("znode is readable or gone", extra=fields(nid=self._nid, znode=path))
        self._known = dict(damaged)
        return any(path.endswith(own) for path in damaged)


class LostChannels:
    """Notices that ZooKeeper holds none of the channels that it held. Used by one thread.

    It was set up again, or its data are gone. Nothing fails then: there is nothing left to lead,
    and what was raised as an alarm is gone with the rest.

    Attributes:
        sentence: what is gone and what to do, "" while nothing is.
    """

    def __init__(self, nid: str) -> None:
        self.sentence = ""
        self._nid = nid
        self._known: tuple[str, ...] = ()
        self._session = 0

    def seen(self, snapshot: Snapshot, arbiter: Arbiter) -> None:
        """Take in what a look has found.

        An operator may remove the last channel while this node is cut off: the log of actions
        says so, which an empty ZooKeeper does not have.

        Raises:
            ArbiterError: the log of actions cannot be read now.
        """
        if snapshot.contact is not Contact.CONNECTED:
            return
        names = tuple(sorted(snapshot.facts.channels))
        if names or snapshot.session == self._session or not self._known or arbiter.actions.all():
            if names:
                self.sentence = ""
            self._known, self._session = names, snapshot.session
            return
        self.sentence = (
            f"ZooKeeper holds none of the channels that it held ({', '.join(self._known)}): it was"
            " set up again, or has lost its data."
            " `setl apply` and `setl start` them again; `setl epoch show` says whether epochs have"
            " to be raised"
        )
        _log.error("channels are gone", extra=fields(nid=self._nid, error=self.sentence))
        self._known, self._session = (), snapshot.session
