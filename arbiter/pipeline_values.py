"""One value of each kind a pipeline, as `arbiter.arbiter.Arbiter` describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from arbiter.errors import Conflict
from arbiter.payloads import (
    cutover_payload,
    position_payload,
    read_cutover,
    read_position,
    read_verification,
    verification_payload,
)
from arbiter.tree import Tree
from arbiter.values import PipelineId
from arbiter.znodes import Changed, Exists, Missing


class PipelineValues:
    """Positions, cut-overs and the places of standing verification, each in a znode of its own."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._znodes = tree.znodes
        self._paths = tree.paths

    def position(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """See `arbiter.arbiter.Arbiter.stored_position`; raises Invalid if it cannot be read."""
        found = self._znodes.read(self._paths.position(pipeline))
        return None if found is None else (read_position(str(pipeline), found.data), found.version)

    def position_stored_at(self, pipeline: PipelineId) -> float | None:
        """See `arbiter.arbiter.Arbiter.position_stored_at`."""
        found = self._znodes.read(self._paths.position(pipeline))
        return None if found is None else found.changed

    def store_position(
        self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None
    ) -> int:
        """See `arbiter.arbiter.Arbiter.store_position`."""
        path, data = self._paths.position(pipeline), position_payload(str(pipeline), value)
        conflict = f"the position of {pipeline} was changed meanwhile"
        return self._store(pipeline, path, data, revision, conflict)

    def replace_position(self, pipeline: PipelineId, value: Mapping[str, Any]) -> None:
        """See `arbiter.arbiter.Arbiter.replace_position`."""
        found = self._znodes.read(self._paths.position(pipeline))
        self.store_position(pipeline, value, found.version if found else None)

    def cutover(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """See `arbiter.arbiter.Arbiter.cutover`."""
        found = self._znodes.read(self._paths.cutover(pipeline))
        return None if found is None else (read_cutover(str(pipeline), found.data), found.version)

    def cutovers(self, pipelines: Sequence[PipelineId]) -> dict[PipelineId, dict[str, Any]]:
        """See `arbiter.arbiter.Arbiter.cutovers`."""
        found = self._znodes.read_all([self._paths.cutover(pipeline) for pipeline in pipelines])
        return {
            pipeline: read_cutover(str(pipeline), znode.data)
            for pipeline, znode in zip(pipelines, found, strict=True)
            if znode is not None
        }

    def store_cutover(
        self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None
    ) -> int:
        """See `arbiter.arbiter.Arbiter.store_cutover`."""
        path, data = self._paths.cutover(pipeline), cutover_payload(str(pipeline), value)
        return self._store(pipeline, path, data, revision, _carried_on(pipeline))

    def forget_cutover(self, pipeline: PipelineId, revision: int) -> None:
        """See `arbiter.arbiter.Arbiter.forget_cutover`."""
        try:
            self._znodes.delete(self._paths.cutover(pipeline), revision)
        except (Changed, Missing):
            raise Conflict(_carried_on(pipeline)) from None

    def verification(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """See `arbiter.arbiter.Arbiter.verification`."""
        found = self._znodes.read(self._paths.verification(pipeline))
        return None if found is None else (read_verification(found.data), found.version)

    def store_verification(
        self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None
    ) -> int:
        """See `arbiter.arbiter.Arbiter.store_verification`."""
        path, data = self._paths.verification(pipeline), verification_payload(str(pipeline), value)
        return self._store(pipeline, path, data, revision, f"somebody else verifies {pipeline}")

    def _store(
        self, pipeline: PipelineId, path: str, data: bytes, revision: int | None, conflict: str
    ) -> int:
        """Create a value or replace the one of `revision`; returns the new revision.

        Raises:
            Conflict: somebody else was faster; says `conflict`.
        """
        try:
            if revision is None:
                return self._tree.create_below(pipeline, path, data).version
            return self._znodes.write(path, data, revision)
        except (Exists, Changed, Missing):
            raise Conflict(conflict) from None


def _carried_on(pipeline: PipelineId) -> str:
    return f"somebody else carries on the cut-over of {pipeline}"
