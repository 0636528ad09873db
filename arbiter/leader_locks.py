"""Who leads which pipeline."""

from __future__ import annotations

from arbiter.epochs import Epochs
from arbiter.errors import Conflict
from arbiter.payloads import leader_lock_payload, read_leader_lock
from arbiter.tree import ATTEMPTS, Tree
from arbiter.values import LeaderLock, LeaderLockStatus, PipelineId
from arbiter.znodes import Changed, Exists, Missing, SessionOver, Znode


class LeaderLocks:
    """An ephemeral znode for each pipeline that a node leads."""

    def __init__(self, tree: Tree, epochs: Epochs) -> None:
        self._tree = tree
        self._znodes = tree.znodes
        self._paths = tree.paths
        self._epochs = epochs

    def campaign(self, pipeline: PipelineId, nid: str) -> LeaderLock:
        """Try to become active. Returns the mainstem as it is afterwards, mine or another's.

        It is mine exactly if its session is `session_id()`. Idempotent: a mainstem that this
        session already holds is returned as it is.
        """
        path, session = self._paths.leader_lock(pipeline), self._tree.session()
        self._paths.node(nid)  # refuses a name that could never be announced
        for _ in range(ATTEMPTS):
            base = self._epochs.base()
            data = leader_lock_payload(nid, LeaderLockStatus.TAKING, session, base)
            try:
                made = self._tree.create_below(
                    pipeline, path, data, ephemeral=True, session=session
                )
            except Exists:
                found = self.one(pipeline)
                if found is None:
                    continue
                return found
            # A server may answer from a state of the past until it has carried out a write of
            # this session, so the base it gave before may have been raised since.
            if self._epochs.base() == base:
                return _leader_lock(made)
            self.resign(pipeline, _leader_lock(made))
        raise Conflict(f"the mainstem of {pipeline} keeps coming and going")

    def one(self, pipeline: PipelineId) -> LeaderLock | None:
        """Who is active, None if nobody is."""
        found = self._znodes.read(self._paths.leader_lock(pipeline))
        if found is None:
            return None
        return _leader_lock(found)

    def set_status(
        self, pipeline: PipelineId, held: LeaderLock, status: LeaderLockStatus
    ) -> LeaderLock:
        """Say how far this leader is; Conflict if the mainstem is no longer `held`."""
        path = self._paths.leader_lock(pipeline)
        for _ in range(ATTEMPTS):
            found = self._held(path, held)
            if found is None:
                raise Conflict(f"epoch {held.epoch} of {pipeline} is over")
            base = held.epoch - found.created
            data = leader_lock_payload(held.nid, status, held.session, base)
            try:
                if self._tree.rewrite(path, data, found, held.session):
                    return read_leader_lock(data, created=found.created, owner=found.owner)
            except SessionOver:
                raise Conflict(f"epoch {held.epoch} of {pipeline} is over") from None
        raise Conflict(f"the mainstem of {pipeline} is being changed concurrently")

    def resign(self, pipeline: PipelineId, held: LeaderLock) -> None:
        """Give the mainstem up; nothing happens if it is no longer `held`."""
        path = self._paths.leader_lock(pipeline)
        for _ in range(ATTEMPTS):
            found = self._held(path, held)
            if found is None:
                return
            try:
                self._znodes.delete(path, found.version, session=held.session)
            except (Missing, SessionOver):
                return
            except Changed:
                continue
            return
        raise Conflict(f"the mainstem of {pipeline} is being changed concurrently")

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
        raise Conflict(f"the mainstem of {pipeline} is being changed concurrently")

    def _held(self, path: str, held: LeaderLock) -> Znode | None:
        """The mainstem's znode if it is still `held`, by this very session and epoch."""
        if held.session == 0 or held.session != self._znodes.session_id():
            return None
        found = self._znodes.read(path)
        if found is None or (_leader_lock(found).epoch, found.owner) != (held.epoch, held.session):
            return None
        return found


def _leader_lock(znode: Znode) -> LeaderLock:
    # The znode's owner is what counts, also right after its creation: it is what others see.
    return read_leader_lock(znode.data, created=znode.created, owner=znode.owner)
