"""From where a leadership goes on."""

from __future__ import annotations

from dataclasses import replace

from setl.model.checkpoint import Checkpoint
from setl.run.checkpoints.checkpoint_writer import CheckpointWriter
from setl.run.parts import RunParts
from setl.select.source import Source


def position_to_continue(
    parts: RunParts,
    writer: CheckpointWriter,
    stored: Checkpoint | None,
    reached: Checkpoint | None,
) -> Checkpoint:
    """Where a run goes on at the servers that answer now; kept before anything is applied.

    Args:
        parts: of the run; its source is not opened yet.
        writer: what the run has stored so far.
        stored: what the store holds, None for a pipeline that never ran.
        reached: how far this run had come, None at its first attempt.

    Raises:
        SetlError: what the source raises when it looks for the position, or the store.
    """
    applied = writer.unsaved(reached) if stored == writer.last else None
    wanted = (known := applied or stored) and parts.work.with_written(known)
    checkpoint = position_to_begin(parts.source, wanted, parts.generation)
    if stored is not None and checkpoint == wanted:
        # The source is as it was, so it can go on from what is stored, too. Another one has
        # to have what was applied since.
        checkpoint = stored
    if checkpoint.fresh:
        # What the target keeps is from an earlier generation. Forgotten before this is stored, and
        # never again: then it may be of this one, whose first load was cut off.
        parts.work.forget(checkpoint)
        checkpoint = replace(checkpoint, began=True)
    if checkpoint == stored:
        writer.found(checkpoint)
    else:
        # A start at "latest" that is lost in a crash would become a later "latest", and what
        # lies between would never be applied.
        writer.moved(checkpoint)
    return checkpoint


def position_to_begin(source: Source, stored: Checkpoint | None, wanted: int) -> Checkpoint:
    """Where to go on: where the stored checkpoint stands, or at the configured start.

    Args:
        source: not opened yet.
        stored: the checkpoint that the store holds, None for a pipeline that never ran.
        wanted: the generation that the channel file asks for.

    Raises:
        SetlError: what the source raises when it looks for the position.
    """
    if stored is None:
        return Checkpoint.first(source.initial(), wanted)
    if stored.outdated(wanted):
        # A generation above the stored one means that the operator wants to start over,
        # since the stored position says nothing about the source as it is now.
        moved = stored.moved_to(source.initial())
        generation = max(moved.generation, wanted)
        return replace(moved, generation=generation, requested=wanted, load=None, targets=())
    return source.locate(stored)
