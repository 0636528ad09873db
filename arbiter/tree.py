"""Creates znodes with the parents that are missing, and reads and changes them."""

from __future__ import annotations

from collections.abc import Iterable

from arbiter.errors import NotFound, Unreachable
from arbiter.paths import Paths, ancestors
from arbiter.values import PipelineId
from arbiter.znodes import Changed, Exists, Missing, Znode, Znodes

ATTEMPTS = 5
"""How often a call looks again when others write at the same time."""


class Tree:
    """The znodes under one root, with the rules for what may be created.

    Attributes:
        znodes: the znodes themselves.
        paths: where they lie.
    """

    def __init__(self, znodes: Znodes, paths: Paths) -> None:
        self.znodes = znodes
        self.paths = paths

    def session(self) -> int:
        """Id of the session; raises Unreachable while there is none."""
        session = self.znodes.session_id()
        if session == 0:
            raise Unreachable("there is no session now")
        return session

    def create(self, path: str, data: bytes, *, ephemeral: bool = False, session: int = 0) -> Znode:
        """Create a znode, and what is missing above it."""
        try:
            return self.znodes.create(path, data, ephemeral=ephemeral, session=session)
        except Missing:
            for above in ancestors(path):
                self._make(above)
            return self.znodes.create(path, data, ephemeral=ephemeral, session=session)

    def create_below(self, pipeline: PipelineId, path: str, data: bytes) -> Znode:
        """Create a znode of a pipeline, and the pipeline's folder, but never its channel.

        Raises:
            NotFound: there is no such channel.
        """
        try:
            return self.znodes.create(path, data)
        except Missing:
            self._make_folders(pipeline, self.paths.pipeline(pipeline))
            return self.znodes.create(path, data)

    def rewrite(self, path: str, data: bytes, found: Znode, session: int) -> bool:
        """Write over `found`, in `session`; False if it has changed and must be read again."""
        try:
            self.znodes.write(path, data, found.version, session=session)
        except (Changed, Missing):
            return False
        return True

    def append(self, pipeline: PipelineId, folder: str, prefix: str, data: bytes) -> str:
        """Create the next znode of a pipeline's folder; returns its name.

        Raises:
            NotFound: there is no such channel.
        """
        try:
            return self.znodes.append(f"{folder}/{prefix}", data)
        except Missing:
            self._make_folders(pipeline, folder)
            return self.znodes.append(f"{folder}/{prefix}", data)

    def append_below_root(self, folder: str, prefix: str, data: bytes) -> str:
        """Create the next znode of a folder that belongs to no pipeline; returns its name."""
        try:
            return self.znodes.append(f"{folder}/{prefix}", data)
        except Missing:
            for path in (*ancestors(folder), folder):
                self._make(path)
            return self.znodes.append(f"{folder}/{prefix}", data)

    def trim(self, folder: str, names: Iterable[str]) -> None:
        """Remove znodes of a folder; whoever else changes or removes them is not in the way."""
        for name in names:
            found = self.znodes.read(f"{folder}/{name}")
            if found is None:
                continue
            try:
                self.znodes.delete(f"{folder}/{name}", found.version)
            except (Missing, Changed):
                continue

    def read_folder(self, folder: str) -> list[tuple[str, Znode]]:
        """The znodes of a folder with their names, oldest first."""
        names = self.znodes.children(folder)
        found = self.znodes.read_all([f"{folder}/{name}" for name in names])
        return [(n, z) for n, z in zip(names, found, strict=True) if z is not None]

    def read_below(self, path: str) -> list[tuple[str, Znode]]:
        """All znodes below a path with their whole paths, the deepest first."""
        found: list[tuple[str, Znode]] = []
        for name, znode in self.read_folder(path):
            found += [*self.read_below(f"{path}/{name}"), (f"{path}/{name}", znode)]
        return found

    def _make_folders(self, pipeline: PipelineId, folder: str) -> None:
        try:
            for path in dict.fromkeys((self.paths.pipeline(pipeline), folder)):
                self._make(path)
        except Missing:
            # A channel made here would have no definition, and look like a damaged one.
            raise NotFound(f"there is no channel {pipeline.channel!r}") from None

    def _make(self, path: str) -> None:
        try:
            self.znodes.create(path, b"")
        except Exists:
            return
