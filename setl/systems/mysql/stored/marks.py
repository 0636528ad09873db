"""Marks: rows of ``retl.retl_mark`` that name the channel that wrote a transaction (I9, I10).

The mark is the first row change of every load transaction. Whoever reads the target's binlog
recognises by its CHANNEL_ID that the transaction came from a channel, and drops it.

ID belongs to one concurrent writer: two tasks on one row would wait for each other's commit.
CHANNEL_INFO differs in every transaction: a server writes no event for a row that an upsert
leaves as it was. A transaction whose mark is missing from the binlog would be sent back to where
it came from. CHANNEL_INFO also says up to where the writer had come with its pipeline.
"""

from __future__ import annotations

from typing import Any

from pymysql.connections import Connection

from setl.channel.relations.mark_ids import MAX_SLOTS, WRITER_BITS, writer_number
from setl.errors import ConfigurationError
from setl.load.sink import LoadTicket

MARK_STATEMENT = (
    "INSERT INTO retl.retl_mark (ID, CHANNEL_ID, CHANNEL_INFO) VALUES (%s, %s, %s) "
    "ON DUPLICATE KEY UPDATE CHANNEL_ID = VALUES(CHANNEL_ID), CHANNEL_INFO = VALUES(CHANNEL_INFO)"
)
"""Takes the mark's id, the channel's number and the text of `mark_info`."""


def mark_id(pipeline_key: str, slot: int) -> int:
    """ID of the mark row of one writer: a hash of the pipeline, then the slot.

    Two pipelines whose hashes agree would wait for each other now and then; nothing worse.

    Raises:
        ConfigurationError: more tasks write at the same time than there are slots.
    """
    if not 0 <= slot < MAX_SLOTS:
        raise ConfigurationError(
            f"load task {slot} is one too many: at most {MAX_SLOTS} can write at the same time",
            hint="Raise `rows_per_task`, or give Spark fewer cores",
        )
    return writer_number(pipeline_key) << WRITER_BITS | slot


def mark_info(ticket: LoadTicket, nonce: str) -> str:
    """CHANNEL_INFO of one transaction: ``epoch.batch.slot.through.nonce``.

    Args:
        ticket: on whose behalf the transaction runs.
        nonce: differs in every call, also when a batch is applied again; short and without
            dots. It must not end in ``_SYNC``, which would drop the transaction everywhere.
    """
    return f"{ticket.epoch}.{ticket.batch_id}.{ticket.slot}.{ticket.through}.{nonce}"


def through_of(info: str | None) -> int:
    """The `LoadTicket.through` that `mark_info` wrote, 0 for any other text."""
    parts = (info or "").split(".")
    return int(parts[3]) if len(parts) == 5 and parts[3].isdecimal() else 0


def applied_through(connection: Connection[Any], pipeline_key: str) -> int:
    """How far any transaction of a pipeline went: the highest `LoadTicket.through` in its marks.

    Rows up to there may be in the target already, since the checkpoint follows the rows only
    after all tasks of a batch have committed. 0 if the pipeline never wrote here. For counting
    what is redelivered; pymysql's errors pass through.
    """
    first = mark_id(pipeline_key, 0)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT CHANNEL_INFO FROM retl.retl_mark WHERE ID BETWEEN %s AND %s",
            (first, first + MAX_SLOTS - 1),
        )
        return max((through_of(row[0]) for row in cursor.fetchall()), default=0)
