"""What is stored of a pipeline: position, cut-over, verification, requests to load tables."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from arbiter.errors import Conflict
from arbiter.payloads import (
    cutover_payload,
    load_payload,
    position_payload,
    read_cutover,
    read_load,
    read_position,
    read_verification,
    verification_payload,
)
from arbiter.tree import Tree
from arbiter.values import PipelineId, StoredLoad
from arbiter.znodes import Changed, Exists, Missing

_log = logging.getLogger(__name__)


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


class Loads:
    """Requests to load tables, each in a znode of its own."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def add(self, pipeline: PipelineId, value: Mapping[str, Any]) -> StoredLoad:
        """Keep a request to load tables, behind those that are there. Not idempotent.

        Nobody is told; a signal tells the leader.

        Raises:
            NotFound: there is no such channel.
            Invalid: it is too large.
        """
        folder = self._tree.paths.loads(pipeline)
        ident = self._tree.append(pipeline, folder, "load-", load_payload(value))
        return StoredLoad(ident, dict(value))

    def all(self, pipeline: PipelineId) -> Sequence[StoredLoad]:
        """The requests to load tables, oldest first; those that cannot be read are left out."""
        folder = self._tree.paths.loads(pipeline)
        found: list[StoredLoad] = []
        for name, znode in self._tree.read_folder(folder):
            wrong: list[str] = []
            value = read_load(znode.data, wrong)
            if value is None:
                extra = {"setl": {"znode": f"{folder}/{name}", "error": "; ".join(wrong)}}
                _log.warning("request to load tables cannot be read", extra=extra)
                continue
            found.append(StoredLoad(name, value, znode.version))
        return found

    def change(
        self, pipeline: PipelineId, load: StoredLoad, value: Mapping[str, Any]
    ) -> StoredLoad:
        """Replace a request; Conflict if somebody else changed or removed it meanwhile."""
        path = f"{self._tree.paths.loads(pipeline)}/{load.id}"
        try:
            revision = self._tree.znodes.write(path, load_payload(value), load.revision)
        except (Changed, Missing):
            raise Conflict(f"the request {load.id} of {pipeline} was changed meanwhile") from None
        return replace(load, value=dict(value), revision=revision)

    def remove(self, pipeline: PipelineId, load: StoredLoad) -> None:
        """Remove a request; nothing happens if it was changed or removed meanwhile."""
        path = f"{self._tree.paths.loads(pipeline)}/{load.id}"
        with suppress(Changed, Missing):
            self._tree.znodes.delete(path, load.revision)
