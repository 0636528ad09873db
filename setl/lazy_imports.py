"""Imports what a registry names: ``module:name``, with no import until somebody asks for it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from setl.errors import NodeNotReadyError


def imported(reference: str, user: str) -> Any:
    """What a ``module:name`` stands for.

    Args:
        reference: the module, and what it has.
        user: what needs it, for the error.

    Raises:
        NodeNotReadyError: this installation lacks the module, or one that it needs.
    """
    module, _, name = reference.partition(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise NodeNotReadyError(
            f"this installation lacks the module {error.name}, which {user} needs",
            hint="Install setl whole on the nodes, on Spark's workers and where `setl check` runs",
        ) from error
