"""What tells a table mapping from the one that stood in its place before."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Final

from setl.channel.table_mapping import TableMapping

# What decides to which row of a target a change goes, and what stands in it.
_DECIDES: Final = {
    "to", "columns", "include", "exclude", "where", "key", "nested", "processor", "id", "routing",
    "zero_dates", "geometry",
}  # fmt: skip


def mapped_by(mapping: TableMapping) -> str:
    """A digest of an entry; another one if rows may go to other places, or become other rows.

    The same in each release that knows the entry's fields: those that are left out, and new ones
    with it, do not count.
    """
    decides = mapping.model_dump(mode="json", include=_DECIDES, exclude_defaults=True)
    return sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()[:16]
