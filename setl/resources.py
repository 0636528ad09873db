"""Finds the files that are not Python: `schemas/` and `sql/`."""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path


def resource(folder: str, name: str) -> Traversable:
    """A file of `schemas/` or `sql/`.

    In a wheel they lie inside the package; in a checkout (an editable install) they lie
    beside it, where people look for them.

    Raises:
        FileNotFoundError: neither place has it.
    """
    package = Path(__file__).parent
    for place in (resources.files("setl") / folder / name, package.parent / folder / name):
        if place.is_file():
            return place
    raise FileNotFoundError(f"{folder}/{name}")


def read_text(folder: str, name: str) -> str:
    """The text of a file of `schemas/` or `sql/`."""
    return resource(folder, name).read_text(encoding="utf-8")
