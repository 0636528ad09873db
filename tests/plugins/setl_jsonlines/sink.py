"""Writes changes into the files of a folder."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from setl.errors import ConfigurationError, TransientError
from setl.load.sink import LoadTicket, Sink, SinkSettings
from setl.model.change import TargetChanges
from setl.model.faulty import FaultyRow
from setl.model.loaded import Loaded
from setl_jsonlines.lines import append, file_of, lines_of


class JsonLinesSink:
    """The `setl.load.sink.Sink` for a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def apply(
        self,
        ticket: LoadTicket,
        changes: Sequence[TargetChanges],
        faulty: Sequence[FaultyRow] = (),
    ) -> Loaded:
        """See `Sink.apply`."""
        if faulty:
            raise ConfigurationError("a folder keeps no dead letters").at(
                pipeline=ticket.pipeline_key
            )
        changes = [change for change in changes if change.upserts or change.deletes]
        if not changes:
            return Loaded()
        started = time.monotonic()
        try:
            for change in changes:
                append(file_of(self._folder, *change.target), lines_of(change))
        except FileNotFoundError as error:
            raise ConfigurationError(f"there is no folder {self._folder}") from error
        except OSError as error:
            raise TransientError(f"{self._folder}: {error}") from error
        return Loaded(
            upserts=sum(len(change.upserts) for change in changes),
            deletes=sum(len(change.deletes) for change in changes),
            seconds=time.monotonic() - started,
        )

    def close(self) -> None:
        """See `Sink.close`; nothing is kept open."""


@dataclass(frozen=True, slots=True)
class JsonLinesSinkSettings(SinkSettings):
    """See `setl.load.sink.SinkSettings`."""

    folder: str

    def make_sink(self) -> Sink:
        """See `SinkSettings.make_sink`."""
        return JsonLinesSink(self.folder)
