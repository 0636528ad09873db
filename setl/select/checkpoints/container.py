"""Whether this process runs in a container, whose files go with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

_FILES = ("/.dockerenv", "/run/.containerenv")
_VARIABLE = "KUBERNETES_SERVICE_HOST"


def container_sign(
    exists: Callable[[str], bool] = os.path.exists,
    environment: Mapping[str, str] = os.environ,
) -> str:
    """What shows that this is a container, "" if nothing does.

    Docker and Podman put a file into each; Kubernetes sets a variable.
    """
    for path in _FILES:
        if exists(path):
            return path
    return f"${_VARIABLE}" if environment.get(_VARIABLE) else ""


def lost_with_container(sign: str) -> str:
    """The warning about a checkpoint in a file of a container."""
    return (
        f"the checkpoint is stored in a file, and this is a container ({sign}): the file is lost"
        " with it, unless it lies on a volume that stays"
    )
