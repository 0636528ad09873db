"""Where the tables of a target are, and how they are reached."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow.fs as pafs

from setl.channel.fields.delta_endpoint import DeltaTarget
from setl.errors import ConfigurationError, SetlError, TransientError

if TYPE_CHECKING:
    from deltalake import DeltaTable

Name = tuple[str, str]
"""Schema and table."""

_NAME: Final = re.compile(r"[^\W_][\w$-]*")  # what no storage and no reader takes for more
_UNSAFE: Final = "AWS_S3_ALLOW_UNSAFE_RENAME"
_TRUE: Final = frozenset({"1", "true", "on", "yes", "y"})  # for delta-rs, in any case
_MISSING: Final = "a Delta target needs the package deltalake"


@dataclass(frozen=True, slots=True)
class Location:
    """The folder of all tables. Picklable and hashable: it travels with the tasks.

    Attributes:
        root: the folder, or the address of one in S3.
        options: how S3 is reached, as pairs.
    """

    root: str
    options: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, config: DeltaTarget) -> Location:
        """As a channel file says it."""
        return cls(config.path.rstrip("/"), tuple(sorted(config.storage_options.items())))

    def __str__(self) -> str:
        return self.root

    @property
    def local(self) -> bool:
        """Whether it is a folder of this machine."""
        return not self.root.startswith("s3://")

    def of_table(self, name: Name) -> Folder:
        """The folder of a table.

        Raises:
            ConfigurationError: the name is none that a folder should have.
        """
        for one in name:
            if not _NAME.fullmatch(one):
                raise ConfigurationError(
                    f"{'.'.join(name)} cannot be the name of a Delta table: {one!r} is no name of"
                    " letters, digits, _, - and $ that begins with a letter or a digit",
                    hint="Give the table another name with `to`",
                )
        return Folder(self, f"{name[0]}/{name[1]}")

    def of_pipeline(self, pipeline: str) -> Folder:
        """The folder of what setl itself notes about a pipeline, ``channel/pipeline``."""
        return Folder(self, f"_setl/{pipeline}")


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of one table.

    Attributes:
        location: where it is.
        path: its path there.
    """

    location: Location
    path: str

    @property
    def uri(self) -> str:
        """Its full path, or address."""
        return f"{self.location.root}/{self.path}"

    def open(self) -> DeltaTable | None:
        """The table as it is now; None if there is none.

        Raises:
            ConfigurationError: deltalake is missing, or the table is none that it can read.
            TransientError: the storage does not answer.
        """
        module = deltalake()
        self.refuse_unsafe()
        with translating(self):
            try:
                return module.DeltaTable(self.uri, storage_options=self.options)
            except module.exceptions.TableNotFoundError:
                return None

    def files(self) -> Any:
        """Its files, by their paths in the log."""
        if self.location.local:
            return pafs.SubTreeFileSystem(self.uri, pafs.LocalFileSystem())
        from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415 - needs the package

        return pafs.PyFileSystem(DeltaStorageHandler(self.uri, self.options))

    @property
    def options(self) -> dict[str, str] | None:
        """As delta-rs takes them. A commit must find no other of its version there (I2)."""
        if self.location.local:
            return None
        return {**dict(self.location.options), "aws_conditional_put": "etag"}

    def make(self) -> None:
        """Make it, where folders have to be made."""
        if self.location.local:
            try:
                Path(self.uri).mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise ConfigurationError(
                    f"{self.uri} cannot be made: {error.strerror}",
                    hint="Let the account of the nodes and executors write there",
                ) from error

    def refuse_unsafe(self) -> None:
        """Refuse to write to S3 where the environment takes the condition off commits."""
        if not self.location.local and os.environ.get(_UNSAFE, "").lower() in _TRUE:
            raise ConfigurationError(
                f"{_UNSAFE} is set: two leaders could write one version of a table",
                hint="Take it out of the environment of the nodes and executors",
            )

    def persist(self, version: int) -> None:
        """Have the log's entry on the disk, not only in the memory of its machine."""
        if not self.location.local:
            return
        log = Path(self.uri) / "_delta_log"
        for path in (log / f"{version:020d}.json", log):
            try:
                sync(path)
            except OSError as error:
                raise TransientError(f"{path}: {error.strerror}") from error


def sync(path: Path) -> None:
    """Have a file or folder on the disk. Raises OSError."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def deltalake() -> Any:
    """The package; ConfigurationError if it is not installed."""
    try:
        package = import_module("deltalake")
        import_module("deltalake.exceptions")
    except ImportError as error:
        raise ConfigurationError(
            _MISSING, hint="pip install 'setl[delta]' on the nodes and Spark's executors"
        ) from error
    return package


@contextmanager
def translating(folder: Folder) -> Generator[None]:
    """Translate the errors of delta-rs, pyarrow's files and the system."""
    exceptions = deltalake().exceptions
    try:
        yield
    except SetlError as error:
        raise error.at(server=folder.uri) from error.__cause__
    except exceptions.DeltaProtocolError as error:
        raise ConfigurationError(
            f"the Delta table is none that delta-rs can work with: {_first_line(error)}",
            hint="Give the rows another table with `to`",
            server=folder.uri,
        ) from error
    except PermissionError as error:
        raise ConfigurationError(
            f"not allowed: {_first_line(error)}",
            hint="Let the account of the nodes and executors read and write there",
            server=folder.uri,
        ) from error
    except (exceptions.DeltaError, OSError) as error:
        # What it is like when a storage is out of reach, or busy, only its text says.
        raise TransientError(_first_line(error), server=folder.uri) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip() or repr(error)).splitlines()[0][:500]
