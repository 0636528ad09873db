"""Finds the files that are not Python: `schemas/`, `sql/`, examples, a unit of systemd, docs."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

FOLDERS = ("schemas", "sql")
"""What setl itself needs, wherever it runs."""

EXAMPLES = "examples"
"""Channel files and configuration, commented."""

SYSTEMD = "systemd"
"""A unit for systemd, and what belongs to it."""

DOCS = "docs"
"""The pages of the documentation, as Markdown."""

_BESIDE = {DOCS: "docs/pages", EXAMPLES: "deploy/examples", SYSTEMD: "deploy/systemd"}


def resource(folder: str, name: str) -> Traversable:
    """A file of one of these folders.

    In a wheel they lie inside the package; in a checkout (an editable install) they lie
    beside it, where people look for them.

    Raises:
        FileNotFoundError: neither place has it.
    """
    for path in _folders(folder):
        if (path / name).is_file():
            return path / name
    raise FileNotFoundError(f"{folder}/{name}")


def everything() -> Iterator[tuple[str, bytes]]:
    """All the files, as ``folder/name`` and content, by name."""
    for folder in FOLDERS:
        files = {
            found.name: found
            for path in reversed(_folders(folder))
            if path.is_dir()
            for found in path.iterdir()
            if found.is_file()
        }
        for name in sorted(files):
            yield f"{folder}/{name}", files[name].read_bytes()


def names(folder: str) -> list[str]:
    """The names of the files in one of these folders."""
    for path in _folders(folder):
        if path.is_dir():
            return sorted(found.name for found in path.iterdir() if found.is_file())
    return []


def _folders(folder: str) -> tuple[Traversable, ...]:
    """Where files of a folder may lie; the first that has one counts."""
    return resources.files("setl") / folder, Path(__file__).parent.parent / _BESIDE.get(
        folder, folder
    )


def read_text(folder: str, name: str) -> str:
    """The text of a file of one of these folders."""
    return resource(folder, name).read_text(encoding="utf-8")
