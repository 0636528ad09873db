"""How epochs are numbered."""

from __future__ import annotations

from contextlib import suppress

from arbiter.errors import Conflict, Invalid
from arbiter.payloads import MAX_BASE, epoch_payload, read_epoch
from arbiter.tree import ATTEMPTS, Tree
from arbiter.znodes import Changed, Exists, Missing


class Epochs:
    """The base that is added to creation zxids, and what the next epoch would be."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._znodes = tree.znodes
        self._paths = tree.paths

    def base(self) -> int:
        """What is added to creation zxids to give epochs; 0 unless somebody raised it.

        Raises Invalid if it cannot be read.
        """
        found = self._znodes.read(self._paths.epoch)
        return 0 if found is None else read_epoch(found.data)

    def raise_base(self, base: int) -> int:
        """Make epochs of later leaderships higher than `base`; returns the base afterwards.

        For a ZooKeeper that was built again and counts zxids from the beginning, below the
        epochs that targets know. A base is never lowered: a lower one changes nothing. The
        epoch of a leadership that exists stays what it is.

        Raises:
            Invalid: it is negative, or leaves zxids no room within 63 bits.
        """
        if not 0 <= base <= MAX_BASE:
            raise Invalid(f"not a base for epochs: {base}; it lies between 0 and {MAX_BASE}")
        path, data = self._paths.epoch, epoch_payload(base)
        for _ in range(ATTEMPTS):
            found = self._znodes.read(path)
            stored = 0 if found is None else _base_or_none(found.data)
            if stored is not None and stored >= base:
                return stored
            try:
                if found is None:
                    self._tree.create(path, data)
                else:
                    self._znodes.write(path, data, found.version)
            except (Exists, Changed, Missing):
                continue
            return base
        raise Conflict("the epoch's base is being changed concurrently")

    def next(self) -> int:
        """The least epoch that a leadership beginning now could get.

        Found out by creating a znode and removing it again; takes no leadership.
        """
        session = self._tree.session()
        path = self._paths.probe(session)
        for _ in range(ATTEMPTS):
            try:
                # Ephemeral: what a call that failed half-way leaves behind goes with the session.
                made = self._tree.create(path, b"", ephemeral=True, session=session)
                self._znodes.delete(path, made.version, session=session)
            except Exists:
                with suppress(Missing, Changed):
                    self._znodes.delete(path, 0, session=session)
                continue
            except Missing:
                continue
            return self.base() + made.created
        raise Conflict("the probe for epochs keeps coming and going")


def _base_or_none(data: bytes) -> int | None:
    """The base that is kept; None for a damaged one, which an operator may write over."""
    try:
        return read_epoch(data)
    except Invalid:
        return None
