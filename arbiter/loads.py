"""The requests to load tables of a pipeline."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from arbiter.errors import Conflict
from arbiter.payloads import load_payload, read_load
from arbiter.tree import Tree
from arbiter.values import PipelineId, StoredLoad
from arbiter.znodes import Changed, Missing

_log = logging.getLogger(__name__)


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
