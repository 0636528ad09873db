"""Says of a faulty row's error where in the stream the row is.

A task knows a change by its version (see `setl.model.position.document_version`), which nobody can
look up. Who runs the task knows the stream that the version belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence

from setl.errors import DataError, SetlError
from setl.extract.extractor import RoutedRows
from setl.load.sink import LoadTicket
from setl.model.position import version_text


def with_position(error: SetlError, ticket: LoadTicket) -> SetlError:
    """The error with the position that its version stands for: behind the row's record.

    Rows that were read from tables have no position of their own.
    """
    version = error.where.pop("version", "")
    if isinstance(error, DataError) and version and not ticket.from_tables:
        error.at(position=version_text(int(version), ticket.at, ticket.files))
    return error


def locate_fault(error: SetlError, rows: Sequence[RoutedRows]) -> None:
    """Note the stretch of the stream that was loaded, if the error says nothing more exact."""
    if isinstance(error, DataError) and rows:
        first, last = rows[0].entry.position, rows[-1].entry.position
        error.at(position=first if first == last else f"from {first} to {last}")
