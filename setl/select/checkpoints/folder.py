"""The folder below which files of checkpoints may be.

A channel file is stored in ZooKeeper, and whoever may write it must not choose what a node reads
and replaces on its disk. The folder is a setting of each process.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from setl.errors import ConfigurationError

FOLDER_VARIABLE = "SETL_CHECKPOINT_FOLDER"
_DEFAULT = "/var/lib/setl"

_FILES = ("/.dockerenv", "/run/.containerenv")
_VARIABLE = "KUBERNETES_SERVICE_HOST"


def checkpoint_folder(environment: Mapping[str, str]) -> Path:
    """The folder of this process: its setting, else the state directory that systemd gave it."""
    state = environment.get("STATE_DIRECTORY", "").partition(":")[0]
    return Path(environment.get(FOLDER_VARIABLE) or state or _DEFAULT)


def confined(file: Path, folder: Path) -> Path:
    """The file, if it is below the folder once links among its folders are followed.

    Raises:
        ConfigurationError: it is not.
    """
    inside = Path(os.path.realpath(folder))
    parent = Path(os.path.realpath(file.parent))
    if file.name in ("", ".", "..") or not parent.is_relative_to(inside):
        raise ConfigurationError(
            f"`checkpoint_file` must be below {folder}",
            hint="Name a file there, or give the node another folder: `--checkpoint-folder`,"
            f" {FOLDER_VARIABLE}, or `checkpoint_folder` in its configuration file",
            file=file,
        )
    return file


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
