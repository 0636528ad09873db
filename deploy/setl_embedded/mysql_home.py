"""The folder with MySQL's programs, and how they start.

Debian 12 has no MySQL server. `setl_embedded.mysql_unpacking` takes one from Debian's unstable
release and unpacks it, with the newer system libraries that it needs, into a folder of its own.
Nothing of it is installed on the system; programs start with the dynamic loader of that folder.
It is kept between runs: ``$SETL_MYSQL_HOME``, else ``setl/mysql`` in ``$XDG_CACHE_HOME`` or
``~/.cache``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Self

from setl_embedded.errors import EmbeddedError

_ADVICE = "fill it with: python -m setl_embedded.mysql_unpacking"


class MysqlHome:
    """A folder with the unpacked packages.

    Attributes:
        folder: where it is.
        root: the packages' own folders, as if ``/`` were here.
        base: MySQL's ``basedir`` in it.
        stamp: the file that lists the packages; written last, so half a folder has none.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.base = self.root / "usr"
        self.stamp = folder / "packages"

    @classmethod
    def of_this_machine(cls) -> Self:
        """The folder that this user's runs share; it may not be filled yet."""
        given = os.environ.get("SETL_MYSQL_HOME")
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return cls(Path(given) if given else Path(cache, "setl", "mysql"))

    @property
    def filled(self) -> bool:
        """Whether everything was unpacked."""
        return self.stamp.exists()

    def program(self, name: str) -> list[str]:
        """The command that runs a program of the folder, such as ``mysqld``; arguments follow.

        Raises:
            EmbeddedError: the folder has no such program.
        """
        for place in ("sbin", "bin"):
            path = self.base / place / name
            loaders = sorted(self.base.glob("lib/*-linux-gnu*/ld-linux-*.so.*"))
            if path.exists() and loaders:
                return [str(loaders[0]), "--library-path", str(loaders[0].parent), str(path)]
        raise EmbeddedError(f"{self.folder} has no {name}; {_ADVICE}")
