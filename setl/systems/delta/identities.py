"""Tells a table from another one in its folder.

A table that somebody deletes and makes again, or that another job writes with ``mode="overwrite"``
as a new one, takes rows as the former one did, and lacks all that were there before. Each has an id
in its log. One that is restored to an earlier version keeps it, and so does a copy.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from setl.load.identities import Identity
from setl.systems.delta.location import Location, translating

_AT_ONCE: Final = 16  # tables that are opened at the same time; in S3 each takes some requests


def table_identities(location: Location, names: Collection[str]) -> Mapping[str, Identity]:
    """See `setl.load.identities.IdentifiedTarget.identities`."""

    def look(name: str) -> Identity | None:
        schema, _, table = name.partition(".")
        folder = location.of_table((schema, table))
        opened = folder.open()
        if opened is None:
            return None
        with translating(folder):
            return Identity(str(opened.metadata().id), name)

    with ThreadPoolExecutor(_AT_ONCE, "identities") as pool:
        found = zip(names, pool.map(look, names), strict=True)
        return {name: identity for name, identity in found if identity is not None}
