"""What is stored of a pipeline: its position, its cut-over, and how far verification is."""

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


class _Values:
    """A znode for each pipeline that has such a value."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._znodes = tree.znodes
        self._paths = tree.paths

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


class Positions(_Values):
    """The positions of pipelines."""

    def read(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """The position kept here and its revision, None if none is.

        Raises Invalid if it cannot be read.
        """
        found = self._znodes.read(self._paths.position(pipeline))
        return None if found is None else (read_position(str(pipeline), found.data), found.version)

    def stored_at(self, pipeline: PipelineId) -> float | None:
        """When the position kept here was stored, seconds since 1970 by the arbiter's clock."""
        found = self._znodes.read(self._paths.position(pipeline))
        return None if found is None else found.changed

    def store(self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None) -> int:
        """Keep a position if its revision is still `revision` (None: there is none yet).

        Returns the new revision. Raises Conflict.
        """
        path, data = self._paths.position(pipeline), position_payload(str(pipeline), value)
        conflict = f"the position of {pipeline} was changed meanwhile"
        return self._store(pipeline, path, data, revision, conflict)

    def replace(self, pipeline: PipelineId, value: Mapping[str, Any]) -> None:
        """Keep a position over whatever is kept there, also what cannot be read; may conflict."""
        found = self._znodes.read(self._paths.position(pipeline))
        self.store(pipeline, value, found.version if found else None)


class Cutovers(_Values):
    """The cut-overs that are under way."""

    def read(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """The cut-over kept here and its revision, None if there is none.

        Raises:
            Invalid: it cannot be read.
        """
        found = self._znodes.read(self._paths.cutover(pipeline))
        return None if found is None else (read_cutover(str(pipeline), found.data), found.version)

    def all(self, pipelines: Sequence[PipelineId]) -> dict[PipelineId, dict[str, Any]]:
        """The cut-overs of those that have one, asked for all at once; raises as `read`."""
        found = self._znodes.read_all([self._paths.cutover(pipeline) for pipeline in pipelines])
        return {
            pipeline: read_cutover(str(pipeline), znode.data)
            for pipeline, znode in zip(pipelines, found, strict=True)
            if znode is not None
        }

    def store(self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None) -> int:
        """Keep a cut-over if its revision is still `revision` (None: there is none yet).

        Returns the new revision. Order: it is kept before whatever it announces is done, so
        that a crash in between leaves behind what has to be put back. Raises Conflict.
        """
        path, data = self._paths.cutover(pipeline), cutover_payload(str(pipeline), value)
        return self._store(pipeline, path, data, revision, _carried_on(pipeline))

    def forget(self, pipeline: PipelineId, revision: int) -> None:
        """Remove a cut-over of this revision; Conflict if somebody has changed it meanwhile."""
        try:
            self._znodes.delete(self._paths.cutover(pipeline), revision)
        except (Changed, Missing):
            raise Conflict(_carried_on(pipeline)) from None


class Verifications(_Values):
    """How far the standing verification of pipelines is."""

    def read(self, pipeline: PipelineId) -> tuple[dict[str, Any], int] | None:
        """How far standing verification is, and its revision; None if nothing is kept.

        What cannot be read is empty: verification can restart.
        """
        found = self._znodes.read(self._paths.verification(pipeline))
        return None if found is None else (read_verification(found.data), found.version)

    def store(self, pipeline: PipelineId, value: Mapping[str, Any], revision: int | None) -> int:
        """Keep it if its revision is still `revision` (None: there is none yet).

        Returns the new revision. Order and crash: what was compared after it was last kept is
        compared again. Raises Conflict: somebody else has written, who leads now.
        """
        path, data = self._paths.verification(pipeline), verification_payload(str(pipeline), value)
        return self._store(pipeline, path, data, revision, f"another process verifies {pipeline}")


def _carried_on(pipeline: PipelineId) -> str:
    return f"another process carries on the cut-over of {pipeline}"
