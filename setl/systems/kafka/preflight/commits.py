"""Whether the commits of a group can be read, for `checkpoint: kafka`."""

from __future__ import annotations

from setl.channel.fields.kafka_endpoints import DtsSource
from setl.errors import SetlError
from setl.systems.finding import Report
from setl.systems.kafka.reader import open_reader

_TIMEOUT = 5.0


def check_commits(source: DtsSource, report: Report) -> None:
    """See that the account may read the group's commits; whether it may commit shows only then."""
    try:
        reader = open_reader(source, _TIMEOUT, few=True)
        try:
            reader.committed(source.partition)
        finally:
            reader.close()
    except SetlError as error:
        report.error(
            f"the commits of the group {source.sid} cannot be read: {error.message}",
            "Allow the account READ on the group, or choose another `checkpoint`",
            code="kafka-commits",
        )
    else:
        report.ok(f"the commits of the group {source.sid} can be read")
