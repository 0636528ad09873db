"""How much of a disk must be free, by the settings of a cluster.

Elasticsearch reports it of each disk in bytes, OpenSearch in its settings alone: as a share of the
disk that may be used, or as bytes that must be free.

Source: https://docs.opensearch.org/latest/install-and-configure/configuring-opensearch/cluster-settings/
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from setl.systems.expiry import ServerDisk
from setl.systems.search_index.answers import part

DISK: Final = ("cluster", "routing", "allocation", "disk")
_LEVELS: Final = ("transient", "persistent", "defaults")  # what counts more comes first
_BYTES: Final = {
    unit: 1024**power for power, unit in enumerate(("b", "kb", "mb", "gb", "tb", "pb"))
}
_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)([kmgtp]?b)")


def with_watermarks(disk: ServerDisk, settings: Mapping[str, Any]) -> ServerDisk:
    """A disk with what must be free of it; what is not known stays so.

    Args:
        disk: the disk.
        settings: the cluster's, as they are in effect, with defaults.
    """
    if disk.needed is not None:
        return disk
    found = [_disk_settings(settings, level) for level in _LEVELS]
    if any(str(level.get("threshold_enabled")).lower() == "false" for level in found):
        return disk

    def free(name: str) -> int | None:
        values = (part(level, "watermark").get(name) for level in found)
        value = next((each for each in values if each is not None), None)
        return None if value is None else free_bytes(str(value), disk.size)

    return replace(disk, needed=free("high"), last=free("flood_stage"))


def _disk_settings(settings: Mapping[str, Any], level: str) -> dict[str, Any]:
    found = part(dict(settings), level)
    for name in DISK:
        found = part(found, name)
    return found


def free_bytes(watermark: str, size: int) -> int | None:
    """How much of a disk must be free; None if the setting is none that is known.

    Args:
        watermark: such as ``90%``, ``0.9`` or ``10gb``.
        size: of the disk, in bytes.
    """
    written = watermark.strip().lower()
    if sized := _SIZE.fullmatch(written):
        return int(float(sized[1]) * _BYTES[sized[2]])
    try:
        used = float(written.removesuffix("%")) / (100 if written.endswith("%") else 1)
    except ValueError:
        return None
    return int(size * (1 - used)) if 0 <= used <= 1 else None
