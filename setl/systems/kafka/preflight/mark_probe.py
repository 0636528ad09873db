"""Whether a DTS subscription delivers the mark table, found out by writing a row there.

A subscription delivers the objects that were chosen for it. Without ``retl.retl_mark`` among them
the way back of a two-way channel takes everything for changes of users, and they go round.
Nothing in the topic says which objects were chosen; so a row that means nothing is written at
the source, and looked for. A relay of setl passes every mark on that belongs to rows, and no other,
so where records are a relay's there is nothing to wait for.
"""

from __future__ import annotations

import secrets
import time
from typing import Final

from setl.channel.fields.endpoint import Database
from setl.channel.fields.kafka_endpoints import KafkaSource
from setl.codec.dts.header import read_header
from setl.codec.dts.relayed import relay_position_of
from setl.errors import SetlError
from setl.model.position import KafkaPosition
from setl.systems.finding import Report
from setl.systems.kafka.reader import TopicReader, open_reader
from setl.systems.kafka.record import Record
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.mysql.server import Server

PROBE_ROW: Final = -1
"""ID of the row that is written; loaders use none below 0."""

SECONDS: Final = 30.0
"""How long the row may take through DTS or a relay."""

# Without a channel's number it is no mark to anybody, setl or Otter.
_WRITE = (
    "INSERT INTO retl.retl_mark (ID, CHANNEL_ID, CHANNEL_INFO) VALUES (%s, 0, %s)"
    " ON DUPLICATE KEY UPDATE CHANNEL_ID = 0, CHANNEL_INFO = VALUES(CHANNEL_INFO)"
)


def check_marks_arrive(source: KafkaSource, report: Report, *, probe: bool) -> None:
    """Report whether marks reach a pipeline that needs them from a DTS subscription.

    Args:
        source: the subscription.
        report: where to put it.
        probe: whether a row may be written at the source to find out.
    """
    if source.database is None:
        report.warning(
            "whether the subscription delivers retl.retl_mark cannot be found out; without it"
            " changes of this channel come back as changes of users",
            "Name the `database` of the source, and run `setl check --probe`",
            code="marks-unknown",
        )
    elif probe:
        probe_marks(source, source.database, report)
    else:
        report.warning(
            "whether the subscription delivers retl.retl_mark was not looked at; without it"
            " changes of this channel come back as changes of users",
            "Run `setl check --probe`, which writes a row there and waits for it",
            code="marks-not-probed",
        )


def probe_marks(
    source: KafkaSource, database: Database, report: Report, seconds: float = SECONDS
) -> None:
    """Write a row of the mark table at the source, wait for it in the topic, and remove it.

    Any row of the table that comes meanwhile will do, and any record of a relay. The account of
    `database` must be allowed to write there.
    """
    reader: TopicReader | None = None
    try:
        reader = open_reader(source, 5.0, few=True)
        # From the end of now on, not of when the row is there.
        reader.seek({source.partition: reader.bounds(source.partition).end})
        with Server.opened(mysql_endpoint(database)) as server:
            server.rows(_WRITE, (PROBE_ROW, f"check.{secrets.token_hex(8)}"))
            try:
                arrived = _arrives(reader, source, seconds)
            finally:
                server.rows("DELETE FROM retl.retl_mark WHERE ID = %s", (PROBE_ROW,))
        if arrived:
            report.ok(f"marks arrive in the topic {source.topic}")
        else:
            _report_missing(source, seconds, report)
    except SetlError as error:
        report.error(
            f"marks could not be looked for: {error.message}",
            error.hint
            or "The account of `database` needs INSERT, UPDATE and DELETE on retl.retl_mark for"
            " this",
            code="marks-unknown",
        )
    finally:
        if reader is not None:
            reader.close()


def _report_missing(source: KafkaSource, seconds: float, report: Report) -> None:
    report.error(
        f"a row of retl.retl_mark did not arrive in the topic {source.topic} within"
        f" {seconds:.0f} s, so changes of this channel would come back as changes of users",
        "Add the table retl.retl_mark to the objects of the subscription; if it is among them,"
        " check again when the subscription has caught up",
        code="marks-not-delivered",
    )


def _arrives(reader: TopicReader, source: KafkaSource, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if any(_shows_source(record, source) for record in reader.poll(500, min(left, 1.0))):
            return True
    return False


def _shows_source(record: Record, source: KafkaSource) -> bool:
    """Whether a record shows that marks come."""
    position = KafkaPosition(source.topic, source.partition, record.offset + 1)
    try:
        if relay_position_of(record.headers) is not None:
            return True
        entry = read_header(record.value or b"", position, logical_names=source.logical_names)
    except SetlError:
        return False  # not what is looked for; the source will say what is wrong with it
    return (entry.schema.lower(), entry.table.lower()) == ("retl", "retl_mark")
