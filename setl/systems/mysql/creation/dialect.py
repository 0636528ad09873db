"""What a server knows of types, character sets, collations and engines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from setl.systems.mysql.connection import MysqlEndpoint
from setl.systems.mysql.server import Server

_VECTORS_SINCE: Final = {True: (11, 7), False: (9, 0)}  # of MariaDB, of MySQL

# The language in the name of a collation: MySQL's word -> MariaDB's.
_LANGUAGES: Final = {
    "cs": "czech", "da": "danish", "de_pb": "german2", "eo": "esperanto", "es": "spanish",
    "es_trad": "spanish2", "et": "estonian", "hr": "croatian", "hu": "hungarian",
    "is": "icelandic", "la": "roman", "lt": "lithuanian", "lv": "latvian", "pl": "polish",
    "ro": "romanian", "sk": "slovak", "sl": "slovenian", "sv": "swedish", "tr": "turkish",
    "vi": "vietnamese",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Dialect:
    """A server, as far as the text of a CREATE TABLE depends on it.

    Attributes:
        mariadb: whether it is MariaDB.
        product: its name and version, for people.
        version: its version as numbers.
        collations: its collations, each with its character set.
        engines: its storage engines that have transactions, in upper case.
    """

    mariadb: bool
    product: str
    version: tuple[int, ...]
    collations: Mapping[str, str]
    engines: frozenset[str] = frozenset({"INNODB"})

    @classmethod
    def read(cls, server: Server) -> Dialect:
        """Ask a server. Raises SetlError."""
        collations: dict[str, str] = {}
        for row in server.records(
            "SELECT * FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
        ):
            # MariaDB from 10.10 on leaves the character set out of COLLATION_NAME.
            name = row.get("full_collation_name") or row["collation_name"]
            collations[str(name)] = str(row["character_set_name"])
        engines = server.rows(
            "SELECT ENGINE FROM information_schema.ENGINES WHERE TRANSACTIONS = 'YES'"
        )
        return cls(
            server.mariadb,
            server.product,
            server.version,
            collations,
            frozenset(str(name).upper() for (name,) in engines),
        )

    @property
    def has_vectors(self) -> bool:
        """Whether it has the type VECTOR."""
        return self.version >= _VECTORS_SINCE[self.mariadb]

    def has_charset(self, charset: str) -> bool:
        """Whether it has a character set."""
        return charset in self.collations.values()

    def nearest(self, collation: str, *, keyed: bool, foreign: bool = False) -> str:
        """The collation that comes nearest to one of another server; itself if it is there.

        Args:
            collation: the other server's.
            keyed: whether a unique key compares by it. Then no two texts may be equal that are
                not to the other one (I21).
            foreign: whether the other server is of the other family, to which ``utf8mb4_0900_…``
                are other collations, see `setl.codec.binlog.tables.collation.common_number`.

        Returns:
            Its name; it may be of another character set, if this server lacks that.
        """
        # A MariaDB's are MySQL's in other words, where a table of it took the nearest one.
        unicode = "_0900_" in collation or "_uca1400_" in collation
        by_unicode = unicode and not collation.endswith("_bin")
        if collation in self.collations and not (keyed and foreign and by_unicode):
            return collation
        charset = collation.partition("_")[0]
        if not self.has_charset(charset):
            charset = "utf8mb4"
        choices = [] if keyed else _alike(collation, charset)
        choices += self._by_bytes(charset, pads=_pads(collation))
        return next(choice for choice in choices if choice in self.collations)

    def note_on(self, what: str, wanted: str, nearest: str, *, keyed: bool) -> str:
        """A sentence for people: why something has the nearest collation, see `nearest`."""
        why = ", so that no two rows of the source are one to it" if keyed else ""
        has = "another" if wanted in self.collations else "no"
        return f"{what} has the collation {nearest}, since {self.product} has {has} {wanted}{why}"

    def _by_bytes(self, charset: str, *, pads: bool) -> list[str]:
        """Collations that compare bytes, and do not ignore spaces at the end unless `pads`."""
        wide = ["utf8mb4_nopad_bin", "utf8mb4_0900_bin"]
        if pads:
            return [f"{charset}_bin", "utf8mb4_bin"]
        return [f"{charset}_nopad_bin", *wide]


class DialectOf:
    """A server's dialect, asked for once."""

    def __init__(self, endpoint: MysqlEndpoint) -> None:
        """Connect to nothing yet."""
        self._endpoint = endpoint
        self._known: Dialect | None = None

    def __call__(self) -> Dialect:
        """What it is. Raises SetlError."""
        if self._known is None:
            with Server.opened(self._endpoint) as server:
                self._known = Dialect.read(server)
        return self._known


def _pads(collation: str) -> bool:
    return "nopad" not in collation and "_0900_" not in collation


def _alike(collation: str, charset: str) -> list[str]:
    """Names that other servers have for what a collation does, the nearest first."""
    words = collation.split("_")[1:]
    form = "_".join(words[-2:]) if words[-1] in ("ci", "cs") else words[-1]
    form = {"ci": "ai_ci", "cs": "as_cs"}.get(form, form)
    if form not in ("ai_ci", "as_ci", "as_cs", "ai_cs"):
        form = "bin" if form == "bin" else "ai_ci"
    if form == "bin":
        return []
    language = _language(words)
    here, theirs = (f"_{language[0]}", f"_{language[1]}") if language else ("", "")
    newer = "as_cs" if form == "ai_cs" else form
    return [
        f"{charset}_uca1400{theirs}_nopad_{form}",
        f"{charset}_uca1400_nopad_{form}",
        f"{charset}{here}_0900_{newer}",
        f"{charset}_0900_{newer}",
        f"{charset}_unicode_520_nopad_ci",
        f"{charset}_unicode_520_ci",
        f"{charset}_unicode_ci",
        f"{charset}_general_ci",
    ]


def _language(words: list[str]) -> tuple[str, str] | None:
    text = "_" + "_".join(words) + "_"
    for mysql, mariadb in _LANGUAGES.items():
        if f"_{mysql}_0900_" in text or f"_{mariadb}_" in text:
            return mysql, mariadb
    return None
