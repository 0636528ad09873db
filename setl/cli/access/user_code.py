"""The option that names files of user code, the processors of channel files."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

py_files_option = click.option(
    "--py-files",
    multiple=True,
    envvar="SETL_PY_FILES",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A .py, .zip or .egg file with processors; may be repeated. (In SETL_PY_FILES several"
    " are separated as in PATH.)",
)


def shipped(files: Iterable[Path]) -> tuple[str, ...]:
    """The files as Spark takes them."""
    return tuple(str(file.resolve()) for file in files)


def make_importable(files: Iterable[Path]) -> None:
    """Let this process import modules from the files, as Spark's tasks can."""
    for file in files:
        path = str(file.resolve().parent if file.suffix == ".py" else file.resolve())
        if path not in sys.path:
            sys.path.insert(0, path)
