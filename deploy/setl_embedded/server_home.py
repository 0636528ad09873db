"""Folders with the programs of database servers, and how they start.

Debian 12 has no MySQL server, and one release of MariaDB. `setl_embedded.unpacking` takes others
from other releases of Debian and unpacks each, with the system libraries that it needs, into a
folder of its own. Nothing of it is installed on the system; programs start with the dynamic loader
of that folder. Folders are kept between runs, in ``setl`` in ``$XDG_CACHE_HOME`` or ``~/.cache``;
``$SETL_MYSQL_HOME`` names another for MySQL.

``$SETL_MARIADB_HOME`` names the folder that MariaDB runs from, or one of `RELEASES`, such as
``mariadb-11.8``; without it, MariaDB is that of the system.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from setl_embedded.errors import EmbeddedError


@dataclass(frozen=True, slots=True)
class Release:
    """A server as a release of Debian has it.

    Attributes:
        suite: Debian's release.
        packages: the server's own.
        program: runs the server.
        security: whether that release has security updates, in an archive of their own.
        wrapped: folder and name of the programs that scripts of the packages start by their path.
    """

    suite: str
    packages: tuple[str, ...]
    program: str
    security: bool = False
    wrapped: tuple[tuple[str, str], ...] = ()


def _mariadb(suite: str, packages: tuple[str, ...]) -> Release:
    # 10.5 still calls it mysqld.
    started = (
        ("sbin", "mysqld"),
        ("sbin", "mariadbd"),
        ("bin", "my_print_defaults"),
        ("bin", "resolveip"),
    )
    return Release(suite, packages, "mariadbd", security=True, wrapped=started)


RELEASES = {
    "mysql": Release("sid", ("mysql-server-core", "mysql-client-core"), "mysqld"),
    "mariadb-10.5": _mariadb("bullseye", ("mariadb-server-core-10.5", "mariadb-client-core-10.5")),
    "mariadb-11.8": _mariadb("trixie", ("mariadb-server-core", "mariadb-client-core")),
}
"""Name → what is unpacked under it."""


class ServerHome:
    """A folder with the unpacked packages.

    Attributes:
        folder: where it is.
        root: the packages' own folders, as if ``/`` were here.
        base: the server's ``basedir`` in it.
        wrapped: another one, whose programs are scripts that start those of `base`; for scripts of
            the packages, which start programs by their path.
        stamp: the file that lists the packages; written last, so half a folder has none.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"
        self.base = self.root / "usr"
        self.wrapped = folder / "wrapped"
        self.stamp = folder / "packages"

    @classmethod
    def of_this_machine(cls, name: str) -> Self:
        """The folder of one of `RELEASES`, which this user's runs share; it may not be filled."""
        given = os.environ.get("SETL_MYSQL_HOME") if name == "mysql" else None
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        return cls(Path(given) if given else Path(cache, "setl", name))

    @classmethod
    def for_mariadb(cls) -> Self | None:
        """The folder that MariaDB is to run from; None for the system's."""
        given = os.environ.get("SETL_MARIADB_HOME", "")
        if not given:
            return None
        return cls.of_this_machine(given) if given in RELEASES else cls(Path(given))

    @property
    def filled(self) -> bool:
        """Whether everything was unpacked."""
        return self.stamp.exists()

    @property
    def loader(self) -> list[str]:
        """The command that runs any program of the folder, whose path follows.

        Raises:
            EmbeddedError: there is none.
        """
        for loader in sorted(self.base.glob("lib/*-linux-gnu*/ld-linux-*.so.*")):
            return [str(loader), "--library-path", str(loader.parent)]
        # Where libraries lay before Debian merged /lib into /usr/lib.
        for loader in sorted(self.root.glob("lib/*-linux-gnu*/ld-linux-*.so.*")):
            libraries = f"{loader.parent}:{self.base / 'lib' / loader.parent.name}"
            return [str(loader), "--library-path", libraries]
        raise EmbeddedError(f"{self.folder} has no dynamic loader; {self._advice}")

    def program(self, name: str) -> list[str]:
        """The command that runs a program of the folder, such as ``mysqld``; arguments follow.

        Raises:
            EmbeddedError: the folder has no such program.
        """
        for folder in ("sbin", "bin"):
            path = self.base / folder / name
            if path.exists():
                return [*self.loader, str(path)]
        raise EmbeddedError(f"{self.folder} has no {name}; {self._advice}")

    def mariadb_installation(self) -> list[str]:
        """The command that makes a data folder of MariaDB; arguments follow.

        Raises:
            EmbeddedError: the folder has no MariaDB.
        """
        script = self.base / "bin" / "mariadb-install-db"
        if not script.exists() or not self.wrapped.exists():
            raise EmbeddedError(f"{self.folder} has no {script.name}; {self._advice}")
        return [str(script), "--no-defaults", f"--basedir={self.wrapped}"]

    @property
    def _advice(self) -> str:
        name = self.folder.name if self.folder.name in RELEASES else "mysql"
        return f"fill it with: deploy/install {name}"
