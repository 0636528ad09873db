"""Who leads which pipeline."""

from __future__ import annotations

from contextlib import suppress

from arbiter.errors import Conflict, Invalid
from arbiter.payloads import (
    MAX_BASE,
    epoch_payload,
    leader_lock_payload,
    leaderships_payload,
    read_epoch,
    read_history,
    read_leader_lock,
    read_leaderships,
)
from arbiter.tree import ATTEMPTS, Tree
from arbiter.values import LeaderLock, LeaderLockStatus, PipelineId
from arbiter.znodes import Changed, Exists, Missing, SessionOver, Znode


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
        return base_of(self._znodes.read(self._paths.epoch))

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


def base_of(znode: Znode | None) -> int:
    """The base that a znode holds; raises Invalid if it cannot be read."""
    return 0 if znode is None else read_epoch(znode.data)


def _base_or_none(data: bytes) -> int | None:
    """The base that is kept; None for a damaged one, which an operator may write over."""
    try:
        return read_epoch(data)
    except Invalid:
        return None


class LeaderLocks:
    """An ephemeral znode for each pipeline that a node leads.

    It is created together with the next number in the znode that counts the pipeline's leaderships,
    so no two leaderships have the same number, and none is left out.
    """

    def __init__(self, tree: Tree, epochs: Epochs) -> None:
        self._tree = tree
        self._znodes = tree.znodes
        self._paths = tree.paths
        self._epochs = epochs

    def campaign(self, pipeline: PipelineId, nid: str) -> LeaderLock:
        """Try to become the leader. Returns the leader lock as it is afterwards, mine or another's.

        It is mine exactly if its session is `session_id()`. Idempotent: a leader lock that this
        session already holds is returned as it is.
        """
        path, session = self._paths.leader_lock(pipeline), self._tree.session()
        self._paths.node(nid)  # refuses a name that could never be announced
        counter = self._paths.leaderships(pipeline)
        for _ in range(ATTEMPTS):
            epoch, counted = self._znodes.read_all([self._paths.epoch, counter])
            base = base_of(epoch)
            try:
                counted = counted or self._begin_counting(pipeline)
                number = self._count(pipeline, counted) + 1
                data = leader_lock_payload(nid, LeaderLockStatus.TAKING, session, base, number)
                count = leaderships_payload(number)
                made = self._znodes.create_and_write(
                    path, data, (counter, count, counted.version), session=session
                )
            except Exists:
                found = self.one(pipeline)
                if found is None:
                    continue
                return found
            except (Changed, Missing):
                continue  # another leadership began and ended, or the channel was removed
            # A server may answer from a state of the past until it has carried out a write of
            # this session, so the base it gave before may have been raised since.
            if self._epochs.base() == base:
                return _leader_lock(made)
            self.release(pipeline, _leader_lock(made))
        raise Conflict(f"the leader lock of {pipeline} keeps coming and going")

    def one(self, pipeline: PipelineId) -> LeaderLock | None:
        """Who leads, None if nobody does."""
        found = self._znodes.read(self._paths.leader_lock(pipeline))
        if found is None:
            return None
        return _leader_lock(found)

    def set_status(
        self, pipeline: PipelineId, own_lock: LeaderLock, status: LeaderLockStatus
    ) -> LeaderLock:
        """Say how far this leader is; Conflict if the leader lock is no longer `own_lock`."""
        path = self._paths.leader_lock(pipeline)
        for _ in range(ATTEMPTS):
            found = self._znode_of(path, own_lock)
            if found is None:
                raise Conflict(f"{own_lock.leadership} of {pipeline} is over")
            base = own_lock.epoch - found.created
            data = leader_lock_payload(
                own_lock.nid, status, own_lock.session, base, own_lock.number
            )
            try:
                if self._tree.rewrite(path, data, found, own_lock.session):
                    return read_leader_lock(data, created=found.created, owner=found.owner)
            except SessionOver:
                raise Conflict(f"{own_lock.leadership} of {pipeline} is over") from None
        raise Conflict(f"the leader lock of {pipeline} is being changed concurrently")

    def release(self, pipeline: PipelineId, own_lock: LeaderLock) -> None:
        """Release the leader lock; nothing happens if it is no longer `own_lock`."""
        path = self._paths.leader_lock(pipeline)
        for _ in range(ATTEMPTS):
            found = self._znode_of(path, own_lock)
            if found is None:
                return
            try:
                self._znodes.delete(path, found.version, session=own_lock.session)
            except (Missing, SessionOver):
                return
            except Changed:
                continue
            return
        raise Conflict(f"the leader lock of {pipeline} is being changed concurrently")

    def depose(self, pipeline: PipelineId, seen: LeaderLock) -> None:
        """Take the leadership away from whoever holds `seen`, although its session may live.

        For an operator whose leader does not answer. Safe because of the fence (I2): the
        deposed leader's transactions fail as soon as another has raised the epoch. Nothing
        happens if `seen` is over already.
        """
        path = self._paths.leader_lock(pipeline)
        for _ in range(ATTEMPTS):
            found = self._znodes.read(path)
            if found is None or _leader_lock(found).epoch != seen.epoch:
                return
            try:
                self._znodes.delete(path, found.version)
            except Missing:
                return
            except Changed:
                continue
            return
        raise Conflict(f"the leader lock of {pipeline} is being changed concurrently")

    def _begin_counting(self, pipeline: PipelineId) -> Znode:
        """Create the znode that counts; raises Exists if somebody else does, or NotFound.

        Leaderships of an earlier release have no numbers; the history knows how many there were.
        """
        path = self._paths.leaderships(pipeline)
        return self._tree.create_below(
            pipeline, path, leaderships_payload(self._count_of_history(pipeline))
        )

    def _count(self, pipeline: PipelineId, counted: Znode) -> int:
        """How many leaderships there were; one that cannot be read keeps nobody from leading."""
        count = read_leaderships(counted.data)
        return self._count_of_history(pipeline) if count is None else count

    def _count_of_history(self, pipeline: PipelineId) -> int:
        """How many leaderships the history has, or knows to have been before its oldest one."""
        found = self._tree.read_folder(self._paths.history(pipeline))
        items = [item for _, znode in found if (item := read_history(znode.data)) is not None]
        return max(len(items), *(item.number for item in items), 0)

    def _znode_of(self, path: str, own_lock: LeaderLock) -> Znode | None:
        """The leader lock's znode if it is still `own_lock`, by this very session and epoch."""
        if own_lock.session == 0 or own_lock.session != self._znodes.session_id():
            return None
        found = self._znodes.read(path)
        if found is None or (_leader_lock(found).epoch, found.owner) != (
            own_lock.epoch,
            own_lock.session,
        ):
            return None
        return found


def _leader_lock(znode: Znode) -> LeaderLock:
    # The znode's owner is what counts, also right after its creation: it is what others see.
    return read_leader_lock(znode.data, created=znode.created, owner=znode.owner)
