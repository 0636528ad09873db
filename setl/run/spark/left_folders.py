"""What killed nodes left on this machine, for whoever starts no further node that removes it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from setl.run.spark.jvm_folders import JVM_PREFIX
from setl.run.spark.own_folder import remove_left
from setl.run.spark.shared_memory import IN_MEMORY, ROWS_PREFIX
from setl.run.spark.worker_sockets import SOCKETS_PREFIX


def remove_left_folders() -> None:
    """Remove the folders that nobody uses any more, where nodes make them by default."""
    temporary = Path(tempfile.gettempdir())
    for parent, prefix in (
        (temporary, JVM_PREFIX),
        (temporary, SOCKETS_PREFIX),
        (IN_MEMORY, ROWS_PREFIX),
    ):
        remove_left(parent, prefix)
