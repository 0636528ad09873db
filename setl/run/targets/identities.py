"""Notices that a table or index of the target is not the one that a pipeline wrote before.

An index that somebody deletes is made again with the next document, without all others. So what the
target says of each index is kept in the checkpoint, and compared before rows are written. Between
two looks at an index some seconds may pass, in which rows go into a new one. That does no harm:
what is kept stays the former one's, until all rows are about to be reloaded.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

from setl.clock import Clock
from setl.errors import ConfigurationError, TargetReplacedError, TransientError
from setl.load.identities import Identity
from setl.log import fields
from setl.model.checkpoint import Checkpoint, KnownTargets
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.model.table_load import TableLoad
from setl.model.table_rows import OTHERS
from setl.model.target_name import target_name

_log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
"""How long an index counts as seen. Asking for each load would cost as much as a small load."""

MOST_KNOWN: Final = 500
"""Targets that are kept with a checkpoint; of more, those are kept that were written last."""

_AGAIN_SECONDS: Final = 1.0  # a node of the cluster may not know yet what another one has made

Ask = Callable[[Collection[str]], Mapping[str, Identity]]
"""See `setl.load.identities.IdentifiedTarget.identities`."""


class WillReload(Protocol):
    """Tells whether all rows of a target are about to be loaded."""

    def __call__(self, name: str, load: TableLoad | None, *, exists: bool) -> bool:
        """See `setl.run.table_loads.reloads.Reloads`."""
        ...


class Identities:
    """What the targets of one leadership are. Used by the run's thread."""

    def __init__(
        self,
        ask: Ask,
        will_reload: WillReload,
        leadership: Leadership,
        clock: Clock,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Nothing is known yet.

        Args:
            ask: asks the target.
            will_reload: whether all rows of a target are about to be loaded.
            leadership: on whose behalf.
            clock: tells when to ask again.
            sleep: waits between two looks at what seems to be another one.
        """
        self._ask = ask
        self._will_reload = will_reload
        self._leadership = leadership
        self._clock = clock
        self._sleep = sleep
        self._known: dict[str, str] = {}
        self._looked: dict[str, float] = {}
        self._written: set[str] = set()  # since they were looked at
        self._load: TableLoad | None = None
        self._others = 0

    def begin(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint, and from what it says of the targets."""
        self._known = dict(checkpoint.targets)
        self._looked, self._written = {}, set()
        self._load = checkpoint.load

    def goes_on_with(self, load: TableLoad | None) -> None:
        """This load of whole tables is under way, or was the last one."""
        self._load = load

    @property
    def others(self) -> int:
        """How often a name was found to stand for another target than before."""
        return self._others

    @property
    def known(self) -> KnownTargets:
        """What is to be kept with the checkpoint; those that were written last stand last."""
        return tuple(self._known.items())[-MOST_KNOWN:]

    def check(self, targets: Collection[tuple[str, str]]) -> None:
        """Rows are about to be written to these targets.

        Raises:
            TargetReplacedError: one of them is not what it was.
            ConfigurationError: two of them are names of one index, or one is a name of several.
            SetlError: the target does not answer.
        """
        names = {target_name(target) for target in targets}
        unseen = [name for name in names if name not in self._looked]
        if unseen:
            self._look(unseen)
        self._look_again(names)
        if unseen:
            self._refuse_two_names()
        self._written |= names

    def loaded(self, targets: Collection[tuple[str, str]], report: Loaded) -> None:
        """Rows were written to some of these targets.

        Order: before the checkpoint passes these rows. So what the checkpoint does not know holds
        nothing yet that the stream does not bring again.

        Raises:
            SetlError: as `check`.
        """
        all_of_them = OTHERS in report.tables
        names = {target_name(target) for target in targets}
        made = [
            name
            for name in names
            if name not in self._known and (all_of_them or name in report.tables)
        ]
        if made:
            self._look(made)

    def idle(self) -> None:
        """Nothing comes for a moment: look at what was written since the last look.

        Raises:
            SetlError: as `check`.
        """
        self._look_again(self._written)

    def _look_again(self, names: Collection[str]) -> None:
        """Look at those that were not looked at for some time, if the target answers."""
        now = self._clock.monotonic()
        due = [name for name in names if now - self._looked[name] >= LOOK_SECONDS]
        if not due:
            return
        try:
            self._look(due)
        except TransientError as error:
            # Rows may find their way all the same, and say more of what is wrong if not.
            self._looked.update(dict.fromkeys(due, now))
            _log.debug("targets not looked at", extra=fields(error=str(error)))

    def _look(self, names: Collection[str]) -> None:
        identities = self._ask(names)
        self._refuse_several(identities)
        others = [name for name in names if not self._take(name, identities.get(name))]
        if not others:
            return
        self._sleep(_AGAIN_SECONDS)
        identities = self._ask(others)
        for name in others:
            if not self._take(name, identities.get(name)):
                raise self._replaced(name, identities.get(name))

    def _refuse_several(self, identities: Mapping[str, Identity]) -> None:
        """Refuse aliases of several indexes, as after a rollover.

        A row that changes would be written into one of them, and stay as it was in another.
        """
        for name, identity in identities.items():
            if identity.several:
                raise ConfigurationError(
                    f"the alias {name} stands for {len(identity.several)} indexes:"
                    f" {', '.join(identity.several)}",
                    hint="Let it stand for the one that has all documents. What was written into"
                    " another one meanwhile is missing there: `setl verify --repair` finds it",
                    pipeline=self._leadership.key,
                    index=name,
                )

    def _refuse_two_names(self) -> None:
        """Refuse targets that are one: rows of the same key would become one document."""
        names: dict[str, str] = {}
        for name in sorted(self._known.keys() & self._looked.keys()):
            own = Identity.of(self._known[name])
            other = names.setdefault(own.stored, name)
            if own.id and other != name:
                raise ConfigurationError(
                    f"{other} and {name} are names of one index",
                    hint="Write the same name under `to`, so that setl sees to it that no two rows"
                    " become one document; or send them to two indexes",
                    pipeline=self._leadership.key,
                )

    def _take(self, name: str, current: Identity | None) -> bool:
        """Know what was found; False if it is another one than before."""
        stored = self._known.get(name)
        before = None if stored is None else Identity.of(stored)
        if before is not None and (current is None or current.id != before.id):
            moved = current is not None and current.alias and current.name != before.name
            self._others += 1
            if moved:
                _log.warning("an alias stands for another index", extra=self._fields(name, current))
            elif self._will_reload(name, self._load, exists=current is not None):
                _log.warning(
                    "a target is another one, and is reloaded", extra=self._fields(name, current)
                )
            else:
                return False
        first = name not in self._looked
        self._looked[name] = self._clock.monotonic()
        self._written.discard(name)
        if current is None:
            self._known.pop(name, None)
        else:
            if first:
                self._known.pop(name, None)  # to stand last
            self._known[name] = current.stored
        return True

    def _replaced(self, name: str, current: Identity | None) -> TargetReplacedError:
        key, channel = self._leadership.key, self._leadership.channel
        what = "is gone" if current is None else "was replaced: it is another one of the same name"
        delete = "" if current is None else "Delete it if something has made it again. "
        return TargetReplacedError(
            f"{name}, to which this pipeline has written, {what}. What it held does not come again"
            " by itself",
            hint=f"{delete}`setl load {key} --no-wait` loads tables again; name all that go there,"
            f" or none. Then `setl start {channel}`. Where it holds everything, as after a copy:"
            f" `setl stop {channel}`, and `setl position reset {key} --to` the position under"
            f" `resume` in `setl position show {key}` takes it as it is",
            pipeline=key,
            target=name,
        )

    def _fields(self, name: str, current: Identity | None) -> dict[str, object]:
        now = "nothing" if current is None else current.stored
        return fields(
            **self._leadership.fields, target=name, before=self._known.get(name), found=now
        )
