"""Named points at which a drill makes a process die, hang or fail.

What happens when a node dies "after the commit, before the acknowledgement" cannot be rehearsed
by killing it at some moment and hoping. So the places that matter have names, and a drill
arms one of them: with the environment variable ``SETL_FAILPOINTS`` naming a folder, a file of a
point's name in it holds what the first process that passes the point shall do::

    kill         end this process with SIGKILL
    kill node    end the node, whose Python worker this may be, with SIGKILL
    hang 20      sleep for so many seconds, then go on
    error        raise TransientError

The process takes the file by renaming it to ``<name>.taken``, so a point strikes once however
many workers pass it. Without the variable a point costs one comparison.

The idea is that of the failpoints in TiDB's tools; the points here are those between which a
crash leaves a different state behind.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from setl.errors import TransientError

FOLDER = "SETL_FAILPOINTS"
NODE_PID = "SETL_NODE_PID"

POINTS = {
    "take.before_fence": "elected, the target still knows the epoch before",
    "take.after_fence": "the epoch is raised in the target, the checkpoint is not read yet",
    "select.batch": "a batch was selected",
    "extract.done": "loops and unmapped rows are dropped, nothing is sent to Spark yet",
    "load.before_job": "right before the Spark job, or before a relay appends records",
    "task.before_load": "in a task: rows are transformed, nothing is written",
    "task.before_commit": "in a task: rows are written, the transaction is open",
    "task.after_commit": "in a task: its transaction is committed, others of the load may not be",
    "create.begun": "a target table is to be created, the keys that come later are written down",
    "create.made": "a target table is created, others are not",
    "create.keys": "the keys that come later are added, it is not written down",
    "ddl.begun": "a schema change is written down as begun, it is not run",
    "ddl.ran": "a schema change has run on the target, which is not written down",
    "ddl.done": "a schema change is written down as done, the checkpoint is before it",
    "relay.appended": "records of a relay are appended, none of them is flushed",
    "load.after_job": "the load is in the target, the checkpoint is not stored",
    "checkpoint.stored": "the checkpoint is stored if it was due, the batches are not acknowledged",
    "batch.acked": "the batches are acknowledged",
    "tables.before_job": "ranges of tables are chosen, right before the Spark job that reads them",
    "tables.read": "in a task: rows of a table are read, nothing of them is written",
    "tables.after_job": "ranges of tables are in the target, how far they go is not stored",
    "tables.loaded": "ranges of tables are in the target and counted, the checkpoint is not stored",
}
"""Every point, in the order in which a batch passes them, with what is true there.

For Elasticsearch, which has no transactions, "commit" is the bulk request. Relays pass no point of
Extract and of tasks, and nothing but relays passes theirs. Nothing but schema changes passes those
of ``ddl``, and nothing but a load of whole tables those of ``tables``, between two batches; it
passes those of ``task`` as well. Only what creates target tables passes those of ``create``.
"""

_folder = os.environ.get(FOLDER, "")


def declare_node() -> None:
    """Note that this process is the node, for its workers; before Spark starts them."""
    if _folder:
        os.environ[NODE_PID] = str(os.getpid())


def reached(point: str) -> None:
    """The process has come to `point`; does what a drill has armed it with, usually nothing.

    Raises:
        TransientError: that was ``error``.
        ValueError: the file asks for something unknown.
    """
    if _folder:
        _strike(Path(_folder), point)


def _strike(folder: Path, point: str) -> None:
    armed, taken = folder / point, folder / f"{point}.taken"
    try:
        # Read before it is taken: whoever waits for that may remove the file at once.
        text = armed.read_text().strip()
        if not text:
            return  # it is being written
        armed.rename(taken)
    except FileNotFoundError:
        return
    action, _, argument = text.partition(" ")
    if action == "kill":
        pid = int(os.environ[NODE_PID]) if argument == "node" else os.getpid()
        os.kill(pid, signal.SIGKILL)
        # A worker whose node dies goes on for a moment; it must not get past the point.
        time.sleep(60)
    elif action == "hang":
        time.sleep(float(argument))
    elif action == "error":
        raise TransientError(f"a drill asked for a failure at {point}")
    else:
        raise ValueError(f"{armed}: not something to do at a point: {action!r}")
