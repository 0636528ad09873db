"""The environment of the processes that a session starts."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from setl.channel.variables import without_secrets_of_setl

_OTHERS_FOLDERS = {"PYTHONSAFEPATH": "1"}  # `python -m` imports nothing from where a node stands


class StartOptions(dict[str, Any]):
    """Options of `subprocess.Popen` for the JVM, which gets none of this process's secrets.

    Nor do the Python workers, whose parent it is: code of expressions, processors and libraries
    runs there. PySpark adds the whole environment to the options that it is given.
    """

    def __setitem__(self, name: str, value: object) -> None:
        if name == "env":
            clean = without_secrets_of_setl(cast("Mapping[str, str]", value))
            value = {**clean, **_OTHERS_FOLDERS}
        super().__setitem__(name, value)


@contextmanager
def variable(name: str, value: str) -> Generator[None]:
    """Set a variable for as long as the block lasts, then give it back what it had."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
