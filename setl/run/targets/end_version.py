"""The document version of the end of a stream."""

from __future__ import annotations

from setl.load.sink import LoadTicket
from setl.model.position import document_version
from setl.select.source import Source


def version_at_end(source: Source, ticket: LoadTicket) -> int:
    """The version that a change would have which comes now, for whoever has come to `ticket`.

    Between the two there may be files that an earlier leader has left, and this one has not.

    Raises:
        SetlError: the source does not answer.
    """
    latest = source.latest()
    return document_version(ticket.generation, latest, ticket.files.past_all(source.sizes()))
