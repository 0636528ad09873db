"""The port for questions of a relay to its source, alongside the stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class RelayedTables(Protocol):
    """What the source says about itself and its tables, asked for each time."""

    def server_version(self) -> str:
        """The version as the server tells it. Raises SetlError."""
        ...

    def unique_keys(self, schema: str, table: str) -> Mapping[str, tuple[str, ...]]:
        """Columns of each unique key but the primary one, by its name.

        They are those of today, and the rows may be of yesterday; whoever writes them into
        records leaves out what does not fit.

        Raises:
            TransientError: the source does not answer.
            ConfigurationError: it refuses the account.
        """
        ...
