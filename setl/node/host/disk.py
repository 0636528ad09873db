"""How full the disk is that a node's Spark writes to."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

_SPARK = "SPARK_LOCAL_DIRS"


@dataclass(frozen=True, slots=True)
class NodeDisk:
    """A disk.

    Attributes:
        folder: the folder that was looked at, "" if it could not be.
        size: bytes in all.
        free: bytes that are free.
    """

    folder: str = ""
    size: int = 0
    free: int = 0


def look_at_disk(environment: Mapping[str, str], configured: str = "") -> NodeDisk:
    """The disk of Spark's first local folder, or of the folder for temporary files.

    Args:
        environment: of this process, whose variable wins, as with Spark.
        configured: Spark's setting `spark.local.dir`, "" for none.
    """
    named = environment.get(_SPARK) or configured
    folder = named.split(",")[0].strip() or tempfile.gettempdir()
    try:
        usage = shutil.disk_usage(folder)
    except OSError:
        return NodeDisk()
    return NodeDisk(folder, usage.total, usage.free)
