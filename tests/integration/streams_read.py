"""What tests read of a source's stream, and the checkpoints in it."""

import time

from setl.model.checkpoint import Checkpoint, CheckpointTracker


def read_until(source, done, timeout=60.0):
    """Entries until `done` of them is true."""
    entries, deadline = [], time.monotonic() + timeout
    while not done(entries):
        assert time.monotonic() < deadline, f"{len(entries)} entries, last {entries[-3:]}"
        entries += source.read(1000, 0.5)
    return entries


def checkpoint_at(entries, index):
    """The checkpoint after the first `index` entries, read from a boundary on."""
    tracker = CheckpointTracker(Checkpoint(entries[0].position))
    tracker.advance_all(entries[1:index])
    return tracker.checkpoint
