"""A variable of this process's environment, for what is started inside a block."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager


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
