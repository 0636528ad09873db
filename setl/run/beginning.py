"""From where a leadership goes on."""

from __future__ import annotations

from dataclasses import replace

from setl.model.checkpoint import Checkpoint
from setl.select.source import Source


def place_to_begin(source: Source, stored: Checkpoint | None, wanted: int) -> Checkpoint:
    """Where to go on: where the stored checkpoint stands, or at the configured start.

    Args:
        source: not opened yet.
        stored: the checkpoint that the store holds, None for a pipeline that never ran.
        wanted: the generation that the channel file asks for.

    Raises:
        SetlError: what the source raises when it looks for the place.
    """
    if stored is None:
        return Checkpoint(source.initial(), generation=wanted, requested=wanted)
    if stored.outdated(wanted):
        # A generation above the stored one means that the operator wants to start over,
        # since the stored position says nothing about the source as it is now.
        moved = stored.moved_to(source.initial())
        generation = max(moved.generation, wanted)
        return replace(moved, generation=generation, requested=wanted, load=None, targets=())
    return source.locate(stored)
