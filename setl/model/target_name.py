"""What people and stored records call a target."""

from __future__ import annotations

from collections.abc import Iterable


def target_name(target: Iterable[str]) -> str:
    """``schema.table``, or the index, whose schema is ""."""
    return ".".join(filter(None, target))
